package storetest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// PutPoints implements store.Points.
func (m *Memory) PutPoints(_ context.Context, p store.RunPoints) error {
	defer m.lock()()
	if err := p.Validate(); err != nil {
		return err
	}
	if before, ok := m.points[p.Run]; !ok || before.Revision < p.Revision {
		p.Points = slices.Clone(p.Points)
		m.points[p.Run] = p
	}
	return nil
}

// RunPoints implements store.PointReader.
func (m *Memory) RunPoints(_ context.Context, runs, metrics []string) ([]store.RunPoints, error) {
	defer m.lock()()
	if err := store.ValidatePointRuns(runs); err != nil {
		return nil, err
	}
	all := pick(m.points, func(p store.RunPoints) bool { return slices.Contains(runs, p.Run) })
	slices.SortFunc(all, func(a, b store.RunPoints) int { return cmp.Compare(a.Run, b.Run) })
	for i := range all {
		all[i].Points = slices.DeleteFunc(slices.Clone(all[i].Points), func(s store.Summary) bool {
			return len(metrics) > 0 && !slices.Contains(metrics, s.Metric)
		})
	}
	return all, nil
}

// Points implements store.PointReader.
func (m *Memory) Points(_ context.Context, q store.PointQuery, limit int) ([]store.Point, error) {
	defer m.lock()()
	all := slices.DeleteFunc(m.countedPoints(), func(p store.Point) bool {
		return !p.Key(p.Summary).Equal(q.Series) || p.Time.Before(q.Since) || !q.Until.IsZero() && !p.Time.Before(q.Until)
	})
	order := func(a, b store.PointPosition) int {
		if !q.Oldest {
			a, b = b, a
		}
		return comparePositions(a, b)
	}
	slices.SortFunc(all, func(a, b store.Point) int { return order(a.Position(), b.Position()) })
	if q.After.Run != "" {
		all = slices.DeleteFunc(all, func(p store.Point) bool { return order(p.Position(), q.After) <= 0 })
	}
	return first(all, limit)
}

func comparePositions(a, b store.PointPosition) int {
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Run, b.Run))
}

// countedPoints returns the points of all runs that are not excluded.
func (m *Memory) countedPoints() (all []store.Point) {
	for _, r := range m.points {
		if r.Excluded != "" {
			continue
		}
		for _, s := range r.Points {
			all = append(all, store.Point{PointRun: r.PointRun, Summary: s})
		}
	}
	return all
}

// Series implements store.PointReader.
func (m *Memory) Series(_ context.Context, q store.SeriesQuery, cursor string, limit int) ([]store.Series, string, error) {
	defer m.lock()()
	after, err := resume(m, q, cursor, store.Series{})
	if err != nil {
		return nil, "", err
	}
	all := slices.DeleteFunc(seriesOf(m.countedPoints()), func(s store.Series) bool {
		return !matchesField(q.Namespace, s.Namespace) || !matchesField(q.Task, s.Task) || !strings.HasPrefix(s.Metric, q.MetricPrefix) ||
			cursor != "" && compareSeries(after, s) >= 0
	})
	slices.SortFunc(all, compareSeries)
	page, err := first(all, limit)
	if len(page) == len(all) || err != nil {
		return page, "", err
	}
	return page, m.cursor(q, page[len(page)-1]), nil
}

// seriesOf returns the series of points.
func seriesOf(points []store.Point) []store.Series {
	series := make(map[string]store.Series)
	newest := make(map[string]store.PointPosition)
	for _, p := range points {
		k := p.Key(p.Summary)
		id := k.ID()
		s, ok := series[id]
		if !ok || comparePositions(newest[id], p.Position()) < 0 {
			s.SeriesKey, s.Newest, s.Direction, newest[id] = k, p.Time, p.Direction, p.Position()
		}
		s.Points++
		series[id] = s
	}
	return pick(series, func(store.Series) bool { return true })
}

func compareSeries(a, b store.Series) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Task, b.Task),
		cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.ID(), b.ID()))
}
