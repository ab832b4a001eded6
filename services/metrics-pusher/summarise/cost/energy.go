package cost

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// The metrics of which energy is computed, as the platform's programs in pods measure them.
const (
	gpuPower  = "system.gpu.power"  // W, of one GPU
	cpuEnergy = "system.cpu.energy" // J since the benchmark began, of one processor package
)

const (
	maxReadings = 8 << 20 // samples of power that are held in memory: 128 MiB
	maxMissing  = 10      // samples in a row that a straight line may take the place of
	gapFactor   = 1.5     // an interval of so many usual ones lacks a sample
)

// reading is a sample of one device.
type reading struct {
	at    int64 // ns
	value float64
}

// device is what one series of readings is of.
type device struct {
	attempt int
	owner   string // the GPU's own ID, else the container that saw it; the node of a processor package
	name    string
	pod     string // of a processor package, which every pod on its node reads
}

func (d device) compare(other device) int {
	return cmp.Or(cmp.Compare(d.attempt, other.attempt), cmp.Compare(d.owner, other.owner), cmp.Compare(d.name, other.name),
		cmp.Compare(d.pod, other.pod))
}

// Meter gathers samples of power and of energy, of all attempts of a run. Its zero value is ready to use.
type Meter struct {
	gpus, cpus map[device][]reading
	readings   int
	dropped    bool
}

// Add adds a sample. Samples of other metrics, and values that are no amounts, count as missing.
func (m *Meter) Add(s *store.Sample) {
	gpu := s.Name == gpuPower && s.Unit == "W"
	if !gpu && (s.Name != cpuEnergy || s.Unit != "J") {
		return
	}
	r := reading{s.Time, s.Float()}
	switch {
	case !(r.value >= 0) || math.IsInf(r.value, 1): // NaN, too
	case m.readings == maxReadings:
		m.dropped = true
	case gpu:
		d := device{attempt: s.Origin.Attempt, owner: s.Labels["uuid"]}
		if d.owner == "" {
			d.owner, d.name = s.Origin.Pod+"/"+s.Origin.Container, s.Labels["gpu"]
		}
		m.gpus = m.put(m.gpus, d, r)
	default:
		m.cpus = m.put(m.cpus, device{attempt: s.Origin.Attempt, name: s.Labels["package"], pod: s.Origin.Pod}, r)
	}
}

func (m *Meter) put(all map[device][]reading, d device, r reading) map[device][]reading {
	if all == nil {
		all = make(map[device][]reading)
	}
	m.readings++
	all[d] = append(all[d], r)
	return all
}

// energy is the energy of all devices that were measured.
type energy struct {
	joules         float64
	gpus, packages int // that were measured, those of each attempt by themselves
	missing        int // samples that a straight line takes the place of
	reason         string
}

// note says of what the energy is, for people.
func (e energy) note() string {
	text := fmt.Sprintf("energy.joules is that of %s and %s, each as a whole", plural(e.gpus, "GPU"),
		plural(e.packages, "processor package"))
	if e.missing > 0 {
		text += fmt.Sprintf("; %s of power missing, bridged by straight lines", plural(e.missing, "sample"))
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// energy returns the energy of the devices; nodes are those of the pods.
func (m *Meter) energy(nodes map[string]string) (e energy) {
	switch {
	case m == nil || len(m.gpus)+len(m.cpus) == 0:
		return energy{reason: "no pod measured power: neither nvidia-smi nor a counter of a processor package could be read"}
	case m.dropped:
		return energy{reason: fmt.Sprintf("the run has more than %d samples of power", maxReadings)}
	}
	for _, d := range slices.SortedFunc(maps.Keys(m.gpus), device.compare) {
		joules, missing, reason := integrate(sorted(m.gpus[d]))
		if reason != "" {
			return energy{reason: reason}
		}
		e.joules, e.missing, e.gpus = e.joules+joules, e.missing+missing, e.gpus+1
	}
	packages := m.packages(nodes)
	for _, d := range slices.SortedFunc(maps.Keys(packages), device.compare) {
		e.joules, e.packages = e.joules+unite(packages[d]), e.packages+1
	}
	return e
}

// sorted returns readings in order of time, one for each time.
func sorted(all []reading) []reading {
	all = slices.SortedStableFunc(slices.Values(all), func(a, b reading) int { return cmp.Compare(a.at, b.at) })
	return slices.CompactFunc(all, func(a, b reading) bool { return a.at == b.at })
}

// integrate returns the energy of one device by the trapezoidal rule, from its first reading to its last one. Readings that are missing
// within are bridged, up to maxMissing in a row.
func integrate(all []reading) (joules float64, missing int, reason string) {
	if len(all) < 2 {
		return 0, 0, "the run was too short: a GPU has 1 sample of its power, and energy needs 2"
	}
	usual := interval(all)
	for i, r := range all[1:] {
		d := r.at - all[i].at
		if float64(d) > gapFactor*float64(usual) {
			lacking := int(math.Round(float64(d)/float64(usual))) - 1
			if lacking > maxMissing {
				return 0, 0, fmt.Sprintf("%d samples of the power of a GPU are missing in a row: %d at most are bridged", lacking,
					maxMissing)
			}
			missing += lacking
		}
		joules += (all[i].value + r.value) / 2 * (float64(d) / 1e9)
	}
	return joules, missing, ""
}

// interval returns the usual time between two readings: the median.
func interval(all []reading) int64 {
	intervals := make([]int64, 0, len(all)-1)
	for i, r := range all[1:] {
		intervals = append(intervals, r.at-all[i].at)
	}
	slices.Sort(intervals)
	return intervals[(len(intervals)-1)/2]
}

// packages returns the readings of each processor package, by the pods that read it. A pod whose node is not known has it to itself.
func (m *Meter) packages(nodes map[string]string) map[device][][]reading {
	all := make(map[device][][]reading)
	for _, d := range slices.SortedFunc(maps.Keys(m.cpus), device.compare) {
		of := device{attempt: d.attempt, owner: cmp.Or(nodes[d.pod], "pod "+d.pod), name: d.name}
		all[of] = append(all[of], sorted(m.cpus[d]))
	}
	return all
}

// unite returns the energy of one package that several pods have read, each from its own beginning. A time that two of them have read
// counts once.
func unite(byPod [][]reading) (joules float64) {
	slices.SortStableFunc(byPod, func(a, b []reading) int { return cmp.Compare(a[0].at, b[0].at) })
	until := int64(math.MinInt64)
	for _, all := range byPod {
		last := all[len(all)-1]
		if last.at <= until {
			continue
		}
		if before := valueAt(all, until); last.value > before {
			joules += last.value - before
		}
		until = last.at
	}
	return joules
}

// valueAt returns the value of a counter at a time, on the straight line between two readings. It is 0 before the first one.
func valueAt(all []reading, at int64) float64 {
	for i, r := range all {
		if r.at < at {
			continue
		}
		if r.at == at {
			return r.value
		}
		if i == 0 {
			return 0
		}
		before := all[i-1]
		share := float64(at-before.at) / float64(r.at-before.at)
		return before.value + (r.value-before.value)*share
	}
	return 0
}
