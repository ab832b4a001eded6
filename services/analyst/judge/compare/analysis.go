package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// analysis is a comparison, with what its verdict is made of.
type analysis struct {
	Comparison
	direction judge.Direction
	levels    [][]float64 // numbers of the scale: of the history, the base and the other side
	rejected  bool        // by the test of this metric alone
	larger    bool        // the values of the other side, if it is rejected
	exactly   bool        // all values of both sides are equal
}

// analyse compares the sides of one metric, without a verdict.
func (c Comparer) analyse(m Metric) analysis {
	base, other := finite(m.Base), finite(m.Other)
	a := analysis{direction: m.Direction}
	a.Base, a.Other = c.side(m.Base), c.side(m.Other)
	a.P, a.AdjustedP = 1, 1
	a.Scale = judge.ScaleOf(a.Base.Median, values(base), values(other), m.History)
	a.levels = [][]float64{a.Scale.Numbers(m.History), a.Scale.Numbers(values(base)), a.Scale.Numbers(values(other))}
	if !c.test(&a) {
		c.predict(&a, deviations(a.Scale, base), deviations(a.Scale, other))
	}
	return a
}

// side summarises the runs of a side.
func (c Comparer) side(runs []Point) Side {
	s := Side{Summary: c.judge.Summarise(values(runs))}
	for _, r := range finite(runs) {
		s.Samples += r.Samples
	}
	return s
}

// values returns the values of runs.
func values(runs []Point) []float64 {
	all := make([]float64, len(runs))
	for i, r := range runs {
		all[i] = r.Value
	}
	return all
}

// finite returns the runs whose values count.
func finite(runs []Point) []Point {
	return slices.DeleteFunc(slices.Clone(runs), func(r Point) bool { return math.IsNaN(r.Value) || math.IsInf(r.Value, 0) })
}

// test compares by ranks, and reports whether the runs are enough.
func (c Comparer) test(a *analysis) bool {
	t := c.judge.Compare(judge.Higher, a.levels[1], a.levels[2])
	if t.Verdict == judge.Insufficient {
		a.LackingBase, a.LackingOther = t.LackingBase, t.LackingOther
		return false
	}
	change := a.Scale.Estimate(*t.Shift)
	a.Test, a.P, a.Change = MannWhitney, t.P, &change
	a.rejected, a.larger = t.Verdict != judge.Tie, t.Verdict == judge.Better
	x, y := slices.Sorted(slices.Values(a.levels[1])), slices.Sorted(slices.Values(a.levels[2]))
	a.exactly = x[0] == x[len(x)-1] && y[0] == x[0] && y[len(y)-1] == x[0]
	return true
}

// adjust adjusts the p-values of all tests by the procedure of Benjamini and Hochberg: the
// least p·m/rank of those that are not smaller.
func adjust(all []analysis) {
	var tested []*analysis
	for i := range all {
		if all[i].Test != "" {
			tested = append(tested, &all[i])
		}
	}
	slices.SortStableFunc(tested, func(a, b *analysis) int { return cmp.Compare(b.P, a.P) })
	least := 1.0
	for i, a := range tested {
		rank := len(tested) - i
		least = min(least, a.P*float64(len(tested))/float64(rank))
		a.AdjustedP = max(a.P, least) // but for rounding
	}
}
