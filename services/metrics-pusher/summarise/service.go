// Package summarise computes exact summaries of the samples of each run, once the run has finished and the store has all samples, and
// stores its points: its values in the series of its task. If some samples do not come, it summarises the stored ones, says so, and
// replaces the summaries once all are stored.
//
// The store has a document for each run that is to be summarised until it is, so that no run is lost with a process, and any process can
// summarise it. Several processes that summarise the same run store the same result. The order of the effects is summary, points, the event
// that they are stored (event.Summarised), what the next step needs, and the removal of the document, and all of them are repeated after a
// kill. Points of runs from before the store had any are stored by reindex.go, which publishes nothing.
package summarise

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	// how long after a run's end, and after the last of its data came, more are waited for; then those that are there are summarised; zero
	// means 10m
	GracePeriod time.Duration `toml:"patience"`
	// how long after a run's end it is summarised again when more of its data come; zero means 24h
	AllowedLateness time.Duration `toml:"late"`
	PollInterval    time.Duration `toml:"look"` // how often it looks for what another process has left; zero means 1m
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.GracePeriod < 0 {
		errs = append(errs, errors.New("summaries.patience: must not be negative"))
	}
	if s.AllowedLateness < 0 {
		errs = append(errs, errors.New("summaries.late: must not be negative"))
	}
	if s.PollInterval < 0 {
		errs = append(errs, errors.New("summaries.look: must not be negative"))
	}
	return errors.Join(errs...)
}

// Bus carries events.
type Bus interface {
	// Consume returns a runnable that passes the events of a group to step, and publishes the events that step returns. Runnables of one
	// group share the events.
	Consume(group string, step service.Step) service.Runnable
	// Publish publishes events, those of one run in their order, and returns when they are safe.
	Publish(ctx context.Context, events ...event.Event) error
}

// Store has runs, their samples, their summaries, and their points.
type Store interface {
	store.Docs
	store.Lister
	resultStore
}

// resultStore has runs and their data.
type resultStore interface {
	runReader
	sampleReader
	pointStore
}

// pointStore stores points.
type pointStore interface {
	// PutPoints and RunPoints are those of store.Points.
	PutPoints(ctx context.Context, p store.RunPoints) error
	RunPoints(ctx context.Context, runs, metrics []string) ([]store.RunPoints, error)
}

// runReader reads runs.
type runReader interface {
	// Run and Runs are those of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
}

// sampleReader reads the streams and samples of runs.
type sampleReader interface {
	// Samples and Streams are those of store.Reader.
	Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) (samples []store.Sample, next string, err error)
	Streams(ctx context.Context, run string) ([]store.Stream, error)
}

// Deps are the dependencies of the service.
type Deps struct {
	Bus    Bus
	Store  Store
	Prices price.Table // of machines, by instance type; may be empty
	// Summarised is called with each run that has its last summaries, before the run is forgotten; it may be called again for the same run.
	// While it fails, the run is not forgotten. Nil calls nothing.
	Summarised func(ctx context.Context, r store.Run) error
	Now        func() time.Time // time.Now but in tests
	Log        *zap.Logger
}

// New returns the parts of the service, by name. The names are unique among all
// services, so that one process can run several.
func New(s Settings, d Deps) map[string]service.Runnable {
	s.GracePeriod, s.AllowedLateness, s.PollInterval = cmp.Or(s.GracePeriod, 10*time.Minute), cmp.Or(s.AllowedLateness, 24*time.Hour),
		cmp.Or(s.PollInterval, time.Minute)
	runs := queue.New(d.Log, queue.Settings[string]{
		First: firstPause, Max: slowPollFactor * s.PollInterval,
		Fields: func(run string) []zap.Field {
			return []zap.Field{zap.String("run", run)}
		},
	})
	w := &worker{
		settings: s, prices: d.Prices, bus: d.Bus, pointStorer: pointStorer{d.Store, d.Log}, summarised: d.Summarised, now: d.Now,
		queue: runs, tracked: make(map[string]bool),
	}
	return map[string]service.Runnable{
		"metrics-pusher/summarise/finished": d.Bus.Consume("metrics-pusher-summaries", service.Batch(maxEvents, w.finished)),
		"metrics-pusher/summarise/work":     w.work,
		"metrics-pusher/summarise/reindex":  newReindexer(d).run,
	}
}
