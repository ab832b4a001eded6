package analysis

import (
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/units"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// pair is one series of both sides, in one unit.
type pair struct{ base, other series.Series }

// pairSeries returns the series of a cell that both sides have, and notes about the others. A
// series whose unit has changed is converted to the newer one.
func pairSeries(base, other results, cell cellPair, metrics []string) (pairs []pair, notes []string) {
	before, after := base.series(cell.base, metrics), other.series(cell.other, metrics)
	var onlyNew []string
	for _, s := range after {
		i := indexOf(before, s)
		if i < 0 {
			onlyNew = append(onlyNew, nameOf(s, cell.name))
			continue
		}
		pairs = append(pairs, pair{converted(before[i], s.Unit), s})
		before = slices.Delete(before, i, i+1)
	}
	var onlyOld []string
	for _, s := range before {
		onlyOld = append(onlyOld, nameOf(s, cell.name))
	}
	return pairs, append(aloneNotes("metric", base.operand, onlyOld), aloneNotes("metric", other.operand, onlyNew)...)
}

// indexOf returns the place of a series among those of the other side, or else of one whose unit
// can be converted; -1 if there is none.
func indexOf(all []series.Series, s series.Series) int {
	if i := slices.IndexFunc(all, func(one series.Series) bool { return series.Compare(one, s) == 0 }); i >= 0 {
		return i
	}
	return slices.IndexFunc(all, func(one series.Series) bool {
		return one.Metric == s.Metric && maps.Equal(one.Labels, s.Labels) && units.Convertible(one.Unit, s.Unit)
	})
}

// converted returns a series in a unit that it can be converted to.
func converted(s series.Series, unit string) series.Series {
	if s.Unit == unit {
		return s
	}
	convert := func(v float64) float64 {
		v, _ = units.Convert(v, s.Unit, unit)
		return v
	}
	points := make([]series.Point, len(s.Points))
	for i, p := range s.Points {
		p.Value = convert(p.Value)
		if p.Interval != nil {
			p.Interval = &store.Interval{
				Low:  store.Float(convert(float64(p.Interval.Low))),
				High: store.Float(convert(float64(p.Interval.High))), Level: p.Interval.Level,
			}
		}
		points[i] = p
	}
	s.Points, s.Unit = points, unit
	return s
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
