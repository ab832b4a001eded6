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
	maxEvents      = 64                    // that are handled at once
	page           = 10_000                // samples that are read at once
	firstPause     = 20 * time.Millisecond // before a run that was not complete is looked at again; each time twice as long, up to Settings.Look
	slowPollFactor = 16                    // times Settings.Look is the longest pause once what is there of a run is summarised
	failPause      = time.Second           // before the store is asked again after it failed
	listPage       = 1000                  // runs that are listed at once
)

// worker summarises runs.
type worker struct {
	settings Settings
	store    Store
	now      func() time.Time
	log      *zap.Logger
	wake     chan struct{}

	listedAt time.Time // when the store was asked last for what is noted

	mu     sync.Mutex
	pauses map[string]pause // by run; those that this process has noted are here at once, while a list of documents may be late
}

// pause is when a run is looked at next. Pauses grow, so that many runs whose data
// are late cost no more than few.
type pause struct {
	next   time.Time
	length time.Duration
	failed bool // the last look
}

// pendingRun is what is remembered of a run that is to be summarised.
type pendingRun struct {
	Run        string       `json:"run"`
	Attempt    int          `json:"attempt"`
	Collectors []string     `json:"collectors,omitempty"`
	Since      time.Time    `json:"since"`
	Stored     storedCounts `json:"there"`            // of its data, when more were seen last
	ChangedAt  time.Time    `json:"changed"`          // when that was
	Summed     *int64       `json:"summed,omitempty"` // how many samples are summarised already
}

// finished remembers runs that are over, unless they wrote no samples.
func (w *worker) finished(ctx context.Context, evs []event.Finished) ([]event.Event, error) {
	for _, ev := range evs {
		if err := w.enqueue(ctx, ev); err != nil {
			return nil, fmt.Errorf("note that run %s is to be summarised: %w", ev.Run, err)
		}
	}
	return nil, nil
}

func (w *worker) enqueue(ctx context.Context, ev event.Finished) error {
	r, err := w.store.Run(ctx, ev.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // it is recorded a moment later
		return err
	}
	r.ID = ev.Run
	r = withEnd(r, ev)
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
	now := w.now().UTC()
	err = store.Create(ctx, w.store, store.KindPendingSummary, ev.Run, pendingRun{
		Run: ev.Run, Attempt: r.Attempt, Collectors: r.Collectors, Since: now, Stored: countStored(streams), ChangedAt: now,
	})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	w.mu.Lock()
	w.pauses[ev.Run] = pause{length: firstPause}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// work summarises what is noted, until ctx is done. What it cannot do now it says
// once, and tries again.
func (w *worker) work(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		next, err := w.processDue(ctx)
		failed := err != nil || w.failed()
		switch {
		case err != nil && !failing && ctx.Err() == nil:
			w.log.Warn("runs cannot be summarised now", zap.Error(err))
		case !failed && failing:
			w.log.Info("runs are summarised again")
		}
		failing = failed
		if err != nil {
			next = time.Now().Add(failPause)
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-time.After(time.Until(next)):
		}
	}
	return nil
}

// processDue looks at every run that is noted and whose pause is over, and returns
// when the next one's will be.
func (w *worker) processDue(ctx context.Context) (next time.Time, err error) {
	if err := w.listPending(ctx); err != nil {
		return next, fmt.Errorf("list runs to be summarised: %w", err)
	}
	next = w.listedAt.Add(w.settings.PollInterval)
	w.mu.Lock()
	pauses := maps.Clone(w.pauses)
	w.mu.Unlock()
	var errs []error
	for run, p := range pauses {
		if !p.next.After(time.Now()) {
			finished, err := w.processRun(ctx, run, &p)
			if err != nil {
				errs = append(errs, fmt.Errorf("summarise run %s: %w", run, err))
			}
			w.reschedule(run, p, finished)
			if finished {
				continue
			}
		}
		next = earlier(next, p.next)
	}
	return next, errors.Join(errs...)
}

// processRun looks at a run, and says when to do so next, unless there is nothing more
// to be done for it.
func (w *worker) processRun(ctx context.Context, run string, p *pause) (finished bool, err error) {
	d, done, err := w.summariseRun(ctx, run)
	if p.failed = err != nil; p.failed { // its data are not late for that
		p.next = time.Now().Add(failPause)
		return false, err
	}
	most := w.settings.PollInterval
	if d.Summed != nil {
		most *= slowPollFactor
	}
	p.next, p.length = time.Now().Add(p.length), min(2*p.length, most)
	return done, nil
}

// reschedule remembers when a run is looked at next.
func (w *worker) reschedule(run string, p pause, finished bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if finished {
		delete(w.pauses, run)
		return
	}
	w.pauses[run] = p
}

// listPending adds, from time to time, what other processes have noted.
func (w *worker) listPending(ctx context.Context) error {
	if time.Since(w.listedAt) < w.settings.PollInterval {
		return nil
	}
	after, all := "", []string(nil)
	for more := true; more; {
		docs, err := w.store.Docs(ctx, store.KindPendingSummary, after, listPage)
		if err != nil {
			return err
		}
		for _, d := range docs {
			after, all = d.Key, append(all, d.Key)
		}
		more = len(docs) == listPage
	}
	w.listedAt = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range all {
		if _, tracked := w.pauses[run]; !tracked {
			w.pauses[run] = pause{length: firstPause}
		}
	}
	return nil
}

// failed reports whether a run is noted at which the last look failed.
func (w *worker) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pauses {
		if p.failed {
			return true
		}
	}
	return false
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// summariseRun does what is to be done for a run. It returns what is noted of it, and
// whether nothing more is to be done.
func (w *worker) summariseRun(ctx context.Context, run string) (d pendingRun, done bool, err error) {
	d, version, err := store.Get[pendingRun](ctx, w.store, store.KindPendingSummary, run)
	if errors.Is(err, store.ErrNotFound) {
		return d, true, nil // another process was faster
	}
	if err != nil {
		return d, false, err
	}
	r, err := w.store.Run(ctx, run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return d, false, err
	}
	r = withEnd(r, event.Finished{Header: event.Header{Attempt: d.Attempt}, Collectors: d.Collectors})
	r.ID = run
	streams, err := w.store.Streams(ctx, run)
	if err != nil {
		return d, false, err
	}
	l := &runCheck{worker: w, run: r, due: d, version: version, stored: countStored(streams)}
	err = l.do(ctx, store.Complete(r, streams).Complete)
	if errors.Is(err, store.ErrConflict) { // another process does the same: it is seen next time
		return l.due, false, nil
	}
	return l.due, l.done, err
}

// runCheck is a run that is being looked at.
type runCheck struct {
	*worker

	run     store.Run
	due     pendingRun
	version int64 // of the note
	stored  storedCounts
	done    bool
}

// do does what is to be done. Who counts and who reads may ask copies of the
// store of which one lags: what is not all read is not complete.
func (l *runCheck) do(ctx context.Context, complete bool) error {
	act := nextAction(l.due, l.stored, complete, l.now(), l.settings)
	var all *accumulator
	if act == actionSummarise {
		var err error
		if all, err = l.read(ctx); err != nil {
			return err
		}
		if all.read >= l.stored.Samples {
			return l.finish(ctx, all)
		}
		act = nextAction(l.due, l.stored, false, l.now(), l.settings)
	}
	switch act {
	case actionRecord:
		l.due.Stored, l.due.ChangedAt = l.stored, l.now().UTC()
		return l.write(ctx)
	case actionSummarisePart:
		return l.summarisePart(ctx, all)
	case actionForget:
		return l.forget(ctx)
	case actionWait, actionSummarise:
	}
	return nil
}

// finish stores what all samples come to.
func (l *runCheck) finish(ctx context.Context, all *accumulator) error {
	if err := l.put(ctx, all.summaries(l.run.ID, true)); err != nil {
		return err
	}
	return l.forget(ctx)
}

// summarisePart stores what those samples come to that are there, and waits for others.
func (l *runCheck) summarisePart(ctx context.Context, all *accumulator) (err error) {
	if all == nil {
		if all, err = l.read(ctx); err != nil {
			return err
		}
	}
	if l.due.Summed != nil && *l.due.Summed == all.read {
		if l.now().Sub(l.due.Since) >= l.settings.AllowedLateness {
			return l.forget(ctx)
		}
		return nil
	}
	if err := l.put(ctx, all.summaries(l.run.ID, false)); err != nil {
		return err
	}
	l.due.Summed = &all.read
	return l.write(ctx)
}

// write writes the note anew.
func (l *runCheck) write(ctx context.Context) (err error) {
	l.version, err = store.Replace(ctx, l.store, store.KindPendingSummary, l.run.ID, l.version, l.due)
	return err
}

// forget removes the note.
func (l *runCheck) forget(ctx context.Context) error {
	l.done = true
	err := l.store.DeleteDoc(ctx, store.Doc{Kind: store.KindPendingSummary, Key: l.run.ID, Version: l.version})
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// read reads the samples of a run.
func (l *runCheck) read(ctx context.Context) (*accumulator, error) {
	t := newAccumulator(l.run.Attempt)
	for cursor := ""; ; {
		samples, next, err := l.store.Samples(ctx, store.SampleQuery{Run: l.run.ID}, cursor, page)
		if err != nil {
			return nil, err
		}
		t.add(samples)
		if cursor = next; len(samples) < page {
			return t, nil
		}
	}
}

// put stores summaries, in place of those that are there unless these tell more.
func (l *runCheck) put(ctx context.Context, all store.Summaries) error {
	err := store.Create(ctx, l.store, store.KindSummary, all.Run, all)
	if errors.Is(err, store.ErrExists) {
		var before store.Summaries
		var version int64
		before, version, err = store.Get[store.Summaries](ctx, l.store, store.KindSummary, all.Run)
		if err != nil || !better(all, before) {
			return err
		}
		_, err = store.Replace(ctx, l.store, store.KindSummary, all.Run, version, all)
	}
	if err != nil {
		return err
	}
	l.log.Info("summarised", zap.String("run", all.Run), zap.Int64("samples", all.Samples), zap.Int("series", len(all.Summaries)), zap.Bool("complete", all.Complete))
	return nil
}
