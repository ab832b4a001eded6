package changepoint

import "math"

// Penalties, found by simulation (docs/detector.md).
const (
	penalty     = 14.0 // what a change improves the criterion by, at least
	rankPenalty = 10.0 // the same for ranks, which must agree

	// A segment of fewer rows than shortSegment costs shortPenalty more: a burst is no
	// level, and the last few rows are said when there are more of them.
	shortSegment = 10
	shortPenalty = 7.0
)

// The autocorrelation of noise.
const (
	maxRho  = 0.95
	rhoBias = 0.5 // how much of its known bias is corrected
)

// model is a series of levels with noise that depends on that before it, AR(1), and goes
// on over changes. A jump that noise cannot make is what tells a change from an excursion
// (Chakar et al. 2017, A robust approach for estimating change-points in the mean of an
// AR(1) process, Bernoulli 23).
type model struct {
	z     []float64
	short float64 // what a segment of fewer rows than shortSegment costs more

	levels             []float64
	diagonal, off, rhs []float64 // of the normal equations, which are tridiagonal
}

func newModel(z []float64) *model { return &model{z: z, short: shortPenalty} }

// criterion is twice the negative logarithm of the likelihood, but for a constant, plus
// the penalties for changes at starts. Smaller is better.
func (m *model) criterion(starts []int, each float64) float64 {
	n := float64(len(m.z))
	squares, rho := m.fit(starts)
	c := n*math.Log(squares/n+1e-300) - math.Log(1-rho*rho) + each*float64(len(starts))
	from := 0
	for k := range len(starts) + 1 {
		to := m.end(starts, k)
		if to-from < shortSegment {
			c += m.short
		}
		from = to
	}
	return c
}

// end returns the row after segment k.
func (m *model) end(starts []int, k int) int {
	if k < len(starts) {
		return starts[k]
	}
	return len(m.z)
}

// fit finds levels and autocorrelation in turn, and returns the sum of squared innovations.
func (m *model) fit(starts []int) (squares, rho float64) {
	const turns = 3
	for turn := range turns {
		m.equations(starts, rho)
		m.solve()
		var next float64
		squares, next = m.innovations(starts, rho)
		if turn < turns-1 {
			rho = next
		}
	}
	return squares, rho
}

// equations sets up the normal equations of generalized least squares.
func (m *model) equations(starts []int, rho float64) {
	k := len(starts) + 1
	m.diagonal, m.off = resized(m.diagonal, k), resized(m.off, k)
	m.rhs, m.levels = resized(m.rhs, k), resized(m.levels, k)
	c := 1 - rho
	m.diagonal[0], m.rhs[0] = 1-rho*rho, (1-rho*rho)*m.z[0]
	from := 0
	for segment := range k {
		to := m.end(starts, segment)
		if segment > 0 { // the first row of a level goes on from the noise of that before
			w := m.z[from] - rho*m.z[from-1]
			m.diagonal[segment-1] += rho * rho
			m.rhs[segment-1] -= rho * w
			m.off[segment-1] -= rho
			m.diagonal[segment]++
			m.rhs[segment] += w
		}
		sum := 0.0
		for t := from + 1; t < to; t++ {
			sum += m.z[t] - rho*m.z[t-1]
		}
		m.diagonal[segment] += c * c * float64(to-from-1)
		m.rhs[segment] += c * sum
		from = to
	}
}

// solve solves them by Thomas' algorithm.
func (m *model) solve() {
	k := len(m.levels)
	for i := 1; i < k; i++ {
		f := m.off[i-1] / m.diagonal[i-1]
		m.diagonal[i] -= f * m.off[i-1]
		m.rhs[i] -= f * m.rhs[i-1]
	}
	for i := k - 1; i >= 0; i-- {
		m.levels[i] = m.rhs[i]
		if i+1 < k {
			m.levels[i] -= m.off[i] * m.levels[i+1]
		}
		m.levels[i] /= m.diagonal[i]
	}
}

// innovations returns their sum of squares, and the autocorrelation of the residuals.
func (m *model) innovations(starts []int, rho float64) (squares, next float64) {
	first := m.z[0] - m.levels[0]
	squares = (1 - rho*rho) * first * first
	before, c0, c1, from := first, 0.0, 0.0, 1
	for k, level := range m.levels {
		to := m.end(starts, k)
		for _, v := range m.z[from:to] {
			u := v - level
			d := u - rho*before
			squares += d * d
			c0 += before * before
			c1 += u * before
			before = u
		}
		from = to
	}
	if c0 == 0 {
		return squares, 0
	}
	next = c1 / c0
	next += rhoBias * (1 + 3*next) * float64(len(m.levels)) / float64(len(m.z)) // Kendall 1954, for each level
	return squares, max(0, min(maxRho, next))
}

func resized(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n, 2*n)
	}
	s = s[:n]
	clear(s)
	return s
}
