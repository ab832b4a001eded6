package changepoint

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// estimator says how large the changes of a window are, and how sure that is.
type estimator struct {
	model         *model
	wide          []float64 // the values with spikes, for their spread
	starts        []int
	trend         []float64 // nil where there is none
	center, scale float64   // of the unit of the series
	confidence    float64

	squares, rho float64 // of the fit with all changes
}

// The rows on each side of a change that are near it, and what its likelihood ratio is at
// least beside their spread.
const (
	nearRows    = 40
	nearPenalty = 12.0
	nearLevel   = 0.002
)

// longestRamp is how many rows a change takes at most: what takes longer is a trend.
const longestRamp = 30

// changes describes all changes.
func (e *estimator) changes() (all []found) {
	for i := 0; i < len(e.starts); {
		last := e.staircase(i)
		all = append(all, e.change(i, last))
		i = last + 1
	}
	return all
}

// change describes the change that begins with start i and ends with start last.
func (e *estimator) change(i, last int) found {
	at := e.starts[i]
	from, to := e.from(i), e.model.end(e.starts, last+1)
	c := Change{Index: at, Kind: Step, P: e.p(i, last)}
	c.First, c.Last = e.between(i, from, e.model.end(e.starts, i+1))
	begin, end := at, at
	if first, after, ok := e.ramp(i, last); ok {
		c.Kind, c.Index, begin, end = Drift, first, first, after
		c.First, c.Last = min(c.First, first), max(c.Last, first)
	}
	e.levels(&c, e.level(from, begin), e.level(end, to))
	return found{Change: c, index: c.Index}
}

// from returns the first row of the level before start i.
func (e *estimator) from(i int) int {
	if i == 0 {
		return 0
	}
	return e.starts[i-1]
}

// staircase returns the last start that belongs to the change that begins with start i:
// steps in one direction that one ramp explains better.
func (e *estimator) staircase(i int) int {
	last := i
	for j := i + 1; j < len(e.starts) && e.starts[j]-e.starts[i] <= longestRamp; j++ {
		if (e.rise(j) > 0) != (e.rise(i) > 0) {
			break
		}
		if _, _, ok := e.ramp(i, j); ok {
			last = j
		}
	}
	return last
}

// rise is how much higher the level from start i is than that before it.
func (e *estimator) rise(i int) float64 {
	z := e.model.z
	return mean(z[e.starts[i]:e.model.end(e.starts, i+1)]) - mean(z[e.from(i):e.starts[i]])
}

// level is the mean of a part of a segment, with the variance of it and the number of
// independent values that it is worth.
type level struct{ mean, variance, n float64 }

func (e *estimator) level(from, to int) level {
	n := float64(to - from)
	worth := max(1, n*(1-e.rho)/(1+e.rho))
	k := float64(len(e.starts) + 1)
	variance := e.squares / max(1, float64(len(e.model.z))-k) / (1 - e.rho*e.rho)
	return level{mean: mean(e.model.z[from:to]), variance: variance / worth, n: worth}
}

// levels sets what follows from the levels on both sides. The interval of the shift is
// Student's, that of the magnitude by the delta method.
func (e *estimator) levels(c *Change, before, after level) {
	trend := 0.0
	if e.trend != nil {
		trend = e.trend[c.Index]
	}
	c.Before = e.center + e.scale*(before.mean+trend)
	c.After = e.center + e.scale*(after.mean+trend)
	c.Shift = c.After - c.Before
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: max(2, before.n+after.n-2)}.Quantile((1 + e.confidence) / 2)
	half := t * e.scale * math.Sqrt(before.variance+after.variance)
	c.ShiftInterval = judge.Interval{Low: c.Shift - half, High: c.Shift + half, Level: e.confidence}
	if c.Before == 0 {
		c.Magnitude, c.MagnitudeInterval = math.NaN(), judge.Interval{Low: math.NaN(), High: math.NaN()}
		return
	}
	ratio := c.After / c.Before
	c.Magnitude = ratio - 1
	half = t * e.scale / math.Abs(c.Before) * math.Sqrt(after.variance+ratio*ratio*before.variance)
	c.MagnitudeInterval = judge.Interval{Low: c.Magnitude - half, High: c.Magnitude + half, Level: e.confidence}
}

// p is the probability that the largest statistic of a search over all rows is at least
// that of the change of starts i to last (Csörgő and Horváth 1997, Limit Theorems in Change-Point Analysis,
// 1.3.2).
func (e *estimator) p(i, last int) float64 {
	n := float64(len(e.model.z))
	b := math.Sqrt(max(0, e.ratio(i, last)))
	if b < 1 {
		return 1
	}
	h := MinSide / n
	odds := math.Log((1 - h) * (1 - h) / (h * h))
	p := b * math.Exp(-b*b/2) / math.Sqrt(2*math.Pi) * (odds*(1-1/(b*b)) + 4/(b*b))
	return max(math.SmallestNonzeroFloat64, min(1, p))
}

// ratio is twice the logarithm of the likelihood ratio of the fit with starts i to last to
// that without them.
func (e *estimator) ratio(i, last int) float64 {
	n := float64(len(e.model.z))
	squares, _ := e.model.fit(slices.Delete(slices.Clone(e.starts), i, last+1))
	return n * math.Log((squares/n+1e-300)/(e.squares/n+1e-300))
}

// keepClear removes changes that are none beside the spread of the rows near them, which
// may be larger than that of the window, the least clear one first.
func (e *estimator) keepClear() {
	for {
		e.squares, e.rho = e.model.fit(e.starts)
		worst, least := -1, nearPenalty
		for i := range e.starts {
			r := e.ratio(i, i) * min(1, e.calm(i))
			if e.welch(i) > nearLevel {
				r = 0 // however clear it is beside the rest
			}
			if r < least {
				worst, least = i, r
			}
		}
		e.squares, e.rho = e.model.fit(e.starts) // whose levels later steps read
		if worst < 0 {
			return
		}
		e.starts = slices.Delete(slices.Clone(e.starts), worst, worst+1)
	}
}

// welch is the p of Welch's test of the rows near start i, whose spread may differ on both
// sides.
func (e *estimator) welch(i int) float64 {
	at := e.starts[i]
	a := moments(e.wide[max(e.from(i), at-nearRows):at])
	b := moments(e.wide[at:min(e.model.end(e.starts, i+1), at+nearRows)])
	variance := a.variance + b.variance
	if variance == 0 {
		return 0
	}
	nu := variance * variance / (a.variance*a.variance/(a.n-1) + b.variance*b.variance/(b.n-1))
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}.Survival(math.Abs(a.mean-b.mean)/math.Sqrt(variance))
}

// moments is the level of independent values.
func moments(z []float64) level {
	l := level{mean: mean(z), n: float64(len(z))}
	for _, v := range z {
		l.variance += (v - l.mean) * (v - l.mean) / (l.n - 1) / l.n
	}
	return l
}

// calm is the variance of the innovations of the window by that of the rows near start i.
func (e *estimator) calm(i int) float64 {
	from, to := max(e.from(i), e.starts[i]-nearRows), min(e.model.end(e.starts, i+1), e.starts[i]+nearRows)
	residuals := centered(e.model.z[from:to], []int{e.starts[i] - from})
	sum, before := 0.0, 0.0
	for _, u := range residuals {
		sum += (u - e.rho*before) * (u - e.rho*before)
		before = u
	}
	if sum == 0 {
		return 1
	}
	return e.squares / float64(len(e.model.z)) / (sum / float64(len(residuals)))
}

// between returns the rows around change i where it could as well be: those that are less
// likely by a factor of exp(3.5) at most.
func (e *estimator) between(i, from, to int) (first, last int) {
	const allowed = 7.0
	n := float64(len(e.model.z))
	at := e.starts[i]
	moved := slices.Clone(e.starts)
	likely := func(row int) bool {
		if row-from < 1 || to-row < 1 {
			return false
		}
		moved[i] = row
		squares, _ := e.model.fit(moved)
		return n*math.Log((squares/n+1e-300)/(e.squares/n+1e-300)) <= allowed
	}
	first, last = at, at
	for likely(first - 1) {
		first--
	}
	for likely(last + 1) {
		last++
	}
	return first, last
}

// ramp reports whether the change of starts i to last took several rows: whether a straight
// line between two levels explains the rows near it better than the steps, and so much
// better than one step that it is no luck. It returns the first row of the line and the
// first of the new level.
func (e *estimator) ramp(i, last int) (first, after int, ok bool) {
	const shortest, least = 4, 12.0
	from := max(e.from(i), e.starts[i]-nearRows)
	z := e.model.z[from:min(e.model.end(e.starts, last+1), e.starts[last]+nearRows)]
	a, b := e.starts[i]-from, e.starts[last]-from
	best := 0.0
	for _, u := range centered(z, relative(e.starts[i:last+1], from)) {
		best += u * u
	}
	limit := best
	if i == last {
		limit *= math.Exp(-least * (1 + e.rho) / (1 - e.rho) / float64(len(z)))
	}
	r := newRamps(z)
	for begin := max(MinSide, b-longestRamp); begin <= a; begin++ {
		for end := max(b, begin+shortest); end <= min(begin+longestRamp, len(z)-MinSide); end++ {
			if s := r.squares(begin, end); s < best {
				first, after, best = from+begin, from+end, s
			}
		}
	}
	return first, after, best < limit
}

// relative returns rows counted from another.
func relative(rows []int, from int) []int {
	out := make([]int, len(rows))
	for i, row := range rows {
		out[i] = row - from
	}
	return out
}

// ramps makes the fit of two levels with a line between them a matter of a few operations.
type ramps struct {
	n             float64
	sum, weighted []float64 // of values, and of values times their row, up to a row
	squared       float64
}

func newRamps(z []float64) *ramps {
	r := &ramps{n: float64(len(z)), sum: make([]float64, len(z)+1), weighted: make([]float64, len(z)+1)}
	for i, y := range z {
		r.sum[i+1], r.weighted[i+1] = r.sum[i]+y, r.weighted[i]+float64(i)*y
		r.squared += y * y
	}
	return r
}

// squares is the sum of squares around the best levels before row begin and from row end
// on: the share of the second is x, which grows by the same step in each row between.
func (r *ramps) squares(begin, end int) float64 {
	rows, after := float64(end-begin), r.n-float64(end)
	step := 1 / (rows + 1)
	sx := rows/2 + after
	sxx := step*rows*(2*rows+1)/6 + after
	sy := r.sum[len(r.sum)-1]
	sxy := step*(r.weighted[end]-r.weighted[begin]-float64(begin-1)*(r.sum[end]-r.sum[begin])) + sy - r.sum[end]
	slope := (r.n*sxy - sx*sy) / (r.n*sxx - sx*sx)
	return r.squared - sy*sy/r.n - slope*(sxy-sx*sy/r.n)
}

// notes says what was assumed.
func (e *estimator) notes(spikes int) []string {
	var all []string
	if spikes > 0 {
		all = append(all, fmt.Sprintf("%d of the last %d values do not count: spikes", spikes, len(e.model.z)))
	}
	if e.rho >= 0.2 {
		all = append(all, fmt.Sprintf("each value depends on the one before it (autocorrelation %.1f), so that changes need to be clearer",
			e.rho))
	}
	if e.trend != nil {
		all = append(all, "a slow trend explains the values better than steps do")
	}
	return all
}
