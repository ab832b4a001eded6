package judge

import (
	"fmt"
	"math"
)

// maxRepetitions is how many repetitions a rule to stop may allow.
const maxRepetitions = 10_000

// StopWhen says when a cell has enough repetitions.
type StopWhen struct {
	// HalfWidth is how wide half the interval of the median may be, relative to the size
	// of the median: 0.02 is 2 %.
	HalfWidth float64

	// Min and Max are how many repetitions there are at least, and at most.
	Min, Max int
}

// Stopping is a rule to stop for the cells with one StopWhen. Its methods may be called
// concurrently.
type Stopping struct {
	when  StopWhen
	ranks []int   // of the order statistic at the lower end, by the number of repetitions; 0: no interval
	level float64 // the probability that all intervals cover the median
}

// A StopReason says why a cell needs no further repetition.
type StopReason string

// The reasons.
const (
	Precise  StopReason = "precise"  // the interval is narrow enough
	MaxCount StopReason = "max"      // there are as many repetitions as there may be
	GoOn     StopReason = "continue" // the cell needs further ones
)

// StopDecision says whether a cell has enough repetitions, and what they say.
type StopDecision struct {
	Reason StopReason

	// Summary is that of the repetitions. Its interval is wider than the one of
	// Summarise, since it holds for all decisions on the cell together.
	Summary Summary

	// HalfWidth is half the width of the interval, relative to the size of the median.
	// It is infinite without an interval, and if only the median is 0.
	HalfWidth float64
}

// Stopping returns the rule to stop for when. An error names a number that is out of its
// range: HalfWidth is above 0, Min is at least 1, and Max is at least Min, at most 10,000,
// and enough for an interval.
//
// All intervals, one for each number of repetitions from Min to Max, cover the median with
// the confidence together, so that the last one does whenever the rule stops. Each lies
// between order statistics. Their ranks spend the probability of an interval that misses
// the median, alpha·(n/Max)^1.5 until n repetitions (alpha spending; Lan and DeMets, 1983).
// It is computed exactly, by the random walk of the number of values below the median.
func (j Judge) Stopping(when StopWhen) (*Stopping, error) {
	if math.IsNaN(when.HalfWidth) || when.HalfWidth <= 0 {
		return nil, fmt.Errorf("the half width is %v: want more than 0", when.HalfWidth)
	}
	fewest := j.fewest
	if when.Min < 1 || when.Max < when.Min || when.Max < fewest || when.Max > maxRepetitions {
		return nil, fmt.Errorf("repetitions are %d to %d: want at least 1 to %d, and at most %d", when.Min,
			when.Max, fewest, maxRepetitions)
	}
	ranks, missed := spend(j.alpha, when.Min, when.Max)
	return &Stopping{when: when, ranks: ranks, level: 1 - missed}, nil
}

// spend returns for each number of repetitions the rank of the order statistic that is the
// lower end of the interval, or 0, and the probability that an interval misses the median.
func spend(alpha float64, first, last int) (ranks []int, missed float64) {
	ranks = make([]int, last+1)
	walk := make([]float64, last+1) // by the number of values below the median: the probability that no interval missed it
	walk[0] = 1
	rank := 0
	for n := 1; n <= last; n++ {
		step(walk, rank, n)
		rank = 0
		limit := alpha * math.Pow(float64(n)/float64(last), 1.5)
		for n >= first && 2*(rank+1) <= n && within(missed+walk[rank]+walk[n-rank], limit) {
			missed += walk[rank] + walk[n-rank]
			walk[rank], walk[n-rank] = 0, 0
			rank++
		}
		ranks[n] = rank
	}
	return ranks, missed
}

// step adds the n-th repetition to a walk, of which rank values at either end are 0.
func step(walk []float64, rank, n int) {
	for b := n - rank; b > rank; b-- {
		walk[b] = (walk[b] + walk[b-1]) / 2
	}
	walk[rank] /= 2
}

// Decide returns whether a cell whose repetitions have these values, in their order, needs
// a further one. Values after the first Max are left out. A caller decides after each
// repetition, or after some of them, and stops at the first decision that is not GoOn.
// Values that are NaN or infinite count for Max only.
func (s *Stopping) Decide(values []float64) StopDecision {
	values = values[:min(len(values), s.when.Max)]
	sorted, excluded := finite(values)
	n := len(sorted)
	d := StopDecision{Reason: GoOn, Summary: Summary{N: n, Excluded: excluded, Median: median(sorted)}}
	if rank := s.ranks[n]; rank > 0 {
		d.Summary.Interval = between(sorted, rank, s.level)
	} else {
		d.Summary.Lacking = s.lacking(n)
	}
	d.HalfWidth = d.Summary.relativeHalfWidth()
	switch {
	case d.HalfWidth <= s.when.HalfWidth:
		d.Reason = Precise
	case len(values) == s.when.Max:
		d.Reason = MaxCount
	}
	return d
}

// lacking returns after how many further repetitions there is an interval.
func (s *Stopping) lacking(n int) (further int) {
	for s.ranks[n+further] == 0 {
		further++
	}
	return further
}
