package extract

import (
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Declared are the units and directions that a descriptor gives to metrics, by
// the metric's name. Any goroutine may use them.
type Declared map[string]declaration

type declaration struct{ unit, direction string }

// Declare returns what metrics say. Of several with one name the first counts.
func Declare(metrics []pod.Metric) Declared {
	d := make(Declared, len(metrics))
	for _, m := range metrics {
		if _, ok := d[m.Name]; !ok {
			d[m.Name] = declaration{unit: m.Unit, direction: m.Direction}
		}
	}
	return d
}

// Fill gives samples, however they came, the declared unit and direction of their
// metric. A sample that has a unit or a direction keeps it.
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
		if s.Unit == "" {
			s.Unit = of.unit
		}
		if s.Direction == "" {
			s.Direction = of.direction
		}
	}
}
