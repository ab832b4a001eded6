package otava

import (
	"math"
	"slices"
)

// split returns the indices of weak changes in ascending order: all that the search finds
// in any window.
func split(t *tTest, values []float64, o Options) (indices []int) {
	s := &search{tTest: t, limit: o.weakP(), weights: newWeights(min(o.Window, len(values)))}
	for start := 0; start < len(values); {
		found := s.changes(values[start:][:min(o.Window, len(values)-start)])
		next := start + o.Window/2
		for _, index := range found {
			indices = append(indices, start+index)
			next = max(next, start+index)
		}
		start = next
	}
	slices.Sort(indices)
	return slices.Compact(indices)
}

// A search looks for changes in windows, one window at a time.
type search struct {
	*tTest
	limit   float64 // of the p-value
	weights weights

	// columns has, for each row of the window, its distances from all rows before it,
	// and outside only those from rows before the segment.
	columns, outside []float64

	// before has, for each row that ends the first part, the sum of the distances among
	// the rows of this part; below has that among the rows of the second part.
	before, below []float64

	// rows has, for each row, its distances from the later ones of the second part.
	rows []float64

	segments []segment
	found    []int
}

// A segment is a part of a window without a change that has been accepted.
type segment struct {
	start, end int

	// The row at divides the segment best, and gain is the energy distance between both
	// parts. A segment of one row has no such row: at is 0.
	at   int
	gain float64
}

// changes returns the changes of a window in ascending order. It divides that segment
// which has the largest gain, and ends once this one's parts do not differ significantly.
// The next call overwrites the result.
func (s *search) changes(window []float64) []int {
	s.sumColumns(window)
	s.segments = append(s.segments[:0], s.segment(window, 0, len(window)))
	for {
		i := strongest(s.segments)
		if i < 0 {
			break
		}
		g := s.segments[i]
		if _, _, p := s.compare(window[g.start:g.at], window[g.at:g.end]); !(p <= s.limit) {
			break // p may be NaN
		}
		s.segments[i] = s.segment(window, g.start, g.at)
		s.segments = slices.Insert(s.segments, i+1, s.segment(window, g.at, g.end))
	}
	s.found = s.found[:0]
	for _, g := range s.segments[1:] {
		s.found = append(s.found, g.start)
	}
	return s.found
}

// strongest returns the position of the segment with the largest gain, the first one of
// equal ones, or -1 if none can be divided. As in Python, NaN is larger than nothing and
// nothing is larger than NaN.
func strongest(segments []segment) int {
	best := -1
	for i, g := range segments {
		if g.at > 0 && (best < 0 || g.gain > segments[best].gain) {
			best = i
		}
	}
	return best
}

// sumColumns computes, for each row of a window, the sum of its distances from all rows
// before it.
func (s *search) sumColumns(window []float64) {
	s.columns = zeros(s.columns, len(window))
	addDistances(s.columns, window, len(window))
}

// addDistances adds to the sum of each row of a window its distances from the rows before
// it, up to a number of them. Each sum has them in ascending order.
func addDistances(sums, window []float64, upTo int) {
	for i, v := range window[:upTo] {
		later := window[i+1:]
		sums := sums[i+1:][:len(later)]
		for j, w := range later {
			sums[j] += math.Abs(v - w)
		}
	}
}

// segment returns a segment of a window with the row that divides it best.
//
// For a row that divides it, and a row at which the second part ends, which need not be
// the end of the segment, the gain is the scaled energy distance of the parts: twice the
// mean distance between the parts, less the mean distances within each of them. The best
// row is that of the largest gain.
func (s *search) segment(window []float64, start, end int) segment {
	g := segment{start: start, end: end}
	if end-start < 2 {
		return g
	}
	s.sumBefore(window, start, end)
	best := s.best(window[start:end])
	g.at, g.gain = start+best.row+1, best.gain
	return g
}

// sumBefore computes, for each row of a segment that ends the first part, the sum of the
// distances among the rows of this part.
func (s *search) sumBefore(window []float64, start, end int) {
	s.outside = zeros(s.outside, end)
	addDistances(s.outside, window[:end], start)
	s.before = zeros(s.before, end-start-1)
	for i := 1; i < len(s.before); i++ {
		s.before[i] = s.before[i-1] + (s.columns[start+i] - s.outside[start+i])
	}
}

// best returns the best division of a segment of at least 2 rows. It goes over the ends
// of the second part, for each over the rows from the last to the first, and back.
//
// The order of additions, and of the other operations, is that of Otava's matrices. The
// conversions to float64 keep a compiler from fusing products with sums.
func (s *search) best(rows []float64) division {
	last := len(rows) - 1
	s.rows = zeros(s.rows, last)
	s.below = zeros(s.below, last)
	best := division{gain: math.Inf(-1), overflow: math.MaxInt}
	for end := 1; end <= last; end++ {
		s.sumBelow(rows[:end], rows[end])
		s.gains(&best, end)
	}
	return best.maximum(s.before)
}

// sumBelow moves the end of the second part behind a row v, which comes after rows. It
// computes the sum of the distances among the rows of each second part.
func (s *search) sumBelow(rows []float64, v float64) {
	sums, below := s.rows[:len(rows)], s.below[:len(rows)]
	total := 0.0
	for i := len(rows) - 1; i >= 0; i-- {
		below[i] = total
		sums[i] += math.Abs(rows[i] - v)
		total += sums[i]
	}
}

// gains has best consider the gains of all divisions whose second part ends with the row end.
func (s *search) gains(best *division, end int) {
	sums, below, before := s.rows[:end], s.below[:end], s.before[:end]
	weights := s.weights.of(end + 1)[:end]
	scale := 2 / float64(end+1)
	total := 0.0
	for i, v := range sums {
		total += v
		between := float64(scale * (total - before[i]))
		first := float64(weights[i] * before[i])
		second := float64(weights[end-1-i] * below[i])
		if gain := between - first - second; !(gain < best.gain) {
			best.consider(i, gain) // it may be NaN
		}
	}
}

// A division is the best one of those that were considered. Its row is the last one of the first
// part, and it is the first one of those with the same gain.
type division struct {
	row      int
	gain     float64
	overflow int // the first row whose gain is NaN
}

// consider takes a division for the best one if its gain is larger than that of the best one so
// far, or the same, and its row comes before.
func (d *division) consider(row int, gain float64) {
	switch {
	case math.IsNaN(gain):
		d.overflow = min(d.overflow, row)
	case gain > d.gain || row < d.row:
		d.row, d.gain = row, gain
	}
}

// maximum returns what Otava takes for the best division. Otava looks for the largest
// element of a whole matrix, and one half of it means nothing: it has 0 from the second
// row on, and NaN from the third row on where the sum of distances before a row overflows.
// The first NaN of all is larger than any number.
func (d *division) maximum(before []float64) division {
	if len(before) > 1 && d.gain <= 0 {
		d.consider(1, 0)
	}
	for row := 2; row < len(before) && row < d.overflow; row++ {
		if math.IsInf(before[row], 0) || math.IsNaN(before[row]) {
			d.overflow = row
		}
	}
	if d.overflow < math.MaxInt {
		return division{row: d.overflow, gain: math.NaN()}
	}
	return *d
}

// maxWeights is the number of rows up to which weights are kept: those of all numbers
// together take 4 MiB.
const maxWeights = 1024

// weights has the factors of the sums of distances within a part, by the number of rows of
// both parts.
type weights struct {
	kept [][]float64
	last []float64 // for a number that has no place among those that are kept
}

// newWeights returns weights that keep the factors for up to n rows.
func newWeights(n int) weights {
	return weights{kept: make([][]float64, min(n, maxWeights)+1)}
}

// of returns, by the number of rows of one part less 1, the factors for n rows of both
// parts. The next call may overwrite the result.
func (w *weights) of(n int) []float64 {
	if n >= len(w.kept) {
		w.last = factors(w.last, n)
		return w.last
	}
	if w.kept[n] == nil {
		w.kept[n] = factors(nil, n)
	}
	return w.kept[n]
}

// factors returns the factors for n rows, in the place of the given numbers if that has
// room for them: twice the number of the other part's rows, divided by the number of all
// and the number of the part's own rows less 1. A part of one row has 0.
func factors(numbers []float64, n int) []float64 {
	numbers = zeros(numbers, n-1)
	for own := 2; own < n; own++ {
		numbers[own-1] = float64(2*(n-own)) / float64(n*(own-1))
	}
	return numbers
}

// zeros returns n zeros, in the place of the given numbers if that has room for them.
func zeros(numbers []float64, n int) []float64 {
	numbers = slices.Grow(numbers[:0], n)[:n]
	clear(numbers)
	return numbers
}
