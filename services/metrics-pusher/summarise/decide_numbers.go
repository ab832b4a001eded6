package summarise

import (
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// method describes how the numbers are computed.
const method = "median and percentiles: linear interpolation between order statistics (Hyndman and Fan 1996, type 7); " +
	"sd: of the sample (n-1); interval: of the median, between order statistics with symmetric ranks, " +
	"level exact by the binomial distribution (David and Nagaraja, Order Statistics, 3rd ed., 7.1), 0.95 at least, none below 6 samples; " +
	"first and last: by time; the samples of the last attempt"

// level is the least probability with which an interval covers the median.
const level = 0.95

// summary returns the summary of values, and sorts them.
func summary(values []float64) store.Summary {
	n := len(values)
	nan := store.Float(math.NaN())
	s := store.Summary{
		N: int64(n), Min: nan, Max: nan, Median: nan, P90: nan, P95: nan, P99: nan, Mean: nan,
		SD: nan, First: nan, Last: nan,
	}
	if n == 0 {
		return s
	}
	mean, sd := meanAndSD(values)
	slices.Sort(values)
	s.Min, s.Max = store.Float(values[0]), store.Float(values[n-1])
	s.Median, s.P90 = quantile(values, 1, 2), quantile(values, 9, 10)
	s.P95, s.P99 = quantile(values, 19, 20), quantile(values, 99, 100)
	s.Mean, s.SD = store.Float(mean), store.Float(sd)
	if low, high, covered := ranks(n); covered >= level {
		s.Interval = &store.Interval{Low: store.Float(values[low-1]), High: store.Float(values[high-1]), Level: covered}
	}
	return s
}

// meanAndSD returns the mean and the standard deviation of the sample. The mean is summed with Neumaier's compensation; the sum of the
// squared differences is corrected as in the two-pass algorithm (Chan, Golub and LeVeque 1983).
func meanAndSD(values []float64) (mean, sd float64) {
	n := float64(len(values))
	var sum, lost float64
	for _, v := range values {
		sum, lost = kahanAdd(sum, lost, v)
	}
	mean = (sum + lost) / n
	if math.IsInf(sum, 0) || math.IsNaN(sum) { // sum exceeds float64, or values are infinite: the mean is sum
		mean = scaled(values)
	}
	if len(values) < 2 || math.IsInf(mean, 0) || math.IsNaN(mean) {
		return mean, math.NaN()
	}
	var squares, rest float64
	for _, v := range values {
		d := v - mean
		squares += d * d
		rest += d
	}
	return mean, math.Sqrt(max(0, squares-rest*rest/n) / (n - 1))
}

// kahanAdd adds v to sum, and the rounding error to compensation.
func kahanAdd(sum, compensation, v float64) (float64, float64) {
	t := sum + v
	if math.Abs(sum) >= math.Abs(v) {
		return t, compensation + (sum - t + v)
	}
	return t, compensation + (v - t + sum)
}

// scaled returns the mean of values whose sum exceeds float64.
func scaled(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// quantile returns the quantile p/q of sorted values. It computes the position between two values in integers, so that a quantile that
// falls on a value is exact.
func quantile(sorted []float64, p, q int) store.Float {
	at := (len(sorted) - 1) * p
	i, part := at/q, at%q
	if part == 0 || sorted[i] == sorted[i+1] {
		return store.Float(sorted[i])
	}
	share := float64(part) / float64(q)
	return store.Float(sorted[i]*(1-share) + sorted[i+1]*share)
}

// ranks returns the ranks, from 1, of the order statistics between which the median of the distribution lies with a probability of level at
// least, as close to each other as symmetric ranks can be, and that probability. If n values are too few, the probability is less than
// level.
//
// For X(l) and X(n+1-l) it is 1 - 2·P(B < l), with B the number of values below the median, which is binomial with n and 1/2.
func ranks(n int) (low, high int, covered float64) {
	low, covered = 1, 1-2*math.Exp2(-float64(n))
	// The terms of the binomial distribution, each from the one before; earlier terms are too small to count.
	from := max(0, n/2-8*int(math.Sqrt(float64(n)))-8) // 16 standard deviations
	term := math.Exp(logChoose(n, from) - float64(n)*math.Ln2)
	below := 0.0
	for l := from + 1; l <= (n+1)/2; l++ { // P(B < l) = P(B <= l-1)
		below += term
		if c := 1 - 2*below; l == 1 || c >= level {
			low, covered = max(l, 1), c
		}
		if 1-2*below < level {
			break
		}
		term *= float64(n-l+1) / float64(l)
	}
	return low, n + 1 - low, covered
}

// logChoose returns the logarithm of n over k.
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
