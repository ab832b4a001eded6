package hostinfo

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// MetricCPUEnergy is the energy in J that a processor package, whose name is the label
// "package", has used since the benchmark began. It is of the whole package, whoever used it.
const MetricCPUEnergy = "system.cpu.energy"

// EnergyInterval is how often ReadEnergy has to be called at least, where Energy is not: a
// package that uses 1 kW takes the counter around in some minutes.
const EnergyInterval = time.Minute

// raplZone is a counter of the energy of one processor package, by RAPL (running average
// power limit) in the kernel's power capping framework.
type raplZone struct {
	dir, name string
	max       int64   // the largest value of the counter; the next one is 0
	last      int64   // last value
	used      float64 // since the first value; it is whole, and exact up to 2^53 µJ, which is 285 years at 1 W
}

// raplZones returns the counters of the processor packages that can be read here: kernels
// from 5.10 on let only root read them. Parts of a package, which count again what it counts,
// and the platform's total are left out.
func (f Files) raplZones() []raplZone {
	var all []raplZone
	for _, dir := range f.glob("/sys/class/powercap/intel-rapl:[0-9]*") {
		name := f.text(dir + "/name")
		if strings.Count(path.Base(dir), ":") != 1 || !strings.HasPrefix(name, "package-") {
			continue
		}
		limit, okLimit := f.number(dir + "/max_energy_range_uj")
		value, ok := f.number(dir + "/energy_uj")
		if ok && okLimit && limit > 0 && value >= 0 && value <= limit {
			all = append(all, raplZone{dir: dir, name: name, max: limit, last: value})
		}
	}
	return all
}

// read reads the counter, and reports whether it could. A value below the one before has
// wrapped around once: the counter takes minutes from 0 to its largest value.
func (z *raplZone) read(f Files) bool {
	value, ok := f.number(z.dir + "/energy_uj")
	if !ok || value < 0 || value > z.max {
		return false
	}
	delta := value - z.last
	if delta < 0 {
		delta += z.max + 1
	}
	z.last, z.used = value, z.used+float64(delta)
	return true
}

// ReadEnergy reads the counters of energy, which Energy does too: of a counter that has gone
// around more than once since the last reading the rest is lost.
func (m *Meter) ReadEnergy() {
	for i := range m.zones {
		m.zones[i].read(m.files)
	}
}

// Energy returns the energy since NewMeter, as lines of the platform's client libraries: one
// for each package whose counter can be read, and nil without one.
func (m *Meter) Energy() (lines []byte) {
	now := time.Now()
	for i := range m.zones {
		z := &m.zones[i]
		if !z.read(m.files) {
			continue
		}
		label, err := json.Marshal(z.name)
		if err != nil {
			continue // cannot be: it is a text
		}
		lines = fmt.Appendf(lines, "{%q: %s, \"@time\": %d.%09d, \"@unit\": {%q: \"J\"}, \"@labels\": {\"package\": %s}}\n",
			MetricCPUEnergy, strconv.FormatFloat(z.used/1e6, 'f', -1, 64), now.Unix(), now.Nanosecond(), MetricCPUEnergy, label)
	}
	return lines
}
