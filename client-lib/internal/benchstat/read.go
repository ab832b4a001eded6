package benchstat

import (
	"io"

	"golang.org/x/perf/benchfmt"
)

// A Measurement is the values of one unit of one benchmark.
type Measurement struct {
	Benchmark string // full name, without Benchmark in front
	Package   string // as the text has it; may be empty
	Unit      string // in base units: sec/op for ns/op
	Better    int    // which values are better, as the text says: 1 for higher, -1 for lower, else 0
	Values    []float64
}

// Read reads an input, and returns its measurements in the order of their first lines. It writes
// lines that cannot be read on warnings, as Print does.
func Read(in Input, warnings io.Writer) ([]Measurement, error) {
	m := measurementsReader{at: map[measurementKey]int{}}
	r := newResults()
	if err := r.each(sources([]Input{in})[0], warnings, m.add); err != nil {
		return nil, err
	}
	for i := range m.all {
		m.all[i].Better = r.reader.Units().GetBetter(m.all[i].Unit)
	}
	return m.all, nil
}

type measurementKey struct{ benchmark, pkg, unit string }

type measurementsReader struct {
	all []Measurement
	at  map[measurementKey]int // places in all
}

// add adds the measurements of one line.
func (m *measurementsReader) add(line *benchfmt.Result) {
	for _, v := range line.Values {
		key := measurementKey{string(line.Name.Full()), line.GetConfig("pkg"), v.Unit}
		i, ok := m.at[key]
		if !ok {
			i = len(m.all)
			m.at[key] = i
			m.all = append(m.all, Measurement{Benchmark: key.benchmark, Package: key.pkg, Unit: key.unit})
		}
		m.all[i].Values = append(m.all[i].Values, v.Value)
	}
}
