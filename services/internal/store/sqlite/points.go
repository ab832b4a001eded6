package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/pointvalue"
)

const (
	readPointRun  = "SELECT revision, counts, time, series FROM pointruns WHERE run = ?"
	putPointRun   = "INSERT OR REPLACE INTO pointruns(run, revision, counts, time, series, doc) VALUES (?, ?, ?, ?, ?, ?)"
	findSeries    = "SELECT n FROM series WHERE id = ?1"
	addSeries     = "INSERT INTO series(id, namespace, task, metric, points, doc) VALUES (?1, ?2, ?3, ?4, 0, ?5)"
	countSeries   = "UPDATE series SET points = points + ? WHERE n = ?"
	putPoint      = "INSERT INTO points(series, counts, time, run, value) VALUES (?, ?, ?, ?, ?)"
	deletePoint   = "DELETE FROM points WHERE series = ? AND counts = ? AND time = ? AND run = ?"
	readRunPoints = `SELECT r.run, r.revision, r.doc, s.n, s.doc, p.value
		FROM pointruns r LEFT JOIN json_each(r.series) e ON true
		LEFT JOIN series s ON s.n = e.value AND (?2 = '[]' OR s.metric IN (SELECT value FROM json_each(?2)))
		LEFT JOIN points p ON p.series = s.n AND p.counts = r.counts AND p.time = r.time AND p.run = r.run
		WHERE r.run IN (SELECT value FROM json_each(?1)) ORDER BY r.run, e.key`
)

// PutPoints implements store.Points.
func (s *Store) PutPoints(ctx context.Context, p store.RunPoints) error {
	if err := p.Validate(); err != nil {
		return err
	}
	doc, err := json.Marshal(p.PointRun)
	if err != nil {
		return fmt.Errorf("write points of run %q: %w: %w", p.Run, store.ErrRefused, err)
	}
	err = s.update(ctx, func(t tx) error {
		before, err := loadPointRun(ctx, t, p.Run)
		if err != nil || before.found && before.revision >= p.Revision {
			return err
		}
		if err := before.remove(ctx, t); err != nil {
			return err
		}
		return putPoints(ctx, t, p, doc)
	})
	return s.wrapError(fmt.Sprintf("write points of run %q", p.Run), err)
}

// storedPointRun is the row of a run with stored points. Its rows in the table points have these numbers of series.
type storedPointRun struct {
	run      string
	found    bool
	revision int64
	counts   bool
	time     int64
	series   []int64
}

func loadPointRun(ctx context.Context, t tx, run string) (storedPointRun, error) {
	r := storedPointRun{run: run}
	var series string
	err := t.row(ctx, readPointRun, run).Scan(&r.revision, &r.counts, &r.time, &series)
	if errors.Is(err, sql.ErrNoRows) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.found = true
	return r, json.Unmarshal([]byte(series), &r.series)
}

// remove removes the points of the run.
func (r storedPointRun) remove(ctx context.Context, t tx) error {
	for _, n := range r.series {
		if _, err := t.exec(ctx, deletePoint, n, r.counts, r.time, r.run); err != nil {
			return err
		}
		if _, err := t.exec(ctx, countSeries, -bit(r.counts, 1), n); err != nil {
			return err
		}
	}
	return nil
}

// putPoints stores the points of a run that has none.
func putPoints(ctx context.Context, t tx, p store.RunPoints, doc []byte) error {
	counts, at, a := p.Excluded == "", nanos(p.Time), &appender{tx: t}
	series := make([]int64, 0, len(p.Points))
	for _, v := range p.Points {
		n, err := a.seriesID(ctx, p.Key(v))
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, putPoint, n, counts, at, p.Run, pointvalue.Encode(v)); err != nil {
			return err
		}
		if _, err := t.exec(ctx, countSeries, bit(counts, 1), n); err != nil {
			return err
		}
		series = append(series, n)
	}
	list, err := json.Marshal(series)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, putPointRun, p.Run, p.Revision, counts, at, string(list), doc)
	return err
}

// seriesID returns the number of a series, which is created if needed.
func (a *appender) seriesID(ctx context.Context, k store.SeriesKey) (int64, error) {
	doc, err := json.Marshal(k)
	if err != nil {
		return 0, err
	}
	return a.rowID(ctx, addSeries, findSeries, k.ID(), k.Namespace, k.Task, k.Metric, doc)
}

// RunPoints implements store.PointReader.
func (s *Store) RunPoints(ctx context.Context, runs, metrics []string) ([]store.RunPoints, error) {
	if err := store.ValidatePointRuns(runs); err != nil {
		return nil, err
	}
	ids, err := jsonList(runs)
	if err != nil {
		return nil, err
	}
	names, err := jsonList(metrics)
	if err != nil {
		return nil, err
	}
	b := runPointsReader{series: make(map[int64]store.SeriesKey)}
	err = s.query(ctx, b.row, readRunPoints, ids, names)
	return b.all, s.wrapError(fmt.Sprintf("read the points of %d runs", len(runs)), err)
}

// jsonList returns texts as a list of JSON, never null.
func jsonList(texts []string) (string, error) {
	b, err := json.Marshal(append([]string{}, texts...))
	return string(b), err
}

// runPointsReader gathers the rows of readRunPoints.
type runPointsReader struct {
	all    []store.RunPoints
	series map[int64]store.SeriesKey // that were read, by number
}

// row adds a row: a run with one of its points, or without any.
func (b *runPointsReader) row(rows *sql.Rows) error {
	var run string
	var revision int64
	var doc, key, value []byte
	var series sql.NullInt64
	if err := rows.Scan(&run, &revision, &doc, &series, &key, &value); err != nil {
		return err
	}
	if n := len(b.all); n == 0 || b.all[n-1].Run != run {
		next := store.RunPoints{Revision: revision}
		if err := json.Unmarshal(doc, &next.PointRun); err != nil {
			return err
		}
		b.all = append(b.all, next)
	}
	if !series.Valid {
		return nil
	}
	k, known := b.series[series.Int64]
	if !known {
		if err := json.Unmarshal(key, &k); err != nil {
			return err
		}
		b.series[series.Int64] = k
	}
	v, err := pointvalue.Decode(k, value)
	last := &b.all[len(b.all)-1]
	last.Points = append(last.Points, v)
	return err
}

// Points implements store.PointReader. It walks the rows of the series from the position on.
func (s *Store) Points(ctx context.Context, q store.PointQuery, limit int) ([]store.Point, error) {
	if err := positive(limit); err != nil {
		return nil, err
	}
	text, args := pointsQuery(q, limit)
	var points []store.Point
	err := s.query(ctx, func(rows *sql.Rows) error {
		var doc, value sql.RawBytes // nothing below keeps them
		if err := rows.Scan(&doc, &value); err != nil {
			return err
		}
		var p store.Point
		var err error
		if p.PointRun, err = s.pointRuns.Decode(doc); err == nil {
			p.Summary, err = pointvalue.Decode(q.Series, value)
		}
		points = append(points, p)
		return err
	}, text, args...)
	return points, s.wrapError(fmt.Sprintf("read points of metric %q of task %q", q.Series.Metric, q.Series.Task), err)
}

// pointsQuery returns the query for points of a series.
func pointsQuery(q store.PointQuery, limit int) (text string, args []any) {
	order, beyond := "DESC", "<"
	if q.Oldest {
		order, beyond = "ASC", ">"
	}
	text = `SELECT r.doc, p.value FROM points p CROSS JOIN pointruns r ON r.run = p.run
		WHERE p.series = (SELECT n FROM series WHERE id = ?) AND p.counts = 1`
	args = []any{q.Series.ID()}
	where := func(term string, values ...any) { text, args = text+" AND "+term, append(args, values...) }
	if !q.Since.IsZero() {
		where("p.time >= ?", nanos(q.Since))
	}
	if !q.Until.IsZero() {
		where("p.time < ?", nanos(q.Until))
	}
	if q.After.Run != "" {
		where("(p.time, p.run) "+beyond+" (?, ?)", nanos(q.After.Time), q.After.Run)
	}
	return text + " ORDER BY p.time " + order + ", p.run " + order + " LIMIT ?", append(args, limit)
}
