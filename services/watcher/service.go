// Package watcher publishes the progress and the end of each launched run, from the state of its job and pods in the cluster.
//
// Each launched attempt has a document until its end is published, so that any replica continues after a restart, and every replica may
// watch every run: the ID of every event follows from the observed state. The replica that first stores how an attempt ended decides its
// end; other replicas publish the same one.
//
// Package verdict has every rule. A change, an event and a restart all cause the same: observe, and decide again.
package watcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	// how long a run may wait for what may never come, if its descriptor does not say; zero means 10 min
	PendingDeadline time.Duration `toml:"pending_deadline"`
	Grace           time.Duration `toml:"grace"` // how long a job may be gone before that is believed; zero means 3 s
	// between two looks at all launched runs, live at those that were not heard of for thrice as long; zero means 30 s
	Reconcile time.Duration `toml:"reconcile"`
	Retry     time.Duration `toml:"retry"`     // first wait before what failed is tried again; zero means 250 ms
	LogGrace  time.Duration `toml:"log_grace"` // how long the end of an image's own entrypoint waits until its log is read; zero means 20 s
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"pending_deadline", s.PendingDeadline},
		{"grace", s.Grace},
		{"reconcile", s.Reconcile},
		{"retry", s.Retry},
		{"log_grace", s.LogGrace},
	} {
		if d.d < 0 {
			errs = append(errs, fmt.Errorf("watcher.%s: must not be negative", d.name))
		}
	}
	return errors.Join(errs...)
}

func (s Settings) withDefaults() Settings {
	s.PendingDeadline = cmp.Or(s.PendingDeadline, 10*time.Minute)
	s.Grace = cmp.Or(s.Grace, 3*time.Second)
	s.Reconcile = cmp.Or(s.Reconcile, 30*time.Second)
	s.Retry = cmp.Or(s.Retry, 250*time.Millisecond)
	s.LogGrace = cmp.Or(s.LogGrace, 20*time.Second)
	return s
}

// maxRetry is the longest pause before a failed step is retried.
func (s Settings) maxRetry() time.Duration { return min(32*s.Retry, s.Reconcile) }

// Bus carries events.
type Bus interface {
	// Consume returns a runnable that passes the events of a group to step, and publishes the events that step returns. Runnables of one
	// group share the events.
	Consume(group string, step service.Step) service.Runnable
	// Publish publishes events, those of one run in their order, and returns when they are safe.
	Publish(ctx context.Context, events ...event.Event) error
}

// Store stores the watched attempts.
type Store interface {
	store.Docs
	store.Lister
	// Run returns the run, or store.ErrNotFound.
	Run(ctx context.Context, id string) (store.Run, error)
}

// Cluster runs the attempts.
type Cluster interface {
	cluster.Observer
	cluster.Occupier
}

// Deps are the dependencies of the service.
type Deps struct {
	Bus       Bus
	Store     Store
	Cluster   Cluster                         // of the default engine
	Ready     func(ctx context.Context) error // as that of Engine; of the default engine
	Annotator cluster.Annotator               // as that of Engine; of the default engine
	Engines   map[string]Engine               // each other engine, by its name in launches
	Clock     func() time.Time                // nil means the machine's clock
	Log       *zap.Logger                     // nil means no log
}

// New returns the parts of the service, by name. The names are unique among all
// services, so that one process can run several.
func New(s Settings, d Deps) map[string]service.Runnable {
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	w := newWatcher(s.withDefaults(), d)
	parts := w.runnables()
	parts["watcher/launched"] = d.Bus.Consume("watcher-launched", service.On(w.onLaunched))
	parts["watcher/commands"] = d.Bus.Consume("watcher-commands", service.On(w.onCommand))
	parts["watcher/decide"] = w.run
	return parts
}
