package summarise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise/cost"
)

const (
	maxEvents      = 64                    // that are handled at once
	page           = 10_000                // samples that are read at once
	firstPause     = 20 * time.Millisecond // before the next check of an incomplete run; doubles each time, up to Settings.PollInterval
	slowPollFactor = 16                    // times Settings.PollInterval is the longest pause once the stored part of a run is summarised
	failPause      = time.Second           // before the next call of the store after a failed one
	publishTimeout = 5 * time.Second       // of one publication, so that brokers that are away delay no other run's summary for long
)

// worker summarises runs.
type worker struct {
	pointStorer

	settings   Settings
	prices     price.Table
	bus        Bus
	summarised func(ctx context.Context, r store.Run) error // nil calls nothing
	now        func() time.Time
	queue      *queue.Queue[string] // of runs; the pauses grow, so that many runs with late data cost no more than few

	mu      sync.Mutex
	tracked map[string]bool // runs in the queue, with those in a pause
}

// pendingRun is the document of a run that is to be summarised.
type pendingRun struct {
	Run        string       `json:"run"`
	Attempt    int          `json:"attempt"`
	Collectors []string     `json:"collectors,omitempty"`
	Since      time.Time    `json:"since"`
	Stored     storedCounts `json:"there"`            // of its data, when they were counted last
	ChangedAt  time.Time    `json:"changed"`          // when that was
	Summed     *int64       `json:"summed,omitempty"` // how many samples are summarised already
}

// finished stores runs that are over as ones to be summarised.
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
	if err != nil && !errors.Is(err, store.ErrNotFound) { // the projection is a moment behind
		return err
	}
	r.ID = ev.Run
	r = withEnd(r, ev)
	streams, err := w.store.Streams(ctx, ev.Run)
	if err != nil {
		return err
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
	w.track(ev.Run)
	w.queue.Add(ev.Run)
	return nil
}

// track records that a run is in the queue, and reports whether it was not before.
func (w *worker) track(run string) (added bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	added = !w.tracked[run]
	w.tracked[run] = true
	return added
}

func (w *worker) forget(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tracked, run)
}

// work summarises runs until ctx is done.
func (w *worker) work(ctx context.Context) error {
	w.mu.Lock()
	clear(w.tracked) // a queue that has ended has lost its runs
	w.mu.Unlock()
	list := control.NewLoop("summarise", w.settings.PollInterval, w.log, w.listPending, control.LoopSettings{
		Backoff: control.Backoff{First: failPause, Max: failPause},
		Failing: "runs cannot be summarised now", Working: "runs are summarised again",
	})
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _ = list.Run(ctx) })
	return w.queue.Run(ctx, 1, w.processRun)
}

// listPending adds the runs that other processes have stored.
func (w *worker) listPending(ctx context.Context) (time.Duration, error) {
	for d, err := range store.AllDocs(ctx, w.store, store.KindPendingSummary, "") {
		if err != nil {
			return 0, fmt.Errorf("list runs to be summarised: %w", err)
		}
		if w.track(d.Key) {
			w.queue.Add(d.Key)
		}
	}
	return 0, nil
}

// processRun does the next step for a run.
func (w *worker) processRun(ctx context.Context, run string) (queue.Result, error) {
	d, done, err := w.summariseRun(ctx, run)
	switch {
	case err != nil: // the pause does not grow: it grows for late data only
		return queue.Result{RequeueAfter: failPause}, fmt.Errorf("summarise run %s: %w", run, err)
	case done:
		w.forget(run)
		return queue.Result{}, nil
	case d.Summed != nil:
		return queue.Result{Requeue: true}, nil
	}
	return queue.Result{Requeue: true, RequeueAfter: w.settings.PollInterval}, nil
}

// summariseRun does the next step for a run. It returns the document of the run, and whether the run needs no more work.
func (w *worker) summariseRun(ctx context.Context, run string) (d pendingRun, done bool, err error) {
	d, version, found, err := store.Find[pendingRun](ctx, w.store, store.KindPendingSummary, run)
	if err != nil || !found { // not found: another process was faster
		return d, err == nil, err
	}
	r, err := w.store.Run(ctx, run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return d, false, err
	}
	projected := ended(r)
	if !projected && w.now().Sub(d.Since) < w.settings.AllowedLateness {
		return d, false, nil // points, and the next step, take the run as it was submitted and as it has ended
	}
	r = withEnd(r, event.Finished{Header: event.Header{Attempt: d.Attempt}, Collectors: d.Collectors})
	r.ID = run
	streams, err := w.store.Streams(ctx, run)
	if err != nil {
		return d, false, err
	}
	l := &runCheck{worker: w, run: r, due: d, version: version, stored: countStored(streams), projected: projected}
	err = l.do(ctx, store.Complete(r, streams).Complete)
	if errors.Is(err, store.ErrConflict) { // another process does the same: the next check finds its result
		return l.due, false, nil
	}
	return l.due, l.done, err
}

// runCheck is one check of a run.
type runCheck struct {
	*worker

	run       store.Run
	projected bool // the record of the run has its end
	due       pendingRun
	version   int64 // of the document
	stored    storedCounts
	done      bool
}

// do does the next step. The counts and the samples may come from different replicas of the store, one of which lags: a run is not complete
// if fewer samples were read than counted.
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
		return l.remove(ctx)
	case actionWait, actionSummarise:
	}
	return nil
}

// finish stores the summaries of all samples, unless there are none, and the points.
func (l *runCheck) finish(ctx context.Context, all *accumulator) error {
	next, err := l.priced(ctx, all, true)
	if err != nil {
		return err
	}
	if of := next(nil); all.read == 0 && len(of.Summaries) == 0 && len(of.Unknown) == 0 {
		if err := l.putPoints(ctx); err != nil {
			return err
		}
		return l.forgetRun(ctx)
	}
	if err := l.put(ctx, next); err != nil {
		return err
	}
	return l.remove(ctx)
}

// priced returns a function that makes summaries of samples, with the cost and the energy of the run; used are the prices of earlier
// summaries.
func (l *runCheck) priced(ctx context.Context, all *accumulator, complete bool) (func(used map[string]string) store.Summaries, error) {
	nodes, err := l.nodes(ctx)
	if err != nil {
		return nil, err
	}
	base := all.summaries(l.run.ID, complete)
	return func(used map[string]string) store.Summaries {
		of := cost.Of(cost.Input{Run: l.run, Prices: l.prices, Used: used, Meter: &all.meter, Nodes: nodes, Counts: all.count})
		if all.read == 0 && !of.Wanted && len(of.Values) == 0 {
			of.Unknown = nil // nobody asked for it, and a run without samples has no summary
		}
		return of.Into(base)
	}, nil
}

// nodes returns the nodes of the run's pods, by UID.
func (l *runCheck) nodes(ctx context.Context) (map[string]string, error) {
	found, _, _, err := store.Find[store.RunEnvironment](ctx, l.store, store.KindEnvironment, l.run.ID)
	if err != nil {
		return nil, fmt.Errorf("read the environment of run %s: %w", l.run.ID, err)
	}
	nodes := make(map[string]string, len(found.Pods))
	for _, p := range found.Pods {
		nodes[p.Origin.Pod] = p.Machine.Node
	}
	return nodes, nil
}

// summarisePart stores the summaries of the stored samples, and waits for others.
func (l *runCheck) summarisePart(ctx context.Context, all *accumulator) (err error) {
	if all == nil {
		if all, err = l.read(ctx); err != nil {
			return err
		}
	}
	if l.due.Summed != nil && *l.due.Summed == all.read {
		if l.now().Sub(l.due.Since) >= l.settings.AllowedLateness {
			return l.remove(ctx)
		}
		return nil
	}
	next, err := l.priced(ctx, all, false)
	if err != nil {
		return err
	}
	if err := l.put(ctx, next); err != nil {
		return err
	}
	l.due.Summed = &all.read
	return l.write(ctx)
}

// write replaces the document.
func (l *runCheck) write(ctx context.Context) (err error) {
	l.version, err = store.Replace(ctx, l.store, store.KindPendingSummary, l.run.ID, l.version, l.due)
	return err
}

// remove removes the document, once the run is passed on.
func (l *runCheck) remove(ctx context.Context) error {
	if l.summarised != nil {
		if err := l.summarised(ctx, l.run); err != nil {
			return err
		}
	}
	return l.forgetRun(ctx)
}

// forgetRun removes the document.
func (l *runCheck) forgetRun(ctx context.Context) error {
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

// put stores summaries, in place of earlier ones that are no better, and then the points that follow from them.
func (l *runCheck) put(ctx context.Context, next func(used map[string]string) store.Summaries) error {
	write := false
	all, err := store.Update(ctx, l.store, store.KindSummary, l.run.ID,
		func(before store.Summaries, found bool) (store.Summaries, bool, error) {
			all := next(before.Prices)
			write = !found || better(all, before) && !equal(all, before)
			return all, write, nil
		})
	if err != nil {
		return err
	}
	if write {
		l.log.Info("summarised", zap.String("run", all.Run), zap.Int64("samples", all.Samples), zap.Int("series", len(all.Summaries)),
			zap.Bool("complete", all.Complete))
	}
	return l.putPoints(ctx)
}

// putPoints stores the points of the run, and then publishes that they are stored. A run whose end was never recorded has none.
func (l *runCheck) putPoints(ctx context.Context) error {
	if !l.projected {
		return nil
	}
	ev, err := l.storePoints(ctx, l.run, false)
	if err != nil || ev.ID == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return l.bus.Publish(ctx, ev)
}
