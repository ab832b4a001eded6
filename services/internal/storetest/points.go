package storetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// NewPoints returns the points of a run of task train, whose metric loss has a value.
func NewPoints(run string, at time.Time, loss float64) store.RunPoints {
	return store.RunPoints{
		PointRun: store.PointRun{Run: run, Namespace: "pets", Task: "train", Time: at, Complete: true, Machine: "m1"},
		Revision: 1, Points: []store.Summary{NewValue("loss", loss)},
	}
}

// NewValue returns the value of a run whose 3 samples are equal.
func NewValue(metric string, v float64) store.Summary {
	f := store.Float(v)
	return store.Summary{Metric: metric, Unit: "s", N: 3, Min: f, Max: f, Median: f, P90: f, P95: f, P99: f, Mean: f, First: f, Last: f}
}

// fullPoints returns points that have everything, with numbers of every kind.
func fullPoints(run string) store.RunPoints {
	inf, nan := store.Float(math.Inf(1)), store.Float(math.NaN())
	return store.RunPoints{
		PointRun: store.PointRun{
			Run: run, Namespace: "pets", Task: "größe \"x\"", Set: "s", Cell: "n=1,\"q\"=☃", Ordinal: 3, Time: at(5), Complete: true,
			Version: "v1", Image: "img:1", Images: []string{"sha256:a", "sha256:b"}, Descriptor: "d1",
			Data: "d2", Code: "d3", Platform: "v9",
			Machine: "m1", Hardware: "EPYC, 8 CPUs", Nodes: []string{"a", "b"},
		},
		Revision: 7,
		Points: []store.Summary{
			{
				Metric: "löss", Unit: "%", Labels: map[string]string{"gpu": "0", "a.b": "<>&\u2028"}, N: 5, NotNumbers: 1, Min: -inf,
				Max: inf, Median: 1.0 / 3, P90: 1e300, P95: 5e-324,
				P99: nan, Mean: nan, SD: nan, First: -0.5, Last: 1e21, Interval: &store.Interval{Low: -inf, High: 0.1, Level: 0.96875},
				Direction: event.Lower,
			},
			{Metric: "run.duration", Unit: "s", Median: 2},
		},
	}
}

// readPoints reads all pages of a series.
func readPoints(ctx context.Context, s store.PointReader, q store.PointQuery, limit int) func() ([]store.Point, error) {
	return func() (all []store.Point, err error) {
		q := q
		for {
			page, err := s.Points(ctx, q, limit)
			if all = append(all, page...); err != nil || len(page) < limit {
				return all, err
			}
			q.After = page[len(page)-1].Position()
		}
	}
}

// medians returns points as text: their runs and medians.
func medians(read func() ([]store.Point, error)) func() (string, error) {
	return func() (string, error) {
		points, err := read()
		var text strings.Builder
		for _, p := range points {
			fmt.Fprintf(&text, "%s=%g ", p.Run, float64(p.Median))
		}
		return strings.TrimSpace(text.String()), err
	}
}

func testPoints(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	loss := NewPoints("", at(0), 0).Key(NewValue("loss", 0))
	read := func(q store.PointQuery, limit int) func() (string, error) {
		q.Series = loss
		return medians(readPoints(ctx, s, q, limit))
	}
	eventually(t, "a series without points has none", "", read(store.PointQuery{}, 10))
	for i, second := range []int{5, 1, 3, 3, 9} { // also late, and at one time
		must(t, s.PutPoints(ctx, NewPoints(fmt.Sprint("r", i), at(second), float64(i))))
	}
	for _, excluded := range []store.Exclusion{store.ExcludedWarmup, store.ExcludedFailed} {
		p := NewPoints("x"+string(excluded), at(4), 99)
		p.Excluded = excluded
		must(t, s.PutPoints(ctx, p))
	}
	other := NewPoints("other", at(2), 98)
	other.Cell = "n=1"
	must(t, s.PutPoints(ctx, other))
	for name, tt := range map[string]struct {
		query store.PointQuery
		want  string
	}{
		"the newest first, without runs that are excluded": {store.PointQuery{}, "r4=4 r0=0 r3=3 r2=2 r1=1"},
		"the oldest first":                {store.PointQuery{Oldest: true}, "r1=1 r2=2 r3=3 r0=0 r4=4"},
		"of a time or later":              {store.PointQuery{Since: at(3)}, "r4=4 r0=0 r3=3 r2=2"},
		"before a time":                   {store.PointQuery{Until: at(5)}, "r3=3 r2=2 r1=1"},
		"between times, the oldest first": {store.PointQuery{Since: at(3), Until: at(6), Oldest: true}, "r2=2 r3=3 r0=0"},
		"between equal times":             {store.PointQuery{Since: at(3), Until: at(3)}, ""},
		"after a position":                {store.PointQuery{After: store.PointPosition{Time: at(3), Run: "r3"}}, "r2=2 r1=1"},
		"after a position where no point is": {
			store.PointQuery{After: store.PointPosition{Time: at(4), Run: "q"}, Oldest: true},
			"r0=0 r4=4",
		},
		"after the last": {store.PointQuery{After: store.PointPosition{Time: at(1), Run: "r1"}}, ""},
		"since the first time that a point may have": {store.PointQuery{
			Since: time.Unix(0, math.MinInt64),
			Until: time.Unix(0, math.MaxInt64),
		}, "r4=4 r0=0 r3=3 r2=2 r1=1"},
	} {
		eventually(t, name, tt.want, read(tt.query, 100))
		eventually(t, name+", page by page", tt.want, read(tt.query, 2))
	}
	t.Run("what a series is, is what its points are read by", func(t *testing.T) {
		for _, k := range []store.SeriesKey{
			{Namespace: "pets", Task: "train", Metric: "loss"},
			{Namespace: "pets", Task: "train", Metric: "loss", Unit: "s", Labels: map[string]string{"gpu": "0"}},
			{Namespace: "cars", Task: "train", Metric: "loss", Unit: "s"},
			{Namespace: "pets", Metric: "loss", Unit: "s"},
		} {
			eventually(t, fmt.Sprint(k), "", medians(readPoints(ctx, s, store.PointQuery{Series: k}, 10)))
		}
		loss.Cell = "n=1"
		eventually(t, "of a cell", "other=98", read(store.PointQuery{}, 10))
		loss.Cell, loss.Labels = "", map[string]string{}
		eventually(t, "without labels, however they are written", "r1=1", read(store.PointQuery{Until: at(3)}, 10))
	})
	t.Run("a point has everything that it was written with", func(t *testing.T) {
		full := fullPoints("full")
		must(t, s.PutPoints(ctx, full))
		for _, v := range full.Points {
			eventually(t, v.Metric, []store.Point{{PointRun: full.PointRun, Summary: v}},
				readPoints(ctx, s, store.PointQuery{Series: full.Key(v)}, 10))
		}
	})
	t.Run("what no store keeps is refused", func(t *testing.T) { testRefusedPoints(t, s) })
}

func testRefusedPoints(t *testing.T, s Store) {
	t.Helper()
	for name, change := range map[string]func(*store.RunPoints){
		"points of no run":                 func(p *store.RunPoints) { p.Run = "" },
		"a revision before the first":      func(p *store.RunPoints) { p.Revision = -1 },
		"a metric without a name":          func(p *store.RunPoints) { p.Points[0].Metric = "" },
		"two points of one series":         func(p *store.RunPoints) { p.Points = append(p.Points, p.Points[0]) },
		"a time that no number can hold":   func(p *store.RunPoints) { p.Time = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
		"a time before all that they hold": func(p *store.RunPoints) { p.Time = time.Date(1200, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		p := NewPoints("refused", at(0), 1)
		change(&p)
		if err := s.PutPoints(t.Context(), p); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			wantError(t, err, store.ErrRefused)
		}
	}
	_, err := s.Points(t.Context(), store.PointQuery{}, 0)
	wantError(t, err, store.ErrRefused)
	_, _, err = s.Series(t.Context(), store.SeriesQuery{}, "", 0)
	wantError(t, err, store.ErrRefused)
	_, err = s.RunPoints(t.Context(), make([]string, store.MaxPointRuns+1), nil)
	wantError(t, err, store.ErrRefused)
}

func testRunPoints(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	read := func(runs []string, metrics ...string) func() ([]store.RunPoints, error) {
		return func() ([]store.RunPoints, error) { return s.RunPoints(ctx, runs, metrics) }
	}
	eventually(t, "a run without points is missing", nil, read([]string{"none"}))
	eventually(t, "of no runs there are none", nil, read(nil))
	full, excluded := fullPoints("b"), NewPoints("a", at(1), 1)
	excluded.Excluded = store.ExcludedFailed
	bare := store.RunPoints{PointRun: store.PointRun{Run: "c", Namespace: "pets"}}
	for _, p := range []store.RunPoints{full, excluded, bare} {
		must(t, s.PutPoints(ctx, p))
	}
	all := []string{"none", "c", "b", "a"}
	eventually(t, "all are read as they were written, in the order of their runs", []store.RunPoints{excluded, full, bare}, read(all))
	eventually(t, "so are some", []store.RunPoints{full}, read([]string{"b"}))
	some := full
	some.Points = full.Points[1:]
	onlyRun := excluded
	onlyRun.Points = nil
	eventually(t, "metrics select points, not runs", []store.RunPoints{onlyRun, some, bare}, read(all, "run.duration", "none"))
	testRevisions(t, s)
}

// testRevisions puts points of several revisions of one run.
func testRevisions(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	put := func(revision int64, at time.Time, values ...store.Summary) {
		t.Helper()
		p := NewPoints("r", at, 0)
		p.Revision, p.Points = revision, values
		must(t, s.PutPoints(ctx, p))
	}
	want := func(description, want string) {
		t.Helper()
		eventually(t, description, want, func() (string, error) {
			all, err := s.RunPoints(ctx, []string{"r"}, nil)
			if err != nil || len(all) == 0 {
				return "", err
			}
			texts := []string{fmt.Sprintf("%d at %s:", all[0].Revision, all[0].Time.Format(time.TimeOnly))}
			for _, v := range all[0].Points {
				texts = append(texts, fmt.Sprintf("%s=%g", v.Metric, float64(v.Median)))
			}
			return strings.Join(texts, " "), nil
		})
	}
	loss := func() (string, error) {
		return medians(readPoints(ctx, s, store.PointQuery{Series: NewPoints("", at(0), 0).Key(NewValue("loss", 0))}, 10))()
	}
	put(2, at(1), NewValue("loss", 1), NewValue("speed", 2))
	want("the first revision is stored", "2 at 05:06:01: loss=1 speed=2")
	put(2, at(1), NewValue("loss", 1), NewValue("speed", 2))
	want("again it changes nothing", "2 at 05:06:01: loss=1 speed=2")
	put(2, at(2), NewValue("loss", 8))
	put(1, at(2), NewValue("loss", 9), NewValue("speed", 9), NewValue("accuracy", 9))
	put(0, at(2))
	want("neither an equal nor an older one replaces it", "2 at 05:06:01: loss=1 speed=2")
	put(5, at(3), NewValue("accuracy", 3))
	want("a later one replaces all of it", "5 at 05:06:03: accuracy=3")
	eventually(t, "a series that it has left has no point of it", "", loss)
	put(6, at(4), NewValue("accuracy", 3), NewValue("loss", 4))
	want("a later one may have more", "6 at 05:06:04: accuracy=3 loss=4")
	eventually(t, "a series that it has come back to has one", "r=4", loss)
}

func testSeries(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	list := func(q store.SeriesQuery, limit int) func() (string, error) {
		return func() (string, error) { return listSeries(ctx, s, q, limit) }
	}
	eventually(t, "without points there are no series", "", list(store.SeriesQuery{}, 10))
	for i := range 6 {
		p := NewPoints(fmt.Sprint("r", i), at(i), float64(i))
		p.Namespace, p.Task = pickOne(i, "pets", "cars"), pickOne(i, "train", "train", "test")
		p.Points = append(p.Points, NewValue("löss", 1), NewValue("speed", 1))
		p.Points[0].Direction = pickOne(i, event.Higher, event.Lower)
		must(t, s.PutPoints(ctx, p))
	}
	excluded := NewPoints("r9", at(9), 1)
	excluded.Excluded = store.ExcludedCanceled
	excluded.Points = append(excluded.Points, NewValue("hidden", 1))
	must(t, s.PutPoints(ctx, excluded))
	for name, tt := range map[string]struct {
		query store.SeriesQuery
		want  string
	}{
		"all, in order": {
			store.SeriesQuery{},
			"cars/test/loss 1 5 lower,cars/test/löss 1 5,cars/test/speed 1 5,cars/train/loss 2 3 lower,cars/train/löss 2 3,cars/train/speed 2 3," +
				"pets/test/loss 1 2 higher,pets/test/löss 1 2,pets/test/speed 1 2,pets/train/loss 2 4 higher,pets/train/löss 2 4,pets/train/speed 2 4",
		},
		"of a namespace and a task": {
			store.SeriesQuery{Namespace: "pets", Task: "test"},
			"pets/test/loss 1 2 higher,pets/test/löss 1 2,pets/test/speed 1 2",
		},
		"of a task": {
			store.SeriesQuery{Task: "train", MetricPrefix: "s"},
			"cars/train/speed 2 3,pets/train/speed 2 4",
		},
		"whose metric begins with a text": {
			store.SeriesQuery{Namespace: "cars", MetricPrefix: "lö"},
			"cars/test/löss 1 5,cars/train/löss 2 3",
		},
		"whose metric is the text": {
			store.SeriesQuery{Namespace: "cars", MetricPrefix: "loss"},
			"cars/test/loss 1 5 lower,cars/train/loss 2 3 lower",
		},
		"of a metric of excluded runs":     {store.SeriesQuery{MetricPrefix: "hid"}, ""},
		"of a namespace that there is not": {store.SeriesQuery{Namespace: "pet"}, ""},
	} {
		eventually(t, name, tt.want, list(tt.query, 100))
		eventually(t, name+", page by page", tt.want, list(tt.query, 2))
	}
	t.Run("units, labels and cells make series of their own", func(t *testing.T) {
		p := NewPoints("r8", at(8), 1)
		p.Task = "own"
		p.Points = []store.Summary{
			{Metric: "m"},
			{Metric: "m", Unit: "s"},
			{Metric: "m", Labels: map[string]string{"k": "v"}},
			{Metric: "m", Labels: map[string]string{"k": "w"}},
		}
		must(t, s.PutPoints(ctx, p))
		p.Run, p.Cell = "r7", "n=1"
		must(t, s.PutPoints(ctx, p))
		want := strings.Repeat("pets/own/m 1 8,", 4) + strings.TrimSuffix(strings.Repeat("pets/own/m 1 8,", 4), ",")
		eventually(t, "of all", want, list(store.SeriesQuery{Task: "own"}, 3))
	})
	t.Run("a cursor of another query is none", func(t *testing.T) {
		_, cursor, err := s.Series(ctx, store.SeriesQuery{}, "", 2)
		must(t, err)
		for _, q := range []store.SeriesQuery{{Namespace: "pets"}, {MetricPrefix: "l"}} {
			_, _, err := s.Series(ctx, q, cursor, 2)
			wantError(t, err, store.ErrCursor)
		}
		_, _, err = s.Series(ctx, store.SeriesQuery{}, "nonsense", 2)
		wantError(t, err, store.ErrCursor)
	})
}

// listSeries reads all pages, and returns for each series its name, number of points, and the second and direction of the newest.
func listSeries(ctx context.Context, s Store, q store.SeriesQuery, limit int) (string, error) {
	var all []string
	for cursor := ""; ; {
		page, next, err := s.Series(ctx, q, cursor, limit)
		if err != nil || next != "" && len(page) != limit {
			return "", fmt.Errorf("a page of %d before the last: %w", len(page), err)
		}
		for _, one := range page {
			text := fmt.Sprintf("%s/%s/%s %d %d %s", one.Namespace, one.Task, one.Metric, one.Points,
				int(one.Newest.Sub(at(0)).Seconds()), one.Direction)
			all = append(all, strings.TrimSpace(text))
		}
		if cursor = next; cursor == "" {
			return strings.Join(slices.Clip(all), ","), nil
		}
	}
}
