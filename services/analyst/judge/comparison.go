package judge

import (
	"math"
	"slices"
)

// A Direction says which of two values is the better one: Higher, Lower, or with any
// other value, such as the empty one, none. The texts are those of descriptors.
type Direction string

// The directions.
const (
	Higher Direction = "higher"
	Lower  Direction = "lower"
)

// A Verdict is the result of a comparison.
type Verdict string

// The verdicts.
const (
	// Better and Worse: the other cell differs from the base, to this side by the
	// direction.
	Better Verdict = "better"
	Worse  Verdict = "worse"

	// Different: the cells differ, and the direction does not say which one is better.
	Different Verdict = "different"

	// Tie: the values show no difference. There may be one that is small beside the
	// noise: the interval of the shift says how large it may be.
	Tie Verdict = "tie"

	// Insufficient: the repetitions are too few to show any difference.
	Insufficient Verdict = "insufficient"
)

// An Estimate is a value with its interval, which contains it.
type Estimate struct {
	Value    float64
	Interval Interval
}

// Comparison says how another cell differs from a base.
type Comparison struct {
	Verdict Verdict

	// P is the probability of values that differ as much or more, if both cells have one
	// distribution. It is 1 if the verdict is Insufficient.
	P float64

	// Shift is how much larger the values of the other cell are, in their unit. It is
	// nil if the verdict is Insufficient.
	Shift *Estimate

	// Percent is Shift in percent of the size of the base's median: its sign is that of
	// Shift. It is nil if Shift is, or if that median is 0.
	Percent *Estimate

	// Base and Other are the numbers of repetitions that count on either side, and
	// LackingBase and LackingOther those without which the verdict is Insufficient.
	Base, Other               int
	LackingBase, LackingOther int
}

// fewestCompared is how many repetitions a side has at least that is compared.
const fewestCompared = 4

// Compare compares another cell with a base. Swapping the two swaps Better and Worse and
// the sign of the shift, and changes nothing else but the base of the percents.
//
// The test is the two-sided one of Mann and Whitney. P is exact, also with ties, by the
// distribution of all arrangements of the values at hand; where these are more than 2^53,
// or the values more than 200, it is the normal approximation with corrections for ties
// and continuity. Shift is the estimate of Hodges and Lehmann, the median of all
// differences between a value of other and one of base. Its interval has the shifts that
// the same test does not reject. It contains 0 if the verdict is Tie; otherwise 0 is
// outside, or an end of the interval if values are equal. Time and memory grow with the
// product of the numbers of values.
func (j Judge) Compare(direction Direction, base, other []float64) Comparison {
	x, _ := finite(base)
	y, _ := finite(other)
	c := Comparison{Verdict: Insufficient, P: 1, Base: len(x), Other: len(y)}
	if !j.suffices(len(x), len(y)) {
		fewest := j.fewestASide()
		c.LackingBase, c.LackingOther = max(0, fewest-len(x)), max(0, fewest-len(y))
		return c
	}
	d, u := newNullDistribution(len(x), len(y), tiesOf(x, y)), twiceU(x, y)
	low, high := d.critical(j.alpha)
	c.P = d.p(u)
	c.Verdict = verdict(direction, u <= low, u >= high)
	c.Shift = shift(differences(x, y), low, high)
	c.Shift.Interval.Level = 1 - d.atMost(low) - d.atLeast(high)
	if c.Verdict == Tie { // where even values that do not overlap are no difference
		c.Shift.Interval.Low, c.Shift.Interval.High = min(c.Shift.Interval.Low, 0), max(c.Shift.Interval.High, 0)
	}
	c.Percent = percent(c.Shift, math.Abs(median(x)))
	return c
}

// suffices reports whether a test of n and m values can reject its hypothesis: the two
// most extreme arrangements are rare enough.
func (j Judge) suffices(n, m int) bool {
	return min(n, m) >= fewestCompared && within(2/arrangements(n+m, n), j.alpha)
}

// fewestASide returns the number of repetitions from which on two cells that have as many
// can be compared.
func (j Judge) fewestASide() int {
	return fewestFor(j.alpha, 1)
}

// fewestFor returns from how many repetitions a side on one of several tests, whose level
// is adjusted for their number, can reject its hypothesis.
func fewestFor(alpha float64, tests int) int {
	n := fewestCompared
	for !within(2/arrangements(2*n, n)*float64(tests), alpha) {
		n++
	}
	return n
}

// verdict returns the verdict on values that are lower or higher than those of the base.
func verdict(d Direction, lower, higher bool) Verdict {
	switch {
	case !lower && !higher:
		return Tie
	case d == Higher && higher, d == Lower && lower:
		return Better
	case d == Higher, d == Lower:
		return Worse
	}
	return Different
}

// differences returns all differences between a value of y and one of x, sorted. A
// difference that exceeds float64 is the largest there is.
func differences(x, y []float64) []float64 {
	all := make([]float64, 0, len(x)*len(y))
	for _, a := range x {
		for _, b := range y {
			all = append(all, clamp(b-a))
		}
	}
	slices.Sort(all)
	return all
}

// shift returns the median of sorted differences, and the interval of the shifts for which
// twice U is above low and below high, the values that a test rejects.
//
// After a shift by d, twice U is 2·#(differences > d) + #(differences = d). It falls as d
// rises, in steps at the differences, so that these are the ends of the interval. Where
// the test rejects no value at one end, that end is the outermost difference.
func shift(differences []float64, low, high int) *Estimate {
	n := len(differences)
	first := max(0, n-(high+1)/2) // of the differences d with 2·#(differences > d) < high
	last := n - 1 - max(0, low)/2 // of those with 2·#(differences >= d) > low
	return &Estimate{Value: median(differences), Interval: Interval{Low: differences[first], High: differences[last]}}
}

// percent returns an estimate in percent of a base, or nil if the base is 0.
func percent(e *Estimate, base float64) *Estimate {
	if base == 0 {
		return nil
	}
	of := func(v float64) float64 { return clamp(v / base * 100) }
	return &Estimate{Value: of(e.Value), Interval: Interval{
		Low: of(e.Interval.Low), High: of(e.Interval.High), Level: e.Interval.Level,
	}}
}

// clamp returns v, or the largest number of its sign if v is infinite.
func clamp(v float64) float64 {
	return max(-math.MaxFloat64, min(v, math.MaxFloat64))
}

// Misordered returns how many of the n·m pairs of values of two sides may be in the wrong
// order if Compare finds a difference and no values are equal: those in which the value of
// the side with the larger values is the smaller one. It is -1 if no values are enough.
func (j Judge) Misordered(n, m int) int {
	if !j.suffices(n, m) {
		return -1
	}
	var ties []int // none, which the approximation needs no list for
	if isExact(n, m) {
		ties = slices.Repeat([]int{1}, n+m)
	}
	low, _ := newNullDistribution(n, m, ties).critical(j.alpha)
	return low / 2
}
