package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// points puts points of a run whose values follow from the revision and the run.
func (m *model) points(rt *rapid.T) {
	run, revision := m.key(rt, "run"), rapid.Int64Range(0, 4).Draw(rt, "revision")
	seed := len(run) + int(revision)
	p := NewPoints(run, at(seed%3), float64(seed))
	p.Namespace, p.Revision, p.Excluded = m.prefix, revision, pickOne(seed, "", "", "", store.ExcludedFailed)
	p.Points = nil
	for i := range seed % 4 {
		v := NewValue(pickOne(i, "a", "ü", "many"), float64(seed))
		v.Labels = map[string]string{"k": fmt.Sprint(i)}
		p.Points = append(p.Points, v)
	}
	wantSameAnswer(rt, "put points", nil, nil, m.memory.PutPoints(rt.Context(), p), m.PutPoints(rt.Context(), p))
}

// comparePoints reads all points that both have.
func (m *model) comparePoints(rt *rapid.T) {
	ctx := rt.Context()
	runs := []string{m.prefix + "a", m.prefix + "b", m.prefix + "ç"}
	metrics := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ü", "none"}), 0, 2).Draw(rt, "metrics")
	want, wantErr := m.memory.RunPoints(ctx, runs, metrics)
	m.eventually(rt, "points of runs", want, wantErr, func() (any, error) { return m.RunPoints(ctx, runs, metrics) })
	sq := store.SeriesQuery{Namespace: m.prefix, MetricPrefix: rapid.SampledFrom([]string{"", "ü", "m"}).Draw(rt, "prefix")}
	series, err := listSeries(ctx, m.memory, sq, 100)
	m.eventually(rt, "series", series, err, func() (any, error) { return listSeries(ctx, m, sq, 2) })
	q := store.PointQuery{
		Oldest: rapid.Bool().Draw(rt, "oldest"), Since: rapid.SampledFrom([]time.Time{{}, at(1)}).Draw(rt, "since"),
		Until:  rapid.SampledFrom([]time.Time{{}, at(2)}).Draw(rt, "until"),
		Series: store.SeriesKey{Namespace: m.prefix, Task: "train", Metric: "a", Unit: "s", Labels: map[string]string{"k": "0"}},
	}
	points, err := medians(readPoints(ctx, m.memory, q, 100))()
	m.eventually(rt, "points", points, err, func() (any, error) { return medians(readPoints(ctx, m, q, 1))() })
}
