package judge

import (
	"cmp"
	"errors"
	"slices"
)

// ErrNoDirection is the error of Rank where no cell is the best, because the direction is
// neither Higher nor Lower.
var ErrNoDirection = errors.New("the metric has no direction: no value is better than another")

// Ranking is the order of cells, the best first.
type Ranking struct {
	// Cells are in the order of their medians. Equal medians are in the order of the
	// input, and cells that are not compared come last.
	Cells []RankedCell

	// Needed is the number of repetitions of each cell from which on the tests, adjusted
	// for their number, can tell cells apart. If no cell has as many, all that are
	// compared are Best.
	Needed int
}

// RankedCell is the place of one cell.
type RankedCell struct {
	Index   int // of the cell in the input
	Summary Summary

	// Best says that the cell is the first one, or cannot be told from it.
	Best bool

	// P is the p-value of the comparison with the first cell, adjusted for the number of
	// comparisons. Best cells but the first have one above 1 - confidence. It is 1 for the
	// first cell and for cells that are not compared.
	P float64

	// Alike are the places in Ranking.Cells, in ascending order, of the cells that the
	// tests do not tell from this one. Of more than 100 cells only the comparisons with the
	// first are made, and no other pair is listed.
	Alike []int

	// Lacking is the number of repetitions without which the cell is not compared.
	Lacking int
}

// maxHolm is the number of cells up to which Rank compares each with each.
const maxHolm = 100

// Rank orders cells by their medians, and says which ones are the best and cannot be told
// from the best. Each cell is compared with each other one by the test of Compare, and the
// p-values are adjusted by Holm's procedure: with the confidence, none of the comparisons
// tells two cells apart that have one distribution.
//
// Of more than 100 cells only the comparisons with the first are made. They are adjusted
// as if all were, which tells fewer cells apart, and keeps the confidence. Where values of
// cells that overlap are equal, a comparison costs as much as one of Compare, else a small
// part of that.
//
// The only error is ErrNoDirection.
func (j Judge) Rank(direction Direction, cells [][]float64) (Ranking, error) {
	if direction != Higher && direction != Lower {
		return Ranking{}, ErrNoDirection
	}
	ranked, compared := j.order(direction, cells)
	tests := compared * (compared - 1) / 2
	r := Ranking{Cells: ranked, Needed: fewestFor(j.alpha, max(1, tests))}
	if compared == 0 {
		return r, nil
	}
	ranked[0].Best = true
	ps := adjusted(j.pValues(ranked[:compared], cells), tests)
	for i, p := range ps[:compared-1] {
		ranked[i+1].P, ranked[i+1].Best = p, !within(p, j.alpha)
	}
	j.markAlike(ranked[:compared], ps)
	return r, nil
}

// markAlike notes the pairs of cells that the tests, whose p-values are in the order of
// pValues, do not tell apart.
func (j Judge) markAlike(ranked []RankedCell, ps []float64) {
	at := 0
	for a := range ranked {
		for b := a + 1; b < len(ranked) && at < len(ps); b++ {
			if !within(ps[at], j.alpha) {
				ranked[a].Alike, ranked[b].Alike = append(ranked[a].Alike, b), append(ranked[b].Alike, a)
			}
			at++
		}
	}
}

// order returns the cells in their order, and the number of those that are compared.
func (j Judge) order(direction Direction, cells [][]float64) (ranked []RankedCell, compared int) {
	fewest := fewestFor(j.alpha, 1)
	for i, values := range cells {
		c := RankedCell{Index: i, Summary: j.Summarise(values), P: 1}
		if c.Lacking = max(0, fewest-c.Summary.N); c.Lacking == 0 {
			compared++
		}
		ranked = append(ranked, c)
	}
	slices.SortStableFunc(ranked, func(a, b RankedCell) int {
		byMedian := cmp.Compare(a.Summary.Median, b.Summary.Median)
		if direction == Higher {
			byMedian = -byMedian
		}
		return cmp.Or(cmp.Compare(min(1, a.Lacking), min(1, b.Lacking)), byMedian)
	})
	return ranked, compared
}

// pValues returns the p-values of the comparisons of the first cell with all others, and
// then those of the others with each other, if the cells are not too many.
func (j Judge) pValues(ranked []RankedCell, cells [][]float64) (ps []float64) {
	sorted := make([][]float64, len(ranked))
	for i, c := range ranked {
		sorted[i], _ = finite(cells[c.Index])
	}
	rows := len(sorted)
	if rows > maxHolm {
		rows = 1
	}
	known := distributions{}
	for i, x := range sorted[:rows] {
		for _, y := range sorted[i+1:] {
			ps = append(ps, known.p(x, y))
		}
	}
	return ps
}

// distributions are null distributions without ties, by the numbers of values.
type distributions map[[2]int]nullDistribution

// p returns the p-value of two sorted sides.
func (known distributions) p(x, y []float64) float64 {
	n, m, u := len(x), len(y), twiceU(x, y)
	if isExact(n, m) && (u == 0 || u == 2*n*m) {
		return 2 / arrangements(n+m, n) // the sides do not overlap: there is one such arrangement for either order
	}
	ties := tiesOf(x, y)
	if len(ties) < n+m {
		return newNullDistribution(n, m, ties).p(u)
	}
	d, ok := known[[2]int{n, m}]
	if !ok {
		d = newNullDistribution(n, m, ties)
		known[[2]int{n, m}] = d
	}
	return d.p(u)
}

// adjusted returns p-values, adjusted for a number of tests by Holm's procedure (1979). If
// these are not all tests, they are adjusted more than all would be, and never less.
func adjusted(ps []float64, tests int) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	all := make([]float64, len(ps))
	largest := 0.0
	for i, at := range order {
		largest = max(largest, min(1, float64(tests-i)*ps[at]))
		all[at] = largest
	}
	return all
}
