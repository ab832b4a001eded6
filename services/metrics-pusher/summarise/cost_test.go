package summarise_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
)

const costDescriptor = `spec_version = "1.0"
info = { description = "images" }
hardware = { instance_type = "m5.large" }
env = { docker_image = "img:1" }
cost = { per = ["images"] }
`

// newPricedFixture returns a fixture of a platform with prices, and a run of two attempts on one m5.large for 6 and for 54 minutes.
func newPricedFixture(t *testing.T, prices price.Table, change func(*store.Run)) *fixture {
	t.Helper()
	w := &fixture{store: storetest.Open(t), bus: eventtest.NewBus(t), now: time.Unix(1000, 0)}
	use := func(from, until int64) []event.MachineUse {
		return []event.MachineUse{{Node: "a", InstanceType: "m5.large", From: time.Unix(from, 0).UTC(), Until: time.Unix(until, 0).UTC()}}
	}
	putEnded(t, w.store, "r", func(r *store.Run) {
		r.Descriptor, r.Attempt, r.Machines = costDescriptor, 2, map[int][]event.MachineUse{1: use(0, 360), 2: use(400, 3640)}
		if change != nil {
			change(r)
		}
	})
	w.startWith(prices)
	return w
}

// startWith makes the service of a platform with prices, as after a restart.
func (w *fixture) startWith(prices price.Table) {
	d := summarise.Deps{Bus: w.bus, Store: w.store, Prices: prices, Now: func() time.Time { return w.now }, Log: zap.NewNop()}
	w.work = summarise.New(summarise.Settings{GracePeriod: gracePeriod}, d)["metrics-pusher/summarise/work"]
}

// costText returns the computed metrics of summaries, those that are not known, and the notes, as text.
func costText(all store.Summaries) string {
	var texts []string
	for _, s := range all.Summaries {
		if s.N == 0 {
			texts = append(texts, fmt.Sprintf("%s %v %s", s.Metric, float64(s.Median), s.Unit))
		}
	}
	for _, u := range all.Unknown {
		texts = append(texts, u.Metric+": "+u.Reason)
	}
	return strings.Join(append(texts, all.Notes...), "\n")
}

// power returns a sample of a GPU whose power is 250 W.
func power(seq, second int64) event.Sample {
	s := storetest.NewSample(seq, "system.gpu.power", 250)
	s.Unit, s.Time, s.Labels = "W", second*1e9, map[string]string{"gpu": "0"}
	return s
}

func TestTheSummaryOfARunHasItsCostAndItsEnergyToTheCentAndTheJoule(t *testing.T) {
	w := newPricedFixture(t, price.Table{"m5.large": "0.10 USD"}, nil)
	w.appendSamples(t, 1, true, power(1, 10), power(2, 11))
	w.appendSamples(t, 2, true, power(1, 410), power(2, 411), power(3, 413), power(4, 414), at(5, "images", 1000, 1), at(6, "images", 4000, 2))
	w.bus.PublishAndWait(finished(2, "p1", "p2"))
	all := w.summaries(t)
	want := `cost.amount 0.1 USD
cost.per.images 2.5e-05 USD
energy.joules 1250 J
energy.per.images 0.3125 J
energy.joules is that of 2 GPUs and 0 processor packages, each as a whole; 1 sample of power missing, bridged by straight lines`
	if diff := cmp.Diff(want, costText(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := pointsText(t, w.store, "r"); !strings.Contains(got, "cost.amount 0.1 n 0; cost.per.images 2.5e-05 n 0; energy.joules 1250 n 0; energy.per.images 0.3125 n 0") {
		t.Errorf("points: %s", got)
	}
}

func TestACostThatIsNotKnownIsAbsentWithItsReason(t *testing.T) {
	w := newPricedFixture(t, price.Table{"other": "1 USD"}, nil)
	w.appendSamples(t, 2, true, at(1, "images", 1000, 1))
	w.bus.PublishAndWait(finished(2, "p2"))
	want := `cost.amount: the platform's settings have no price of instance type m5.large (hardware.price_per_hour of the descriptor gives one)
energy.joules: no pod measured power: neither nvidia-smi nor a counter of a processor package could be read
cost.per.images: cost.amount is not known
energy.per.images: energy.joules is not known`
	if diff := cmp.Diff(want, costText(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunWithoutSamplesHasACost(t *testing.T) {
	w := newPricedFixture(t, price.Table{"m5.large": "0.10 USD"}, nil)
	w.appendSamples(t, 2, true)
	w.bus.PublishAndWait(finished(2, "p2"))
	if got := costText(w.summaries(t)); !strings.HasPrefix(got, "cost.amount 0.1 USD\n") {
		t.Errorf("%s", got)
	}
	if got := pointsText(t, w.store, "r"); !strings.Contains(got, "cost.amount 0.1 n 0") {
		t.Errorf("points: %s", got)
	}
}

func TestARunWithoutSamplesAndPricesHasNoSummary(t *testing.T) {
	w := newPricedFixture(t, nil, func(r *store.Run) { r.Descriptor = "" })
	w.appendSamples(t, 2, true)
	w.bus.PublishAndWait(finished(2, "p2"))
	if all := w.summaries(t); all.Run != "" {
		t.Errorf("%+v", all)
	}
}

func TestARunThatIsSummarisedAgainKeepsItsPrice(t *testing.T) {
	w := newPricedFixture(t, price.Table{"m5.large": "0.10 USD"}, nil)
	w.appendSamples(t, 2, false, at(1, "images", 1000, 1))
	w.bus.PublishAndWait(finished(2, "p2"))
	w.now = w.now.Add(gracePeriod)
	w.until(t, func() bool { n, _ := w.noted(t); return n != nil })
	w.startWith(price.Table{"m5.large": "7 EUR"})
	w.appendSamples(t, 2, true, at(1, "images", 1000, 1), at(2, "images", 2000, 2))
	if got := costText(w.summaries(t)); !strings.HasPrefix(got, "cost.amount 0.1 USD\ncost.per.images 5e-05 USD\n") {
		t.Errorf("%s", got)
	}
}

func TestTheWorkOfARunIsTheLastValueOrTheSum(t *testing.T) {
	other := at(9, "images", 7, 3, "0")
	rate := at(8, "images", 7, 3)
	rate.Unit = "images/s"
	for name, tt := range map[string]struct {
		count   string
		samples []event.Sample
		want    string
	}{
		"the last by time, whatever comes last": {"last", []event.Sample{at(1, "images", 40, 2), at(2, "images", 10, 1)}, "cost.per.images 0.0025 USD"},
		"series with different labels add up":   {"last", []event.Sample{at(1, "images", 3, 1), other}, "cost.per.images 0.01 USD"},
		"the sum of all":                        {"sum", []event.Sample{at(1, "images", 40, 2), at(2, "images", 10, 1)}, "cost.per.images 0.002 USD"},
		"a metric without values":               {"sum", []event.Sample{at(1, "loss", 40, 2)}, "cost.per.images: the run has no values of images"},
		"a rate":                                {"last", []event.Sample{rate}, "cost.per.images: images is a rate (images/s), and no number of things"},
		"values in two units":                   {"last", []event.Sample{at(1, "images", 3, 1), rate}, `cost.per.images: images has values in "images/s" and in "ms"`},
		"nothing was done":                      {"last", []event.Sample{at(1, "images", 0, 1)}, "cost.per.images: images is 0: cost and energy are divided by a number above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPricedFixture(t, price.Table{"m5.large": "0.10 USD"}, func(r *store.Run) {
				r.Descriptor = strings.Replace(costDescriptor, `["images"]`, `["images"], count = "`+tt.count+`"`, 1)
			})
			w.appendSamples(t, 2, true, tt.samples...)
			w.bus.PublishAndWait(finished(2, "p2"))
			if got := costText(w.summaries(t)); !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
