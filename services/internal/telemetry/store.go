package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// dataStore is the part of a store that holds data.
type dataStore interface {
	docStore
	runStore
	resultStore
}

// resultStore has all methods of the data of runs.
type resultStore interface {
	store.Streams
	store.Points
}

// docStore has all methods of documents.
type docStore interface {
	store.Docs
	store.Lister
}

// runStore has all methods of runs.
type runStore interface {
	store.Runs
	store.Counter
	store.Notifier
}

// backend is the whole of a store.
type backend interface {
	dataStore
	Check(ctx context.Context) error
	Close() error
}

// Store is a store whose verbs are counted.
type Store struct {
	backend

	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

// Store returns s, with its verbs counted. It may be called once for a process.
func (t *Telemetry) Store(s backend) *Store {
	c := &Store{
		backend: s,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bai_store_seconds", Help: "How long the store took to answer.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"verb"}),
		failures: counter("bai_store_errors_total", "Times that the store could not: it was away, or refused what it will never keep.",
			"verb", "kind"),
	}
	t.registry.MustRegister(c.duration, c.failures)
	return c
}

// record counts one use of the store. Not found, already exists and conflict are answers,
// no errors.
func (s *Store) record(verb string, begun time.Time, err error) {
	s.duration.WithLabelValues(verb).Observe(time.Since(begun).Seconds())
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrConflict),
		errors.Is(err, store.ErrCursor), errors.Is(err, context.Canceled):
	case errors.Is(err, store.ErrRefused):
		s.failures.WithLabelValues(verb, "refused").Inc()
	default:
		s.failures.WithLabelValues(verb, "away").Inc()
	}
}

// CreateDoc implements store.Docs.
func (s *Store) CreateDoc(ctx context.Context, d store.Doc) (err error) {
	defer func(begun time.Time) { s.record("create", begun, err) }(time.Now())
	return s.backend.CreateDoc(ctx, d)
}

// Doc implements store.Docs.
func (s *Store) Doc(ctx context.Context, kind store.Kind, key string) (_ store.Doc, err error) {
	defer func(begun time.Time) { s.record("get", begun, err) }(time.Now())
	return s.backend.Doc(ctx, kind, key)
}

// ReplaceDoc implements store.Docs.
func (s *Store) ReplaceDoc(ctx context.Context, d store.Doc) (_ int64, err error) {
	defer func(begun time.Time) { s.record("replace", begun, err) }(time.Now())
	return s.backend.ReplaceDoc(ctx, d)
}

// DeleteDoc implements store.Docs.
func (s *Store) DeleteDoc(ctx context.Context, d store.Doc) (err error) {
	defer func(begun time.Time) { s.record("delete", begun, err) }(time.Now())
	return s.backend.DeleteDoc(ctx, d)
}

// Docs implements store.Lister.
func (s *Store) Docs(ctx context.Context, kind store.Kind, after string, limit int) (_ []store.Doc, err error) {
	defer func(begun time.Time) { s.record("list", begun, err) }(time.Now())
	return s.backend.Docs(ctx, kind, after, limit)
}

// PutRun implements store.Runs.
func (s *Store) PutRun(ctx context.Context, r store.Run, c store.Change) (err error) {
	defer func(begun time.Time) { s.record("put run", begun, err) }(time.Now())
	return s.backend.PutRun(ctx, r, c)
}

// Run implements store.Runs.
func (s *Store) Run(ctx context.Context, id string) (_ store.Run, err error) {
	defer func(begun time.Time) { s.record("get run", begun, err) }(time.Now())
	return s.backend.Run(ctx, id)
}

// Runs implements store.Runs.
func (s *Store) Runs(ctx context.Context, f store.RunFilter, token string, limit int) (_ []store.Run, _ string, err error) {
	defer func(begun time.Time) { s.record("list runs", begun, err) }(time.Now())
	return s.backend.Runs(ctx, f, token, limit)
}

// Changes implements store.Runs.
func (s *Store) Changes(ctx context.Context, run string, after int64, limit int) (_ []store.Change, err error) {
	defer func(begun time.Time) { s.record("list changes", begun, err) }(time.Now())
	return s.backend.Changes(ctx, run, after, limit)
}

// AppendSamples implements store.Appender.
func (s *Store) AppendSamples(ctx context.Context, batches []store.Samples) (err error) {
	defer func(begun time.Time) { s.record("append samples", begun, err) }(time.Now())
	return s.backend.AppendSamples(ctx, batches)
}

// AppendLines implements store.Appender.
func (s *Store) AppendLines(ctx context.Context, batches []store.Lines) (err error) {
	defer func(begun time.Time) { s.record("append lines", begun, err) }(time.Now())
	return s.backend.AppendLines(ctx, batches)
}

// Samples implements store.Reader.
func (s *Store) Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) (_ []store.Sample, _ string, err error) {
	defer func(begun time.Time) { s.record("read samples", begun, err) }(time.Now())
	return s.backend.Samples(ctx, q, cursor, limit)
}

// Lines implements store.Reader.
func (s *Store) Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) (_ []store.Line, _ string, err error) {
	defer func(begun time.Time) { s.record("read lines", begun, err) }(time.Now())
	return s.backend.Lines(ctx, q, cursor, limit)
}

// Streams implements store.Reader.
func (s *Store) Streams(ctx context.Context, run string) (_ []store.Stream, err error) {
	defer func(begun time.Time) { s.record("read streams", begun, err) }(time.Now())
	return s.backend.Streams(ctx, run)
}

// Stats implements store.Counter.
func (s *Store) Stats(ctx context.Context) (_ store.Stats, err error) {
	defer func(begun time.Time) { s.record("count runs", begun, err) }(time.Now())
	return s.backend.Stats(ctx)
}

// PutPoints implements store.Points.
func (s *Store) PutPoints(ctx context.Context, p store.RunPoints) (err error) {
	defer func(begun time.Time) { s.record("put points", begun, err) }(time.Now())
	return s.backend.PutPoints(ctx, p)
}

// Series implements store.PointReader.
func (s *Store) Series(ctx context.Context, q store.SeriesQuery, cursor string, limit int) (_ []store.Series, _ string, err error) {
	defer func(begun time.Time) { s.record("list series", begun, err) }(time.Now())
	return s.backend.Series(ctx, q, cursor, limit)
}

// Points implements store.PointReader.
func (s *Store) Points(ctx context.Context, q store.PointQuery, limit int) (_ []store.Point, err error) {
	defer func(begun time.Time) { s.record("read points", begun, err) }(time.Now())
	return s.backend.Points(ctx, q, limit)
}

// RunPoints implements store.PointReader.
func (s *Store) RunPoints(ctx context.Context, runs, metrics []string) (_ []store.RunPoints, err error) {
	defer func(begun time.Time) { s.record("read points of runs", begun, err) }(time.Now())
	return s.backend.RunPoints(ctx, runs, metrics)
}
