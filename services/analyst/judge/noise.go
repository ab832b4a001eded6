package judge

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// Noise says how values of runs lie around their level.
type Noise struct {
	// N is the number of values on levels with at least 2 of them.
	N int

	// Deviations are those of the N values from the median of their level, sorted. That a
	// level of n values lies near them by chance is taken back by √(n/(n-1)).
	Deviations []float64

	// Scale is a standard deviation that tests of single values can use, and Freedom its
	// degrees of freedom. Both are 0 without values.
	Scale, Freedom float64

	// Autocorrelation is that of each value of the first level with the one before it, or 0
	// if chance alone makes one as large. Scale and Freedom take it into account.
	Autocorrelation float64
}

// Limits of what is a spike: values that are further than spikeFrom scales from their
// level, if they are at most one of spikeShare.
const (
	spikeFrom  = 6.0
	spikeShare = 20

	medianToSigma = 1.4826 // a normal distribution's standard deviation by its median absolute deviation
)

// Noise returns how values lie around their levels, of which each is one slice, in order of
// time. Values that are NaN or infinite do not count.
//
// Scale is the larger one of the standard deviation of Deviations, and of the one that a
// normal distribution with the same quantile of distances between two values would have,
// for the confidence. The second is larger where values have long tails or several modes:
// with it, the confidence is the share of pairs of these values whose distance is no
// difference. Values that are further than 6 scales (1.4826 times the median size of
// Deviations) from their level are spikes, and count as 6 scales, unless they are more than
// one in 20: those are a mode.
func (j Judge) Noise(levels ...[]float64) Noise {
	n, counted := Noise{}, 0
	for i, values := range levels {
		sorted, _ := finite(values)
		if len(sorted) < 2 {
			continue
		}
		counted++
		n.Deviations = append(n.Deviations, deviations(sorted)...)
		if i == 0 {
			n.Autocorrelation = autocorrelation(values)
		}
	}
	slices.Sort(n.Deviations)
	n.N = len(n.Deviations)
	if n.N > 0 {
		j.scale(&n, counted)
	}
	return n
}

// deviations returns those of the values of one level.
func deviations(sorted []float64) []float64 {
	m, size := median(sorted), float64(len(sorted))
	all := make([]float64, len(sorted))
	for i, v := range sorted {
		all[i] = clamp((v - m) * math.Sqrt(size/(size-1)))
	}
	return all
}

// scale sets Scale and Freedom of noise around a number of levels.
func (j Judge) scale(n *Noise, levels int) {
	regular := withoutSpikes(n.Deviations)
	normal := distance(regular, 1-j.alpha) / math.Sqrt2 / distuv.UnitNormal.Quantile(1-j.alpha/2)
	n.Scale = max(rootMeanSquare(regular), normal)

	// Values that depend on each other are worth fewer, and lie nearer to their mean (G. E.
	// P. Box, G. M. Jenkins and G. C. Reinsel, Time Series Analysis, section 2.1.5).
	rho := n.Autocorrelation
	size := float64(n.N)
	n.Freedom = max(1, size*(1-rho*rho)/(1+rho*rho)-float64(levels))
	n.Scale *= math.Sqrt(1 / max(0.1, 1-2*rho/(1-rho)/size))
	n.Scale = clamp(n.Scale)
}

// withoutSpikes returns sorted deviations, in which spikes count as much as a value that is
// just none.
func withoutSpikes(sorted []float64) []float64 {
	limit, spikes := spikeFrom*medianToSigma*medianSize(sorted), 0
	regular := make([]float64, len(sorted))
	for i, v := range sorted {
		regular[i] = max(-limit, min(v, limit))
		if regular[i] != v {
			spikes++
		}
	}
	if spikes*spikeShare > len(sorted) {
		return sorted
	}
	return regular
}

// medianSize returns the median of the sizes of values.
func medianSize(values []float64) float64 {
	sizes := make([]float64, len(values))
	for i, v := range values {
		sizes[i] = math.Abs(v)
	}
	slices.Sort(sizes)
	return median(sizes)
}

// rootMeanSquare returns the root of the mean of the squares, without their overflow.
func rootMeanSquare(values []float64) float64 {
	sum, largest := 0.0, max(-values[0], values[len(values)-1]) // sorted
	if largest <= 0 {
		return 0
	}
	for _, v := range values {
		sum += v / largest * (v / largest)
	}
	return largest * math.Sqrt(sum/float64(len(values)))
}

// distance returns the quantile of the distances between two of sorted values.
func distance(sorted []float64, share float64) float64 {
	n := len(sorted)
	if n < 2 {
		return 0
	}
	want := int(math.Ceil(share * float64(n*(n-1)/2)))
	width := clamp(sorted[n-1] - sorted[0])
	const steps = 1 << 20 // of the widest distance
	return width / steps * float64(sort.Search(steps, func(i int) bool {
		return pairsWithin(sorted, width/steps*float64(i)) >= want
	}))
}

// pairsWithin returns how many pairs of sorted values are not further apart than a distance.
func pairsWithin(sorted []float64, distance float64) (pairs int) {
	first := 0
	for i, v := range sorted {
		for v-sorted[first] > distance {
			first++
		}
		pairs += i - first
	}
	return pairs
}

// autocorrelation returns that of values with the ones before them, corrected for its bias
// (M. G. Kendall, Biometrika 41, 1954), and 0 if chance alone makes one as large in 5 % of
// series. Fewer than 10 values have none. It is that of ranks, which no spike can hide.
func autocorrelation(values []float64) float64 {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	n := len(values)
	if n < 10 {
		return 0
	}
	z := centeredRanks(values)
	sum, squares := 0.0, z[0]*z[0]
	for i := 1; i < n; i++ {
		sum += z[i] * z[i-1]
		squares += z[i] * z[i]
	}
	if squares == 0 || sum/squares < 1.645/math.Sqrt(float64(n)) {
		return 0
	}
	rho := sum / squares
	return min(0.95, rho+(1+3*rho)/float64(n))
}

// centeredRanks returns the midranks of values, less their mean, doubled.
func centeredRanks(values []float64) []float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	ranks := make([]float64, len(values))
	for i, v := range values {
		below, _ := slices.BinarySearch(sorted, v)
		notAbove := sort.Search(len(sorted), func(k int) bool { return sorted[k] > v })
		ranks[i] = float64(below + notAbove - len(values))
	}
	return ranks
}
