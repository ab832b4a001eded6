package judge

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Summary is the summary of the repetitions of one cell.
type Summary struct {
	// N is the number of repetitions that count, and Excluded that of the others,
	// whose values are NaN or infinite.
	N, Excluded int

	// Median is the median of the values. It is NaN if N is 0.
	Median float64

	// Interval is the interval of the median of the distribution. It contains Median,
	// and is nil as long as repetitions are lacking.
	Interval *Interval

	// Lacking is the number of repetitions without which there is no interval.
	Lacking int
}

// Summarise returns the summary of the repetitions of one cell.
//
// The interval lies between the order statistics X(r) and X(n+1-r), with the largest r
// for which 2·P(B < r) is at most 1 - confidence. B, the number of values below the
// median, is binomial with n and 1/2 (David and Nagaraja, Order Statistics, 3rd ed.,
// section 7.1). With a confidence of 0.95 that takes 6 repetitions.
func (j Judge) Summarise(values []float64) Summary {
	sorted, excluded := finite(values)
	n := len(sorted)
	s := Summary{N: n, Excluded: excluded, Median: median(sorted)}
	if rank := j.medianRank(n); rank > 0 {
		s.Interval = between(sorted, rank, 1-2*below(n, rank))
	} else {
		s.Lacking = j.fewest - n
	}
	return s
}

// between returns the interval from the order statistic of a rank to the one that lies
// symmetric to it.
func between(sorted []float64, rank int, level float64) *Interval {
	return &Interval{Low: sorted[rank-1], High: sorted[len(sorted)-rank], Level: level}
}

// medianRank returns the largest rank r, from 1, for which X(r) and X(n+1-r) enclose
// the median with the confidence, or 0 if there is none.
func (j Judge) medianRank(n int) int {
	low, high := 0, n/2+1 // low is a rank that holds, or none; high is one that does not
	for low+1 < high {
		if r := (low + high) / 2; within(2*below(n, r), j.alpha) {
			low = r
		} else {
			high = r
		}
	}
	return low
}

// below returns the probability that fewer than r of n values are below the median.
func below(n, r int) float64 {
	return distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(r - 1))
}

// relativeHalfWidth returns half the width of the interval, relative to the size of the
// median. It is infinite without an interval, and if only the median is 0.
func (s Summary) relativeHalfWidth() float64 {
	if s.Interval == nil {
		return math.Inf(1)
	}
	half := s.Interval.High/2 - s.Interval.Low/2
	if half == 0 {
		return 0
	}
	return half / math.Abs(s.Median)
}
