package rule_test

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
)

// BenchmarkDecide decides on the newest points of a series whose level did not change, that has a period as a week is, and whose level changed.
func BenchmarkDecide(b *testing.B) {
	periodic := make([]float64, rule.MaxPoints)
	for i := range periodic {
		periodic[i] = 100 + float64(i*7%11)/5
	}
	for name, values := range map[string][]float64{
		"noise": noisy(1, 1, [2]float64{100, rule.MaxPoints}), "period": periodic, "step": noisy(1, 1, [2]float64{100, rule.MaxPoints - 40}, [2]float64{92, 40}),
	} {
		b.Run(name, func(b *testing.B) {
			w := watch(b, regression())
			w.points = series(values...)
			in := w.input(at(rule.MaxPoints).Add(time.Minute))
			b.ReportAllocs()
			for b.Loop() {
				rule.Decide(in)
			}
		})
	}
}
