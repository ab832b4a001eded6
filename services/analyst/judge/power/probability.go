package power

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// points is how many quantiles stand for a distribution.
const points = 128

// quantiles returns points of the distribution that sorted values come from: those with the
// probabilities (i+1/2)/points. Each value is spread evenly up to the middles between it and
// its neighbours, and beyond the outermost ones as far, so that equal values, such as rounded
// ones, do not stay equal.
func quantiles(sorted []float64) []float64 {
	ends, shares := cells(sorted)
	q, k := make([]float64, points), 0
	for i := range q {
		p := (float64(i) + 0.5) / points
		for shares[k+1] < p {
			k++
		}
		q[i] = ends[k] + (p-shares[k])/(shares[k+1]-shares[k])*(ends[k+1]-ends[k])
	}
	return q
}

// cells returns the ends of the cells around the distinct ones of sorted values, and the
// shares of values up to them.
func cells(sorted []float64) (ends, shares []float64) {
	n := len(sorted)
	ends, shares = []float64{sorted[0]}, []float64{0}
	for i := 1; i < n; i++ {
		if sorted[i] > sorted[i-1] {
			ends, shares = append(ends, sorted[i-1]/2+sorted[i]/2), append(shares, float64(i)/float64(n))
		}
	}
	last := len(ends) - 1
	ends[0] = clamp(2*ends[0] - ends[min(1, last)])
	return append(ends, clamp(2*sorted[n-1]-ends[last])), append(shares, 1)
}

// clamp returns v, or the largest number of its sign if v is infinite.
func clamp(v float64) float64 {
	return max(-math.MaxFloat64, min(v, math.MaxFloat64))
}

// Of up to maxExact misordered pairs, the probability is computed exactly where that decides:
// the approximation was wrong by up to 0.14 there, with confidences of 0.8 to 0.9999999.
const (
	maxExact = 8
	maxError = 0.15
)

// shifted are two distributions of one noise, of which one is larger by a difference.
type shifted struct {
	noise      []float64 // its quantiles
	difference float64

	// share is the probability that a pair of values is misordered. The others are those of
	// two pairs that have the value of the lower side, and that of the larger side, in common.
	share, bothOfLower, bothOfLarger float64
}

func newShifted(noise []float64, difference float64) shifted {
	s := shifted{noise: noise, difference: difference}
	s.share, s.bothOfLower = below(noise, -difference)
	ordered, bothOrdered := below(noise, difference)
	s.bothOfLarger = 1 - 2*ordered + bothOrdered
	return s
}

// approximate returns the probability that at most so many of the n·n pairs of values are
// misordered, by the beta distribution that has the mean and the
// variance of the share of misordered pairs (E. L. Lehmann, Nonparametrics, 1975, section
// 2.3), which are exact for any noise, with a correction for continuity.
func (s shifted) approximate(n float64, misordered int) float64 {
	p := s.share
	variance := (p*(1-p) + (n-1)*(s.bothOfLower+s.bothOfLarger-2*p*p)) / (n * n)
	if p <= 0 || variance <= 0 {
		return 1
	}
	size := max(1e-9, p*(1-p)/variance-1) // but for rounding, more than 0
	limit := (float64(misordered) + 0.5) / (n * n)
	return distuv.Beta{Alpha: p * size, Beta: (1 - p) * size}.CDF(limit)
}

// below returns the share of points that are below a point plus an offset, half of those
// that are equal: its mean over all points, and the mean of its square.
func below(noise []float64, offset float64) (mean, square float64) {
	less, notMore := 0, 0
	for _, v := range noise {
		for less < points && noise[less] < v+offset {
			less++
		}
		for notMore < points && noise[notMore] <= v+offset {
			notMore++
		}
		share := float64(less+notMore) / 2 / points
		mean += share / points
		square += share * share / points
	}
	return mean, square
}

// exact returns the same probability by counting the samples of n points for each side that
// misorder so few pairs. Both sides' points are added in ascending order; a point that is
// taken more than twice is left out, which makes the probability smaller by less than 0.001.
func (s shifted) exact(n, misordered int) float64 {
	all := newSamples(n, misordered)
	lower := 0
	for _, v := range s.noise {
		for lower < points && s.noise[lower] < v+s.difference {
			all.addLower()
			lower++
		}
		all.addLarger()
	}
	for ; lower < points; lower++ {
		all.addLower()
	}
	return min(1, all.probability())
}

// samples are weights of samples, by how many values each side has and how many of the
// pairs are misordered.
type samples struct {
	n, most int
	larger  int           // the largest number of values that the larger side has yet
	weights [][][]float64 // by values of the lower side, of the larger side, and pairs
	once    float64       // the weight of a point that is taken once, and twice
	twice   float64
}

func newSamples(n, most int) samples {
	once := float64(n) / points
	s := samples{n: n, most: most, weights: make([][][]float64, n+1), once: once, twice: once * once / 2}
	for i := range s.weights {
		s.weights[i] = make([][]float64, n+1)
		for j := range s.weights[i] {
			s.weights[i][j] = make([]float64, most+1)
		}
	}
	s.weights[0][0][0] = 1
	return s
}

// addLower adds a point of the lower side, which is above all values so far: each of the
// larger side makes a misordered pair with it.
func (s *samples) addLower() {
	for i := s.n; i > 0; i-- {
		for j := range min(s.larger, s.most) + 1 {
			s.add(s.weights[i][j], s.weights[i-1][j], s.weights[max(i-2, 0)][j], i > 1, j)
		}
	}
}

// addLarger adds a point of the larger side.
func (s *samples) addLarger() {
	s.larger = min(s.n, s.larger+2)
	for _, w := range s.weights {
		for j := s.larger; j > 0; j-- {
			s.add(w[j], w[j-1], w[max(j-2, 0)], j > 1, 0)
		}
	}
}

// add adds the weights of samples with one value less and, if there are any, with two less,
// of which each makes so many misordered pairs more.
func (s *samples) add(to, one, two []float64, both bool, more int) {
	for v := more; v < len(to); v++ {
		weight := s.once * one[v-more]
		if both && v >= 2*more {
			weight += s.twice * two[v-2*more]
		}
		to[v] += weight
	}
}

// probability returns the weight of all samples of n values a side.
func (s *samples) probability() float64 {
	sum := 0.0
	for _, w := range s.weights[s.n][s.n] {
		sum += w
	}
	for i := 1; i <= s.n; i++ {
		f := float64(i) / float64(s.n)
		sum *= f * f
	}
	return sum
}
