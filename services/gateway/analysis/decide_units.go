package analysis

import (
	"cmp"
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/descriptors/units"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// isSame reports whether two series are parts of one.
func isSame(a, b series.Series) bool {
	return a.Metric == b.Metric && a.Unit == b.Unit && maps.Equal(a.Labels, b.Labels)
}

// isConvertible reports whether two series would be parts of one, if their units were not two that
// measure the same.
func isConvertible(a, b series.Series) bool {
	return a.Metric == b.Metric && a.Unit != b.Unit && maps.Equal(a.Labels, b.Labels) && units.Convertible(a.Unit, b.Unit)
}

// joinUnits joins the series whose unit has changed from one run to a later one: they are one, in the
// unit of its newest run. Series of two units that one run has are two.
func joinUnits(all []series.Series) []series.Series {
	var joined []series.Series
	for _, s := range all {
		i := slices.IndexFunc(joined, func(one series.Series) bool { return isConvertible(one, s) && !overlap(one, s) })
		if i < 0 {
			joined = append(joined, s)
			continue
		}
		joined[i] = join(joined[i], s)
	}
	return joined
}

// overlap reports whether a run has a point in both series.
func overlap(a, b series.Series) bool {
	return slices.ContainsFunc(a.Points, func(p series.Point) bool {
		return slices.ContainsFunc(b.Points, func(q series.Point) bool { return p.Index == q.Index })
	})
}

// join returns the points of two series, in the unit of the newest one.
func join(older, newer series.Series) series.Series {
	if lastRun(newer) < lastRun(older) {
		older, newer = newer, older
	}
	out := newer
	out.Direction = cmp.Or(newer.Direction, older.Direction)
	out.Points = slices.Concat(converted(older, newer.Unit).Points, newer.Points)
	slices.SortStableFunc(out.Points, func(a, b series.Point) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// lastRun returns the place of the newest run of a series.
func lastRun(s series.Series) int { return s.Points[len(s.Points)-1].Index }

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
