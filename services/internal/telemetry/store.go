package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// contents are what a store keeps.
type contents interface {
	store.Docs
	store.Lister
	runs
	store.Streams
}

// runs are all verbs of runs.
type runs interface {
	store.Runs
	store.Counter
}

// keeper is the whole of a store.
type keeper interface {
	contents
	store.Notifier
	Check(ctx context.Context) error
	Close() error
}

// Store is a store whose verbs are counted.
type Store struct {
	keeper

	took   *prometheus.HistogramVec
	failed *prometheus.CounterVec
}

// Store returns s, with its verbs counted. It may be called once for a process.
func (t *Telemetry) Store(s keeper) *Store {
	c := &Store{
		keeper: s,
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bai_store_seconds", Help: "How long the store took to answer.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"verb"}),
		failed: counter("bai_store_errors_total", "Times that the store could not: it was away, or refused what it will never keep.", "verb", "kind"),
	}
	t.registry.MustRegister(c.took, c.failed)
	return c
}

// came counts one use of the store. What was not there, was there already or has
// changed meanwhile is an answer, no error.
func (s *Store) came(verb string, begun time.Time, err error) {
	s.took.WithLabelValues(verb).Observe(time.Since(begun).Seconds())
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrConflict),
		errors.Is(err, store.ErrCursor), errors.Is(err, context.Canceled):
	case errors.Is(err, store.ErrRefused):
		s.failed.WithLabelValues(verb, "refused").Inc()
	default:
		s.failed.WithLabelValues(verb, "away").Inc()
	}
}

// CreateDoc implements store.Docs.
func (s *Store) CreateDoc(ctx context.Context, d store.Doc) (err error) {
	defer func(begun time.Time) { s.came("create", begun, err) }(time.Now())
	return s.keeper.CreateDoc(ctx, d)
}

// Doc implements store.Docs.
func (s *Store) Doc(ctx context.Context, kind store.Kind, key string) (_ store.Doc, err error) {
	defer func(begun time.Time) { s.came("get", begun, err) }(time.Now())
	return s.keeper.Doc(ctx, kind, key)
}

// ReplaceDoc implements store.Docs.
func (s *Store) ReplaceDoc(ctx context.Context, d store.Doc) (_ int64, err error) {
	defer func(begun time.Time) { s.came("replace", begun, err) }(time.Now())
	return s.keeper.ReplaceDoc(ctx, d)
}

// DeleteDoc implements store.Docs.
func (s *Store) DeleteDoc(ctx context.Context, d store.Doc) (err error) {
	defer func(begun time.Time) { s.came("delete", begun, err) }(time.Now())
	return s.keeper.DeleteDoc(ctx, d)
}

// Docs implements store.Lister.
func (s *Store) Docs(ctx context.Context, kind store.Kind, after string, limit int) (_ []store.Doc, err error) {
	defer func(begun time.Time) { s.came("list", begun, err) }(time.Now())
	return s.keeper.Docs(ctx, kind, after, limit)
}

// PutRun implements store.Runs.
func (s *Store) PutRun(ctx context.Context, r store.Run, c store.Change) (err error) {
	defer func(begun time.Time) { s.came("put run", begun, err) }(time.Now())
	return s.keeper.PutRun(ctx, r, c)
}

// Run implements store.Runs.
func (s *Store) Run(ctx context.Context, id string) (_ store.Run, err error) {
	defer func(begun time.Time) { s.came("get run", begun, err) }(time.Now())
	return s.keeper.Run(ctx, id)
}

// Runs implements store.Runs.
func (s *Store) Runs(ctx context.Context, f store.RunFilter, token string, limit int) (_ []store.Run, _ string, err error) {
	defer func(begun time.Time) { s.came("list runs", begun, err) }(time.Now())
	return s.keeper.Runs(ctx, f, token, limit)
}

// Changes implements store.Runs.
func (s *Store) Changes(ctx context.Context, run string, after int64, limit int) (_ []store.Change, err error) {
	defer func(begun time.Time) { s.came("list changes", begun, err) }(time.Now())
	return s.keeper.Changes(ctx, run, after, limit)
}

// AppendSamples implements store.Appender.
func (s *Store) AppendSamples(ctx context.Context, batches []store.Samples) (err error) {
	defer func(begun time.Time) { s.came("append samples", begun, err) }(time.Now())
	return s.keeper.AppendSamples(ctx, batches)
}

// AppendLines implements store.Appender.
func (s *Store) AppendLines(ctx context.Context, batches []store.Lines) (err error) {
	defer func(begun time.Time) { s.came("append lines", begun, err) }(time.Now())
	return s.keeper.AppendLines(ctx, batches)
}

// Samples implements store.Reader.
func (s *Store) Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) (_ []store.Sample, _ string, err error) {
	defer func(begun time.Time) { s.came("read samples", begun, err) }(time.Now())
	return s.keeper.Samples(ctx, q, cursor, limit)
}

// Lines implements store.Reader.
func (s *Store) Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) (_ []store.Line, _ string, err error) {
	defer func(begun time.Time) { s.came("read lines", begun, err) }(time.Now())
	return s.keeper.Lines(ctx, q, cursor, limit)
}

// Streams implements store.Reader.
func (s *Store) Streams(ctx context.Context, run string) (_ []store.Stream, err error) {
	defer func(begun time.Time) { s.came("read streams", begun, err) }(time.Now())
	return s.keeper.Streams(ctx, run)
}

// Census implements store.Counter.
func (s *Store) Census(ctx context.Context) (_ store.Census, err error) {
	defer func(begun time.Time) { s.came("count runs", begun, err) }(time.Now())
	return s.keeper.Census(ctx)
}
