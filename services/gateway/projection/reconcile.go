package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	Interval    time.Duration `toml:"interval"`     // time between two checks of all unfinished runs; zero means 30s
	NoProgress  time.Duration `toml:"no_progress"`  // time without progress after which an unlaunched run is stalled; zero means 15m
	CancelAgain time.Duration `toml:"cancel_again"` // time without progress after which a cancel is repeated; zero means 30s
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	for name, d := range map[string]time.Duration{"interval": s.Interval, "no_progress": s.NoProgress, "cancel_again": s.CancelAgain} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("gateway.record.%s: must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

// page is the number of runs read at once.
const page = 200

// Reader reads runs and their documents.
type Reader interface {
	// Runs does the same as store.Runs.Runs.
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
	// Doc does the same as store.Docs.Doc.
	Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error)
}

// Publisher publishes events.
type Publisher interface {
	// Publish returns when the events are stored for all consumers.
	Publish(ctx context.Context, events ...event.Event) error
}

// Reconciler checks all unfinished runs at intervals, and publishes a remedy for
// stalled ones. Several Reconcilers may run at once, since they publish the same
// events.
type Reconciler struct {
	settings Settings
	reader   Reader
	bus      Publisher
	log      *zap.Logger
	states   map[string]stallState
}

// NewReconciler returns a Reconciler.
func NewReconciler(s Settings, reader Reader, bus Publisher, log *zap.Logger) *Reconciler {
	s.Interval = cmp.Or(s.Interval, 30*time.Second)
	s.NoProgress = cmp.Or(s.NoProgress, 15*time.Minute)
	s.CancelAgain = cmp.Or(s.CancelAgain, 30*time.Second)
	return &Reconciler{settings: s, reader: reader, bus: bus, log: log, states: make(map[string]stallState)}
}

// Run reconciles all runs at intervals until ctx is done.
func (r *Reconciler) Run(ctx context.Context) error {
	reconcile := func(ctx context.Context) (time.Duration, error) { return 0, r.ReconcileAll(ctx, time.Now()) }
	return control.NewLoop("reconciler", r.settings.Interval, r.log, reconcile, control.LoopSettings{
		Failing: "reconciler waits", Working: "reconciler goes on",
	}).Run(ctx)
}

// ReconcileAll checks every unfinished run once. Only one goroutine at a time may call
// it. After an error, the remaining runs keep their state.
func (r *Reconciler) ReconcileAll(ctx context.Context, now time.Time) error {
	phases := event.Phases()
	open := store.RunFilter{Phases: phases[:len(phases)-1]}
	current := make(map[string]stallState)
	for token := ""; ; {
		runs, next, err := r.reader.Runs(ctx, open, token, page)
		if err != nil {
			return fmt.Errorf("list runs that are not over: %w", err)
		}
		for _, run := range runs {
			seen, err := r.reconcile(ctx, run, now)
			if err != nil {
				return fmt.Errorf("look after run %s: %w", run.ID, err)
			}
			r.states[run.ID], current[run.ID] = seen, seen
		}
		if next == "" {
			r.states = current // drops the state of finished runs
			return nil
		}
		token = next
	}
}

// reconcile applies a remedy to one run if necessary, and returns the run's new state.
func (r *Reconciler) reconcile(ctx context.Context, run store.Run, now time.Time) (stallState, error) {
	mark, _, canceled, err := store.Find[event.Command](ctx, r.reader, store.KindCancel, run.ID)
	if err != nil {
		return stallState{}, err
	}
	action, seen := decideStall(run, canceled, r.states[run.ID], now, r.settings)
	evs, err := r.eventsFor(ctx, run, action, mark)
	if err != nil || len(evs) == 0 {
		return seen, err
	}
	r.log.Info("stands still", zap.String("run", run.ID), zap.String("phase", string(run.Phase)), zap.String("remedy", string(action)))
	ctx, cancel := context.WithTimeout(ctx, r.settings.Interval)
	defer cancel()
	return seen, r.bus.Publish(ctx, evs...)
}

// eventsFor returns the events of a remedy.
func (r *Reconciler) eventsFor(ctx context.Context, run store.Run, action action, mark event.Command) ([]event.Event, error) {
	switch action {
	case CancelAgain:
		return []event.Event{mark}, nil
	case GiveUp:
		return []event.Event{noProgress(run, r.settings)}, nil
	case Resubmit:
		sub, _, found, err := store.Find[event.Submitted](ctx, r.reader, store.KindSubmission, run.ID)
		if !found {
			return nil, err
		}
		return []event.Event{sub}, nil
	case Wait:
	}
	return nil, nil
}
