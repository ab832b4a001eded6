package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// clipFrom is from how many standard deviations on a value counts as that many.
const clipFrom = 3.0

// predict compares by the spread of those levels that have enough values, or says what is
// lacking. The deviations are the standard errors of the runs of each side on the scale.
func (c Comparer) predict(a *analysis, base, other []float64) {
	long := slices.DeleteFunc(slices.Clone(a.levels), func(l []float64) bool { return len(l) < FewestHistory })
	if len(long) == 0 {
		a.LackingHistory = FewestHistory - len(a.levels[0])
		return
	}
	a.LackingBase, a.LackingOther = max(0, 1-len(base)), max(0, 1-len(other))
	if a.LackingBase+a.LackingOther > 0 {
		return
	}
	n := c.judge.Noise(long...)
	a.Test, a.History, a.Autocorrelation = Prediction, n.N, n.Autocorrelation
	difference := clamp(level(a.levels[2], n.Scale) - level(a.levels[1], n.Scale))
	deviation := math.Hypot(standardError(base, n.Scale), standardError(other, n.Scale))
	half := 0.0
	if deviation > 0 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n.Freedom}
		a.P = min(1, 2*t.CDF(-math.Abs(difference)/deviation))
		half = t.Quantile(1-c.level/2) * deviation
	} else {
		a.P = constant(difference, len(base)+len(other), n.N)
	}
	a.rejected, a.larger = a.P <= c.level, difference > 0
	change := a.Scale.Estimate(c.around(difference, half, a.rejected))
	a.Change = &change
}

// around returns an estimate whose interval agrees with the test: it contains 0 unless that
// is rejected.
func (c Comparer) around(difference, half float64, rejected bool) judge.Estimate {
	e := judge.Estimate{Value: difference, Interval: judge.Interval{Low: difference - half, High: difference + half, Level: 1 - c.level}}
	if !rejected {
		e.Interval.Low, e.Interval.High = min(e.Interval.Low, 0), max(e.Interval.High, 0)
	}
	return e
}

// constant returns the probability of a difference of runs where values of the history do
// not differ: that the one that differs among all is one of the runs.
func constant(difference float64, runs, history int) float64 {
	if difference == 0 {
		return 1
	}
	return float64(runs) / float64(runs+history)
}

// level returns the mean of values in which those far from their median count as less far,
// so that a spike among many is none of it.
func level(values []float64, scale float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	median := sorted[(n-1)/2]/2 + sorted[n/2]/2
	limit := min(clipFrom*scale, math.MaxFloat64/4)
	sum := 0.0
	for _, v := range sorted {
		sum += max(-limit, min(v-median, limit)) / float64(n)
	}
	return clamp(median + sum)
}

// clamp returns v, or the largest number of its sign if v is infinite.
func clamp(v float64) float64 {
	return max(-math.MaxFloat64, min(v, math.MaxFloat64))
}

// standardError returns that of the mean of runs, whose own ones are given. The spread
// between runs has the errors of usual runs in it: a larger one counts instead.
func standardError(deviations []float64, scale float64) float64 {
	sum := 0.0
	for _, d := range deviations {
		sum = math.Hypot(sum, max(d, scale)/float64(len(deviations)))
	}
	return sum
}

// deviations returns the standard errors of runs on a scale, 0 where it is not known.
func deviations(s judge.Scale, runs []Point) []float64 {
	all := make([]float64, len(runs))
	for i, r := range runs {
		d := r.StandardError
		if s.Kind == judge.Ratio {
			d /= r.Value
		}
		if d > 0 && !math.IsInf(d, 0) { // NaN is not
			all[i] = d
		}
	}
	return all
}
