package extract

import (
	"github.com/benchmark-ai/bai/descriptors/units"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Declared has the units and directions that a descriptor declares for metrics, by the metric's name. Any goroutine may use it.
type Declared map[string]declaration

type declaration struct{ unit, direction string }

// Declare returns the declarations of metrics. Of several with one name the first counts.
func Declare(metrics []pod.Metric) Declared {
	d := make(Declared, len(metrics))
	for _, m := range metrics {
		if _, ok := d[m.Name]; !ok {
			d[m.Name] = declaration{unit: m.Unit, direction: m.Direction}
		}
	}
	return d
}

// Fill sets the declared unit and direction of the metric on samples from any source, and converts values to that unit. A sample keeps a
// unit that cannot be converted, and a direction of which the declaration says nothing.
func (d Declared) Fill(samples []event.Sample) {
	if len(d) == 0 {
		return
	}
	for i := range samples {
		s := &samples[i]
		of, ok := d[s.Name]
		if !ok {
			continue
		}
		if s.Unit != of.unit {
			convert(s, of.unit)
		}
		if of.direction != "" {
			s.Direction = of.direction
		}
	}
}

// convert converts a sample to a unit, if it can be.
func convert(s *event.Sample, unit string) {
	v, in := units.Convert(s.Float(), s.Unit, unit)
	if in != s.Unit && s.Unit != "" && s.Value != nil {
		s.Set(v)
	}
	s.Unit = in
}
