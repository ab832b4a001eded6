package analysis

import (
	"math"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// pair is one series of both sides, in one unit.
type pair struct {
	base, other series.Series
	cell        cellPair
}

// paired are the series that both sides have, by cell, metric, unit and labels.
type paired struct {
	pairs []pair
	notes []string // what only one side has
}

// pairSides returns the series that both sides have.
func pairSides(base, other results, metrics []string) paired {
	cells, onlyOld, onlyNew := pairCells(base, other)
	all := paired{notes: append(cellNotes(base.operand, onlyOld), cellNotes(other.operand, onlyNew)...)}
	for _, cell := range cells {
		pairs, notes := pairSeries(base, other, cell, metrics)
		all.pairs, all.notes = append(all.pairs, pairs...), append(all.notes, notes...)
	}
	return all
}

// fewestRuns is from how many values on a side needs no history.
const fewestRuns = 4

// needsPast reports whether the spread between runs may have to come from a history.
func (p pair) needsPast() bool { return finite(p.base) < fewestRuns || finite(p.other) < fewestRuns }

// finite returns the number of values that count.
func finite(s series.Series) (n int) {
	for _, p := range s.Points {
		if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
			n++
		}
	}
	return n
}

// wantsOfPast returns the cells and the metrics whose history is needed, each once.
func (p paired) wantsOfPast() (cells, metrics []string) {
	for _, one := range p.pairs {
		if one.needsPast() {
			cells, metrics = append(cells, one.cell.base), append(metrics, one.base.Metric)
		}
	}
	slices.Sort(cells)
	slices.Sort(metrics)
	return slices.Compact(cells), slices.Compact(metrics)
}

// pairSeries returns the series of a cell that both sides have, and notes about the others. A
// series whose unit has changed is converted to the newer one, if the other side has none of that unit.
func pairSeries(base, other results, cell cellPair, metrics []string) (pairs []pair, notes []string) {
	before, after := base.series(cell.base, metrics), other.series(cell.other, metrics)
	of := matches(before, after)
	var onlyOld, onlyNew []string
	for i, s := range after {
		if of[i] < 0 {
			onlyNew = append(onlyNew, nameOf(s, cell.name))
			continue
		}
		pairs = append(pairs, pair{converted(before[of[i]], s.Unit), s, cell})
	}
	for i, s := range before {
		if !slices.Contains(of, i) {
			onlyOld = append(onlyOld, nameOf(s, cell.name))
		}
	}
	return pairs, append(aloneNotes("metric", base.operand, onlyOld), aloneNotes("metric", other.operand, onlyNew)...)
}

// matches returns, for each series, the place of its match among others, or -1. Each of these matches
// one: first the same series, and then one whose unit can be converted.
func matches(all, of []series.Series) []int {
	found, taken := slices.Repeat([]int{-1}, len(of)), make([]bool, len(all))
	for _, match := range []func(a, b series.Series) bool{isSame, isConvertible} {
		for i, s := range of {
			for at := 0; at < len(all) && found[i] < 0; at++ {
				if !taken[at] && match(all[at], s) {
					found[i], taken[at] = at, true
				}
			}
		}
	}
	return found
}

// nameOf returns a series for people.
func nameOf(s series.Series, cell string) string {
	text := s.Metric
	if s.Unit != "" {
		text += " in " + s.Unit
	}
	if len(s.Labels) > 0 {
		var labels []string
		for _, name := range sortedKeys(s.Labels) {
			labels = append(labels, name+"="+s.Labels[name])
		}
		text += " with " + strings.Join(labels, ",")
	}
	if cell != "" {
		text += " of cell " + cell
	}
	return text
}

// series returns what identifies the pair. Its direction is that of the newer side, by which it
// is judged now.
func (p pair) series() series.Series {
	s := p.other
	if s.Direction == "" {
		s.Direction = p.base.Direction
	}
	s.Points = nil
	return s
}

// metric returns the pair as what is compared.
func (p pair) metric(past []float64) compare.Metric {
	return compare.Metric{Direction: p.series().Direction, Base: runsOf(p.base), Other: runsOf(p.other), History: past}
}

func runsOf(s series.Series) []compare.Point {
	all := make([]compare.Point, len(s.Points))
	for i, p := range s.Points {
		all[i] = compare.Point{Value: p.Value, Samples: int(p.Samples), StandardError: standardError(p.Interval)}
	}
	return all
}

// widths is how many standard errors a normal interval of 0.95 is wide.
const widths = 2 * 1.96

// standardError returns that of a median from its interval, whose level is 0.95 or a little
// more; 0 if it is not known.
func standardError(i *store.Interval) float64 {
	if i == nil {
		return 0
	}
	return float64(i.High-i.Low) / widths
}
