package judge

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// Limits up to which the distribution of a rank sum is computed exactly. With up to
// maxArrangements the counts of arrangements are exact in float64.
const (
	maxArrangements = 1 << 53
	maxExact        = 200 // values on both sides together
)

// twiceU returns twice the statistic U of Mann and Whitney: for each pair of x and y 2
// if the value of y is the larger one, and 1 if they are equal.
func twiceU(x, y []float64) (u int) {
	less, notMore := 0, 0 // values of x below that of y, and those that are not above
	for _, v := range y { // both are sorted
		for less < len(x) && x[less] < v {
			less++
		}
		for notMore < len(x) && x[notMore] <= v {
			notMore++
		}
		u += less + notMore
	}
	return u
}

// arrangements returns n over k, the number of ways in which the values of two sides can
// be arranged. It is infinite if it is more than 1e300.
func arrangements(n, k int) float64 {
	k = min(k, n-k)
	c := 1.0
	for i := 1; i <= k; i++ {
		if c > 1e300 {
			return math.Inf(1)
		}
		c = c * float64(n-k+i) / float64(i)
	}
	return math.Round(c)
}

// nullDistribution is the distribution of twice U under the hypothesis that both sides
// come from one distribution, given the ties of their values: all arrangements of the
// values on the sides have the same probability.
type nullDistribution struct {
	pairs int // twice U lies between 0 and twice as many

	// cumulated[u] is the number of arrangements in which twice U is at most u; nil
	// stands for the normal approximation, with a standard deviation of sigma.
	cumulated []float64
	sigma     float64
}

// newNullDistribution returns the distribution for n values of x and m of y, whose ties
// are the numbers of equal values among both.
func newNullDistribution(n, m int, ties []int) nullDistribution {
	d := nullDistribution{pairs: n * m}
	if !isExact(n, m) {
		d.sigma = 2 * sigma(n, m, ties)
		return d
	}
	d.cumulated = countArrangements(ties, min(n, m))
	if m > n {
		slices.Reverse(d.cumulated) // of x: U of y is what is lacking of all pairs
	}
	for u := 1; u < len(d.cumulated); u++ {
		d.cumulated[u] += d.cumulated[u-1]
	}
	return d
}

// isExact reports whether the distribution of n and m values is computed exactly.
func isExact(n, m int) bool {
	return n+m <= maxExact && arrangements(n+m, n) <= maxArrangements
}

// sigma returns the standard deviation of U, with the correction for ties (Lehmann,
// Nonparametrics, 1975, section 1.4).
func sigma(n, m int, ties []int) float64 {
	all := float64(n + m)
	correction := 0.0
	for _, t := range ties {
		t := float64(t)
		correction += t * (t*t - 1)
	}
	return math.Sqrt(float64(n) * float64(m) / 12 * (all + 1 - correction/(all*(all-1))))
}

// countArrangements returns, by twice U, the number of subsets of k of the values, whose
// ties are given. It counts subsets by the sum of their doubled midranks, value by value
// (the shift algorithm of Streitberg and Röhmel, 1986). Twice U of a subset is this sum
// without the least one there is for its size, size·(size+1).
func countArrangements(ties []int, k int) []float64 {
	ranks := doubledMidranks(ties)
	counts := make([][]float64, k+1) // by the size of a subset, and twice its U
	for size := range counts {
		counts[size] = make([]float64, 2*size*(len(ranks)-size)+1)
	}
	counts[0][0] = 1
	stride := 1
	if len(ties) == len(ranks) {
		stride = 2 // without ties, twice U is even
	}
	sums := cumulated(ranks)
	for i, rank := range ranks {
		for size := min(k, i+1); size > 0; size-- {
			most := sums[i] - sums[i-size+1] - (size-1)*size // twice U of the last size-1 values before
			addShifted(counts[size], counts[size-1], rank-2*size, most, stride)
		}
	}
	return counts[k]
}

// cumulated returns the sums of the first values, from none to all.
func cumulated(values []int) []int {
	sums := make([]int, len(values)+1)
	for i, v := range values {
		sums[i+1] = sums[i] + v
	}
	return sums
}

// addShifted adds the counts of subsets without a value to those of subsets with it, whose
// U is larger by half of shift. No subset without it has more than most.
func addShifted(with, without []float64, shift, most, stride int) {
	for u := max(0, -shift); u <= most; u += stride {
		with[u+shift] += without[u]
	}
}

// doubledMidranks returns twice the rank of each value, in ascending order. Equal values
// have the mean of their ranks.
func doubledMidranks(ties []int) (ranks []int) {
	before := 0
	for _, t := range ties {
		for range t {
			ranks = append(ranks, 2*before+t+1)
		}
		before += t
	}
	return ranks
}

// tiesOf returns the numbers of equal values among two sorted sides, in ascending order of
// the values.
func tiesOf(x, y []float64) (ties []int) {
	all := slices.Concat(x, y)
	slices.Sort(all)
	for i, v := range all {
		if i > 0 && v == all[i-1] {
			ties[len(ties)-1]++
		} else {
			ties = append(ties, 1)
		}
	}
	return ties
}

// atMost returns the probability that twice U is at most u.
func (d nullDistribution) atMost(u int) float64 {
	switch {
	case u < 0:
		return 0
	case u >= 2*d.pairs:
		return 1
	case d.cumulated != nil:
		return d.cumulated[u] / d.cumulated[2*d.pairs]
	}
	return d.approximate(u - d.pairs)
}

// atLeast returns the probability that twice U is at least u.
func (d nullDistribution) atLeast(u int) float64 {
	switch {
	case u <= 0:
		return 1
	case u > 2*d.pairs:
		return 0
	case d.cumulated != nil:
		return (d.cumulated[2*d.pairs] - d.cumulated[u-1]) / d.cumulated[2*d.pairs]
	}
	return d.approximate(d.pairs - u)
}

// approximate returns the probability that twice U is at most distance above its mean, by
// the normal approximation with correction for continuity.
func (d nullDistribution) approximate(distance int) float64 {
	if d.sigma == 0 {
		return 1 // all values are equal
	}
	return distuv.UnitNormal.CDF(float64(distance+1) / d.sigma)
}

// p returns the two-sided p-value of twice U: twice the probability of the tail on its side
// of the mean, and 1 at the mean.
func (d nullDistribution) p(u int) float64 {
	switch {
	case u < d.pairs:
		return min(1, 2*d.atMost(u))
	case u > d.pairs:
		return min(1, 2*d.atLeast(u))
	}
	return 1
}

// critical returns the largest value of twice U below its mean whose p-value is at most
// level, and the smallest one above the mean. Both are values that occur: where there is
// none, they are -1, and 1 more than the largest there is.
func (d nullDistribution) critical(level float64) (low, high int) {
	low = sort.Search(d.pairs, func(u int) bool { return !within(d.p(u), level) }) - 1
	for low >= 0 && d.atMost(low) == d.atMost(low-1) {
		low--
	}
	above := d.pairs + 1
	high = above + sort.Search(d.pairs, func(i int) bool { return within(d.p(above+i), level) })
	for high <= 2*d.pairs && d.atLeast(high) == d.atLeast(high+1) {
		high++
	}
	return low, high
}
