package summarise

import (
	"fmt"
	"math"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/units"
)

// count returns how many things the samples of a metric stand for: the last value of each of its series, or the sum of all; or why that
// is not known.
func (t *accumulator) count(metric string, how descriptors.Count) (n float64, reason string) {
	unit, found := "", false
	var sum, lost float64
	for _, of := range t.series {
		if of.sample.Name != metric || len(of.values) == 0 {
			continue
		}
		if found && of.sample.Unit != unit {
			return 0, fmt.Sprintf("%s has values in %q and in %q", metric, unit, of.sample.Unit)
		}
		unit, found = of.sample.Unit, true
		values := of.values
		if how == descriptors.LastSample {
			values = []float64{of.last.value}
		}
		for _, v := range values {
			sum, lost = kahanAdd(sum, lost, v)
		}
	}
	switch {
	case t.partial[metric]:
		return 0, fmt.Sprintf("not all samples of %s are summarised: emit fewer series or samples", metric)
	case !found && t.closed:
		return 0, fmt.Sprintf("no series of %s is among the first ones of the run, which are summarised: emit fewer series", metric)
	case !found:
		return 0, fmt.Sprintf("the run has no values of %s", metric)
	case units.IsRate(unit):
		return 0, fmt.Sprintf("%s is a rate (%s), and no number of things", metric, unit)
	case math.IsInf(sum, 0): // so that lost is NaN
		return sum, ""
	}
	return sum + lost, ""
}
