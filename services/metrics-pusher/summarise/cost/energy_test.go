package cost_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod/hostinfo"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise/cost"
)

func sample(metric, unit string, attempt int, pod string, labels map[string]string, second, value float64) *store.Sample {
	s := &store.Sample{Origin: store.Origin{Attempt: attempt, Stream: event.Stream{Pod: pod, Container: "benchmark"}}}
	s.Name, s.Unit, s.Labels, s.Time = metric, unit, labels, at(second).UnixNano()
	s.Set(value)
	return s
}

// gpu returns a sample of the power of GPU 0 of a pod.
func gpu(attempt int, pod string, second, watts float64) *store.Sample {
	return sample(hostinfo.MetricGPUPower, "W", attempt, pod, map[string]string{"gpu": "0"}, second, watts)
}

// cpu returns a sample of the counter of package 0 in a pod.
func cpu(attempt int, pod string, second, joules float64) *store.Sample {
	return sample(hostinfo.MetricCPUEnergy, "J", attempt, pod, map[string]string{"package": "package-0"}, second, joules)
}

// series returns samples at each second from first to last, but for those that are missing.
func series(newSample func(second float64) *store.Sample, first, last int, missing ...int) (all []*store.Sample) {
	for second := first; second <= last; second++ {
		if !slices.Contains(missing, second) {
			all = append(all, newSample(float64(second)))
		}
	}
	return all
}

// constant makes samples of a GPU with a power of 250 W.
func constant(attempt int, pod string) func(float64) *store.Sample {
	return func(second float64) *store.Sample { return gpu(attempt, pod, second, 250) }
}

// energyText returns the energy of samples with its notes, or why it is not known.
func energyText(nodes map[string]string, all []*store.Sample) string {
	var m cost.Meter
	for _, s := range all {
		m.Add(s)
	}
	r := cost.Of(cost.Input{Run: run([]event.MachineUse{}), Meter: &m, Nodes: nodes})
	text := ""
	for _, v := range r.Values {
		text += fmt.Sprintf("%v %s", float64(v.Median), v.Unit)
	}
	for _, n := range r.Notes {
		text += " (" + n + ")"
	}
	for _, u := range r.Unknown {
		if u.Metric == "energy.joules" {
			text += u.Reason
		}
	}
	return text
}

func TestTheEnergyOfARunIsThatOfItsDevices(t *testing.T) {
	ramp := func(second float64) *store.Sample { return gpu(1, "p", second, 10*second) }
	uuid := func(pod, number string) func(float64) *store.Sample {
		return func(second float64) *store.Sample {
			return sample(hostinfo.MetricGPUPower, "W", 1, pod, map[string]string{"gpu": number, "uuid": "GPU-1"}, second, 100)
		}
	}
	counter := func(pod string, begin float64) func(float64) *store.Sample {
		return func(second float64) *store.Sample { return cpu(1, pod, second, 40*(second-begin)) }
	}
	const oneGPU = " (energy.joules is that of 1 GPU and 0 processor packages, each as a whole"
	none := []int{}
	for i := 20; i < 31; i++ {
		none = append(none, i)
	}
	for name, tt := range map[string]struct {
		samples []*store.Sample
		nodes   map[string]string
		want    string
	}{
		"a constant power times the time from the first sample to the last": {samples: series(constant(1, "p"), 0, 100), want: "25000 J" + oneGPU + ")"},
		"a power that grows is integrated by trapezoids":                    {samples: series(ramp, 0, 10), want: "500 J" + oneGPU + ")"},
		"a missing sample is bridged, and said":                             {samples: series(constant(1, "p"), 0, 100, 50), want: "25000 J" + oneGPU + "; 1 sample of power missing, bridged by straight lines)"},
		"several are counted":                                               {samples: series(ramp, 0, 100, 50, 51, 90), want: "50000 J" + oneGPU + "; 3 samples of power missing, bridged by straight lines)"},
		"ten in a row are the most that are bridged":                        {samples: series(constant(1, "p"), 0, 100, none[1:]...), want: "25000 J" + oneGPU + "; 10 samples of power missing, bridged by straight lines)"},
		"eleven in a row leave it unknown":                                  {samples: series(constant(1, "p"), 0, 100, none...), want: "11 samples of the power of a GPU are missing in a row: 10 at most are bridged"},
		"a sample that is no number is a missing one":                       {samples: append(series(constant(1, "p"), 0, 100, 50), gpu(1, "p", 50, math.NaN()), gpu(1, "p", 50, math.Inf(1))), want: "25000 J" + oneGPU + "; 1 sample of power missing, bridged by straight lines)"},
		"samples may come in any order, and twice":                          {samples: append(series(constant(1, "p"), 50, 100), series(constant(1, "p"), 0, 60)...), want: "25000 J" + oneGPU + ")"},
		"the time between two attempts counts for none": {
			samples: append(series(constant(1, "p"), 0, 10), series(constant(2, "q"), 60, 70)...), want: "5000 J (energy.joules is that of 2 GPUs and 0 processor packages, each as a whole)",
		},
		"two pods have two GPUs, though both call theirs 0": {
			samples: append(series(constant(1, "p"), 0, 10), series(constant(1, "q"), 0, 10)...), want: "5000 J (energy.joules is that of 2 GPUs and 0 processor packages, each as a whole)",
		},
		"one GPU that two pods see by its own ID counts once": {samples: append(series(uuid("p", "0"), 0, 10), series(uuid("q", "1"), 0, 10)...), want: "1000 J" + oneGPU + ")"},
		"one sample is too few":                               {samples: series(constant(1, "p"), 0, 0), want: "the run was too short: a GPU has 1 sample of its power, and energy needs 2"},
		"without samples of power it is not known":            {want: "no pod measured power: neither nvidia-smi nor a counter of a processor package could be read"},
		"a metric of the same name in another unit is none": {
			samples: []*store.Sample{sample(hostinfo.MetricGPUPower, "mW", 1, "p", nil, 0, 1), sample("power", "W", 1, "p", nil, 0, 1)},
			want:    "no pod measured power: neither nvidia-smi nor a counter of a processor package could be read",
		},
		"the counter of a package is its last value, whatever is missing before": {
			samples: series(counter("p", 0), 1, 100, 20, 21, 22, 50), want: "4000 J (energy.joules is that of 0 GPUs and 1 processor package, each as a whole)",
		},
		"two pods on one node read the same package, whose energy counts once": {
			samples: append(series(counter("p", 0), 1, 10), series(counter("q", 5), 6, 20)...), nodes: map[string]string{"p": "a", "q": "a"},
			want: "800 J (energy.joules is that of 0 GPUs and 1 processor package, each as a whole)",
		},
		"one within the time of the other adds nothing": {
			samples: append(series(counter("p", 0), 1, 10), series(counter("q", 5), 6, 9)...), nodes: map[string]string{"p": "a", "q": "a"},
			want: "400 J (energy.joules is that of 0 GPUs and 1 processor package, each as a whole)",
		},
		"pods on two nodes read two": {
			samples: append(series(counter("p", 0), 1, 10), series(counter("q", 0), 1, 10)...), nodes: map[string]string{"p": "a", "q": "b"},
			want: "800 J (energy.joules is that of 0 GPUs and 2 processor packages, each as a whole)",
		},
		"GPUs and packages add up": {
			samples: append(series(constant(1, "p"), 0, 10), series(counter("p", 0), 1, 10)...), want: "2900 J (energy.joules is that of 1 GPU and 1 processor package, each as a whole)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, energyText(tt.nodes, tt.samples)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
