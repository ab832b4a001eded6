package summarise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	maxEvents  = 64                    // that are handled at once
	page       = 10_000                // samples that are read at once
	firstPause = 20 * time.Millisecond // before what was not complete is looked at again
	mostPause  = 2 * time.Second       // and at most
	mostRuns   = 1000                  // that are looked at in one go
)

// worker summarises runs.
type worker struct {
	settings Settings
	store    Store
	now      func() time.Time
	log      *zap.Logger
	wake     chan struct{}

	mu   sync.Mutex
	mine map[string]bool // runs that this process has noted: a list of documents may be late
}

// due is what is remembered of a run that is to be summarised.
type due struct {
	Run        string    `json:"run"`
	Attempt    int       `json:"attempt"`
	Collectors []string  `json:"collectors,omitempty"`
	Since      time.Time `json:"since"`
}

// finished remembers runs that are over, unless they wrote no samples.
func (w *worker) finished(ctx context.Context, evs []event.Finished) ([]event.Event, error) {
	for _, ev := range evs {
		if err := w.note(ctx, ev); err != nil {
			return nil, fmt.Errorf("note that run %s is to be summarised: %w", ev.Run, err)
		}
	}
	return nil, nil
}

func (w *worker) note(ctx context.Context, ev event.Finished) error {
	r, err := w.store.Run(ctx, ev.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // it is recorded a moment later
		return err
	}
	r.ID = ev.Run
	r = ended(r, ev)
	streams, err := w.store.Streams(ctx, ev.Run)
	if err != nil {
		return err
	}
	if c := store.Complete(r, streams); c.Complete && c.Samples == 0 {
		return nil
	}
	if _, err := w.store.Doc(ctx, store.KindSummary, ev.Run); !errors.Is(err, store.ErrNotFound) {
		return err // nil: it was summarised before
	}
	err = store.Create(ctx, w.store, store.KindUnsummed, ev.Run, due{Run: ev.Run, Attempt: r.Attempt, Collectors: r.Collectors, Since: w.now().UTC()})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	w.mu.Lock()
	w.mine[ev.Run] = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// work summarises what is noted, until ctx is done.
func (w *worker) work(ctx context.Context) error {
	for pause := firstPause; ctx.Err() == nil; {
		left, err := w.round(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("runs cannot be summarised now", zap.Error(err))
		}
		wait := w.settings.Look
		if left > 0 || err != nil {
			wait, pause = pause, min(2*pause, mostPause)
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
			pause = firstPause
		case <-time.After(wait):
		}
	}
	return nil
}

// round looks at every run that is noted, and returns how many are left.
func (w *worker) round(ctx context.Context) (left int, err error) {
	docs, err := w.store.Docs(ctx, store.KindUnsummed, "", mostRuns)
	if err != nil {
		return 0, fmt.Errorf("list runs to be summarised: %w", err)
	}
	w.mu.Lock()
	runs := maps.Clone(w.mine)
	w.mu.Unlock()
	for _, d := range docs {
		runs[d.Key] = true
	}
	var errs []error
	for run := range runs {
		done, err := w.try(ctx, run)
		if err != nil {
			errs = append(errs, fmt.Errorf("summarise run %s: %w", run, err))
		}
		if !done {
			left++
			continue
		}
		w.mu.Lock()
		delete(w.mine, run)
		w.mu.Unlock()
	}
	return left, errors.Join(errs...)
}

// try summarises a run if all of its samples are there, or if these were waited
// for long enough.
func (w *worker) try(ctx context.Context, run string) (done bool, err error) {
	noted, version, err := store.Get[due](ctx, w.store, store.KindUnsummed, run)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil // another process was faster
	}
	if err != nil {
		return false, err
	}
	r, err := w.store.Run(ctx, run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	r = ended(r, event.Finished{Header: event.Header{Attempt: noted.Attempt}, Collectors: noted.Collectors})
	streams, err := w.store.Streams(ctx, run)
	if err != nil {
		return false, err
	}
	complete := store.Complete(r, streams).Complete
	if !complete && w.now().Sub(noted.Since) < w.settings.Patience {
		return false, nil
	}
	if err := w.summarise(ctx, run, r.Attempt, complete); err != nil {
		return false, err
	}
	err = w.store.DeleteDoc(ctx, store.Doc{Kind: store.KindUnsummed, Key: run, Version: version})
	if errors.Is(err, store.ErrConflict) {
		err = nil
	}
	return true, err
}

// summarise reads the samples of a run and stores what they come to.
func (w *worker) summarise(ctx context.Context, run string, attempt int, complete bool) error {
	t := newTally(attempt)
	for cursor := ""; ; {
		samples, next, err := w.store.Samples(ctx, store.SampleQuery{Run: run}, cursor, page)
		if err != nil {
			return err
		}
		t.add(samples)
		if cursor = next; len(samples) < page {
			break
		}
	}
	all := t.summaries(run, complete)
	err := store.Create(ctx, w.store, store.KindSummary, run, all)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	w.log.Info("summarised", zap.String("run", run), zap.Int64("samples", all.Samples), zap.Int("series", len(all.Summaries)), zap.Bool("complete", complete))
	return nil
}
