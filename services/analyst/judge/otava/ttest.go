package otava

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// A tTest compares means. It may be used for one series at a time.
type tTest struct {
	squares []float64 // scratch
}

// compare returns the means of two sides, neither of which is empty, and the probability
// that means of one level differ as much. It is NaN if all values of the sides are the
// same, or too large for it.
func (t *tTest) compare(left, right []float64) (before, after, p float64) {
	n, m := float64(len(left)), float64(len(right))
	before, varLeft := t.moments(left)
	after, varRight := t.moments(right)
	free := n + m - 2 // degrees of freedom
	if free == 0 {
		return before, after, 1
	}
	pooled := (float64((n-1)*varLeft) + float64((m-1)*varRight)) / free
	return before, after, twoSided((before-after)/math.Sqrt(float64(pooled*(1/n+1/m))), free)
}

// moments returns the mean and the variance of values, with their number for its divisor,
// where textbooks have one less. The variance has gone through a standard deviation, and
// has the rounding error of that.
func (t *tTest) moments(values []float64) (mean, variance float64) {
	n := float64(len(values))
	mean = sum(values) / n
	t.squares = t.squares[:0]
	for _, v := range values {
		t.squares = append(t.squares, float64((v-mean)*(v-mean)))
	}
	deviation := math.Sqrt(sum(t.squares) / n)
	if len(values) < 2 {
		deviation = 0
	}
	return mean, float64(deviation * deviation)
}

// twoSided returns the probability that Student's distribution has a value as far from 0
// as t, or NaN for NaN.
func twoSided(t, free float64) float64 {
	if math.IsNaN(t) {
		return t
	}
	square := float64(t * t)
	if square < 1 { // here the complement is exact, and scipy's subtraction too rounds twice
		return 0.5 + (0.5 - distuv.Beta{Alpha: 0.5, Beta: free / 2}.CDF(square/(free+square)))
	}
	return distuv.Beta{Alpha: free / 2, Beta: 0.5}.CDF(free / (free + square))
}
