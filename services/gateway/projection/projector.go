// Package projection stores the state of each run. It projects the events of all topics
// into runs and their history, and applies a remedy to stalled runs.
//
// The rules are in decideStall and Apply; Projector and Reconciler gather their input
// and carry out their results.
package projection

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// batchSize is the number of events handled and committed at once.
const batchSize = 64

// Store stores runs.
type Store interface {
	// PutRun and Run do the same as those of store.Runs.
	PutRun(ctx context.Context, r store.Run, c store.Change) error
	Run(ctx context.Context, id string) (store.Run, error)
}

// Projector applies events to runs. Several goroutines may use it, and so may several
// processes on one store. Each event is applied once, whichever process consumes it.
type Projector struct {
	store Store
	ended func(run store.Run)
	locks [64]sync.Mutex // each is shared by some runs; without locks, the topics of one process would often conflict
}

// lockOf returns the mutex of a run. The last character of an ID is random.
func (r *Projector) lockOf(run string) *sync.Mutex {
	return &r.locks[int(run[len(run)-1])%len(r.locks)]
}

// NewProjector returns a Projector that calls ended for each run that it has stored as
// finished. Another process may project the end of a run instead.
func NewProjector(s Store, ended func(run store.Run)) *Projector {
	return &Projector{store: s, ended: ended}
}

// Steps returns the consumer of each topic that has events of runs.
func (r *Projector) Steps() []service.Step {
	return []service.Step{
		newStep[event.Submitted](r), newStep[event.Command](r), newStep[event.Fetched](r), newStep[event.Launched](r),
		newStep[event.Retried](r), newStep[event.Status](r), newStep[event.Finished](r),
	}
}

func newStep[T event.Event](r *Projector) service.Step {
	return service.Batch(batchSize, func(ctx context.Context, evs []T) ([]event.Event, error) {
		cache := make(map[string]store.Run) // runs as this call last wrote them
		for _, ev := range evs {
			if h := ev.Head(); h.Run == h.Schedule {
				continue // the event is about a schedule, not a run
			}
			if err := r.project(ctx, cache, ev); err != nil {
				return nil, fmt.Errorf("record %s of run %s: %w", ev.Topic(), ev.Head().Run, err)
			}
		}
		return nil, nil
	})
}

// project applies one event to its run. It retries while other writers change the run.
func (r *Projector) project(ctx context.Context, cache map[string]store.Run, ev event.Event) error {
	id := ev.Head().Run
	lock := r.lockOf(id)
	lock.Lock()
	defer lock.Unlock()
	for {
		before, err := r.current(ctx, cache, id)
		if err != nil {
			return err
		}
		run, change, ok := Apply(before, ev)
		if !ok {
			return nil
		}
		err = r.store.PutRun(ctx, run, change)
		switch {
		case err == nil:
			cache[id] = run
			if run.Phase == event.PhaseFinished {
				r.ended(run)
			}
			return nil
		case errors.Is(err, store.ErrExists):
			return nil
		case errors.Is(err, store.ErrRefused):
			return fmt.Errorf("%w: %w", event.ErrPoison, err)
		case !errors.Is(err, store.ErrConflict):
			return err
		}
		delete(cache, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// current returns the run, or nil if there is none. A cached run may be out of date;
// then PutRun returns ErrConflict.
func (r *Projector) current(ctx context.Context, cache map[string]store.Run, id string) (*store.Run, error) {
	if run, ok := cache[id]; ok {
		return &run, nil
	}
	run, err := r.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	return &run, nil
}
