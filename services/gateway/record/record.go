// Package record keeps what is known of each run: it projects the events of all
// topics into runs and their history, and looks after runs that stand still.
//
// Decide and Apply hold every rule; Recorder and Reconciler gather what these
// need and carry out what they say.
package record

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// batch is how many events are handled and committed at once.
const batch = 64

// Store keeps runs.
type Store interface {
	// PutRun and Run are those of store.Runs.
	PutRun(ctx context.Context, r store.Run, c store.Change) error
	Run(ctx context.Context, id string) (store.Run, error)
}

// Recorder records events. It may be used by several goroutines, and by several
// processes on one store: each event is recorded once, whoever hears it.
type Recorder struct {
	store Store
	turns [64]sync.Mutex // each of some runs: topics of one process would mostly meet in conflicts
}

// turn returns the mutex of a run. The last character of an ID is random.
func (r *Recorder) turn(run string) *sync.Mutex {
	return &r.turns[int(run[len(run)-1])%len(r.turns)]
}

// NewRecorder returns a Recorder.
func NewRecorder(s Store) *Recorder { return &Recorder{store: s} }

// Steps returns what hears each topic that says something of a run.
func (r *Recorder) Steps() []service.Step {
	return []service.Step{
		step[event.Submitted](r), step[event.Command](r), step[event.Fetched](r), step[event.Launched](r),
		step[event.Retried](r), step[event.Status](r), step[event.Finished](r),
	}
}

func step[T event.Event](r *Recorder) service.Step {
	return service.Each(batch, func(ctx context.Context, evs []T) ([]event.Event, error) {
		known := make(map[string]store.Run) // as this call last wrote them
		for _, ev := range evs {
			if h := ev.Head(); h.Run == h.Schedule {
				continue // it is about a schedule, not about a run
			}
			if err := r.record(ctx, known, ev); err != nil {
				return nil, fmt.Errorf("record %s of run %s: %w", ev.Topic(), ev.Head().Run, err)
			}
		}
		return nil, nil
	})
}

// record applies one event to its run, again and again while others write it.
func (r *Recorder) record(ctx context.Context, known map[string]store.Run, ev event.Event) error {
	id := ev.Head().Run
	turn := r.turn(id)
	turn.Lock()
	defer turn.Unlock()
	for {
		before, err := r.before(ctx, known, id)
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
			known[id] = run
			return nil
		case errors.Is(err, store.ErrExists):
			return nil
		case errors.Is(err, store.ErrRefused):
			return fmt.Errorf("%w: %w", event.ErrPoison, err)
		case !errors.Is(err, store.ErrConflict):
			return err
		}
		delete(known, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// before returns the run as it is known, nil where it is not. What it remembers
// may be old: then PutRun says so.
func (r *Recorder) before(ctx context.Context, known map[string]store.Run, id string) (*store.Run, error) {
	if run, ok := known[id]; ok {
		return &run, nil
	}
	run, err := r.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // nothing is known
	}
	if err != nil {
		return nil, err
	}
	return &run, nil
}
