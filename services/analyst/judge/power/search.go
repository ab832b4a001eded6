package power

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// smallest returns the smallest difference that n runs a side show, if any.
func (p Planner) smallest(noise []float64, n int) (difference float64, ok bool) {
	if n < 1 || n > MaxRuns || p.mayMisorder(n) < 0 {
		return 0, false
	}
	low, high := 0.0, clamp(noise[points-1]-noise[0]) // with high, no values overlap
	const steps, precision = 64, 1e-6
	for i := 0; i < steps && high-low > precision*high; i++ {
		middle := low + (high-low)/2
		if p.shows(newShifted(noise, middle), n) {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true
}

// runs returns how many runs a side show a difference, or 0 if more than MaxRuns do.
func (p Planner) runs(noise []float64, difference float64) int {
	if !(difference > 0) { // NaN, too
		return 0
	}
	sides := newShifted(noise, difference)
	n := sort.Search(tabulated+1, func(n int) bool { return p.shows(sides, n) }) // the others take longer
	if n > tabulated {
		n += sort.Search(MaxRuns+1-n, func(more int) bool { return p.shows(sides, n+more) })
	}
	if n > MaxRuns {
		return 0
	}
	return n
}

// shows reports whether n runs a side show a difference with the power.
func (p Planner) shows(sides shifted, n int) bool {
	misordered := p.mayMisorder(n)
	if misordered < 0 {
		return false
	}
	probability := sides.approximate(float64(n), misordered)
	if misordered <= maxExact && math.Abs(probability-p.power) < maxError {
		probability = sides.exact(n, misordered)
	}
	return probability >= p.power
}

// mayMisorder returns how many pairs of values of n runs a side may be in the wrong order if
// a change is found, or -1 if none is.
func (p Planner) mayMisorder(n int) int {
	if n < len(p.misordered) {
		return p.misordered[n]
	}
	return p.judge.Misordered(n, n)
}

// uncertainty returns the factor by which the spread of noise may be larger or smaller than
// that of its distribution, with the confidence. The spread is Gini's mean difference, whose
// standard error is that of the jackknife (B. Efron and C. Stein, Annals of Statistics 9,
// 1981), with Student's distribution. Autocorrelation makes it larger by the factor that
// holds for a variance.
func (p Planner) uncertainty(noise judge.Noise) float64 {
	spread, without := meanDifferences(noise.Deviations)
	if spread == 0 {
		return 1
	}
	n, squares := float64(noise.N), 0.0
	for _, d := range without {
		squares += (d/spread - 1) * (d/spread - 1)
	}
	rho := noise.Autocorrelation
	deviation := math.Sqrt((n - 1) / n * squares * (1 + rho*rho) / (1 - rho*rho))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: noise.Freedom}
	return math.Exp(min(100, t.Quantile((1+p.confidence)/2)*deviation))
}

// meanDifferences returns the mean difference of all pairs of sorted values, in units of
// the largest one, and those without each value.
func meanDifferences(sorted []float64) (all float64, without []float64) {
	n := float64(len(sorted))
	unit := max(-sorted[0], sorted[len(sorted)-1])
	if unit <= 0 {
		return 0, nil
	}
	total, before := 0.0, 0.0
	for _, v := range sorted {
		total += v / unit
	}
	sum := 0.0
	without = make([]float64, len(sorted))
	for i, v := range sorted {
		v /= unit
		below, above := float64(i), n-1-float64(i)
		without[i] = v*below - before + (total - before - v) - v*above // from all others
		sum += without[i]
		before += v
	}
	sum /= 2
	for i, d := range without {
		without[i] = (sum - d) * 2 / (n - 1) / (n - 2)
	}
	return sum * 2 / n / (n - 1), without
}
