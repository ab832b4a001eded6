package deliver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	page        = 10_000 // samples that are read at once
	workers     = 4      // runs that are delivered at once: a slow destination holds up few
	firstPause  = time.Second
	maxDelivery = 10 * time.Minute // for one run and one destination
)

// worker delivers runs.
type worker struct {
	Deps

	queue *queue.Queue[string] // of runs

	mu      sync.Mutex
	tracked map[string]bool // runs in the queue, with those in a pause
	failing map[string]bool // destinations whose last delivery failed
}

// Owe stores that the destinations in a run's descriptor lack its rows. It may be called again for the same run.
func (w *worker) Owe(ctx context.Context, r store.Run) error {
	all := destinationsOf(r)
	if len(all) == 0 {
		return nil
	}
	owed := store.Owed{Run: r.ID, Since: w.Now().UTC()}
	for _, d := range all {
		owed.Destinations = append(owed.Destinations, store.OwedDestination{Name: d.Name})
	}
	err := store.Create(ctx, w.Store, store.KindOwed, r.ID, owed)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note that run %s is to be delivered: %w", r.ID, err)
	}
	w.add(r.ID)
	return nil
}

// destinationsOf returns the destinations in a run's descriptor, which the gateway has accepted.
func destinationsOf(r store.Run) []descriptors.Destination {
	d, _ := descriptors.Parser{Accepted: true}.Parse(r.File, []byte(r.Descriptor))
	if d == nil || d.Output == nil {
		return nil
	}
	return d.Output.Destinations
}

// add queues a run, unless it is in the queue.
func (w *worker) add(run string) {
	w.mu.Lock()
	added := !w.tracked[run]
	w.tracked[run] = true
	w.mu.Unlock()
	if added {
		w.queue.Add(run)
	}
}

func (w *worker) forget(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tracked, run)
}

// work delivers runs until ctx is done.
func (w *worker) work(ctx context.Context) error {
	w.mu.Lock()
	clear(w.tracked) // a queue that has ended has lost its runs
	w.mu.Unlock()
	list := control.NewLoop("deliver", w.Poll, w.Log, w.list, control.LoopSettings{
		Backoff: control.Backoff{First: firstPause, Max: firstPause},
		Failing: "runs cannot be delivered now", Working: "runs are delivered again",
	})
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _ = list.Run(ctx) })
	return w.queue.Run(ctx, workers, w.process)
}

// list adds the runs that other processes have stored.
func (w *worker) list(ctx context.Context) (time.Duration, error) {
	for d, err := range store.AllDocs(ctx, w.Store, store.KindOwed, "") {
		if err != nil {
			return 0, fmt.Errorf("list runs to be delivered: %w", err)
		}
		w.add(d.Key)
	}
	return 0, nil
}

// process tries all destinations of a run that lack its rows.
func (w *worker) process(ctx context.Context, run string) (queue.Result, error) {
	owed, _, found, err := store.Find[store.Owed](ctx, w.Store, store.KindOwed, run)
	if err != nil {
		return queue.Result{}, fmt.Errorf("deliver run %s: %w", run, err)
	}
	if !found { // another process has delivered it
		w.forget(run)
		return queue.Result{}, nil
	}
	r, err := w.Store.Run(ctx, run)
	if err != nil {
		return queue.Result{}, fmt.Errorf("deliver run %s: %w", run, err)
	}
	left := owed.Destinations
	for _, d := range owed.Destinations {
		failure := w.deliver(ctx, r, d.Name)
		if ctx.Err() != nil {
			return queue.Result{}, ctx.Err()
		}
		left = withError(left, d.Name, failure)
		if failure != d.Error || failure == "" {
			if err := w.record(ctx, run, d.Name, failure); err != nil {
				return queue.Result{}, fmt.Errorf("deliver run %s: %w", run, err)
			}
		}
	}
	if len(left) == 0 {
		w.forget(run)
		return queue.Result{}, nil
	}
	return queue.Result{Requeue: true}, nil
}

// record stores the result of a try, and removes the document once no destination lacks the run.
func (w *worker) record(ctx context.Context, run, name, failure string) error {
	for {
		owed, version, found, err := store.Find[store.Owed](ctx, w.Store, store.KindOwed, run)
		if err != nil || !found {
			return err
		}
		owed.Destinations = withError(owed.Destinations, name, failure)
		if len(owed.Destinations) == 0 {
			err = w.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindOwed, Key: run, Version: version})
		} else {
			_, err = store.Replace(ctx, w.Store, store.KindOwed, run, version, owed)
		}
		if !errors.Is(err, store.ErrConflict) || ctx.Err() != nil {
			return err
		}
	}
}

// deliver brings a run to a destination. It returns the reason why it could not, or "".
func (w *worker) deliver(ctx context.Context, r store.Run, name string) string {
	err := w.try(ctx, r, name)
	if ctx.Err() != nil {
		return ""
	}
	w.note(name, err)
	if err != nil {
		return err.Error()
	}
	return ""
}

func (w *worker) try(ctx context.Context, r store.Run, name string) error {
	to := w.Destinations[name]
	if to == nil {
		return errors.New("the settings of the platform have no such destination now")
	}
	if in := w.Namespaces[name]; len(in) > 0 && !slices.Contains(in, r.Namespace) {
		return fmt.Errorf("the settings of the platform do not let the namespace %q use it now", r.Namespace)
	}
	for _, d := range destinationsOf(r) {
		if d.Name == name {
			rows, err := w.delivery(ctx, r, d)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, maxDelivery)
			defer cancel()
			return to.Deliver(ctx, rows)
		}
	}
	return errors.New("the descriptor has no such destination")
}

// note logs the first failed delivery in a row to a destination, and the success after it.
func (w *worker) note(name string, err error) {
	w.mu.Lock()
	was := w.failing[name]
	w.failing[name] = err != nil
	w.mu.Unlock()
	switch {
	case err != nil && !was:
		w.Log.Warn("destination takes no rows, retrying", zap.String("destination", name), zap.Error(err))
	case err == nil && was:
		w.Log.Info("destination takes rows again", zap.String("destination", name))
	}
}

// delivery returns the rows of a run for a destination.
func (w *worker) delivery(ctx context.Context, r store.Run, d descriptors.Destination) (Delivery, error) {
	t := tableOf(d)
	out := Delivery{Run: r.ID, Columns: t.columns}
	if d.Rows == descriptors.SampleRows {
		out.Rows = w.samples(ctx, r, t)
		return out, nil
	}
	all, _, _, err := store.Find[store.Summaries](ctx, w.Store, store.KindSummary, r.ID)
	if err != nil {
		return out, errors.New("the summaries of the run cannot be read now")
	}
	rows := t.summaryRows(r, all)
	out.Rows = func(yield func([]any, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
	return out, nil
}

// samples yields a row for each sample of a run's last attempt.
func (w *worker) samples(ctx context.Context, r store.Run, t table) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for cursor := ""; ; {
			samples, next, err := w.Store.Samples(ctx, store.SampleQuery{Run: r.ID}, cursor, page)
			if err != nil {
				yield(nil, errors.New("the samples of the run cannot be read now"))
				return
			}
			for _, row := range t.sampleRows(r, samples) {
				if !yield(row, nil) {
					return
				}
			}
			if cursor = next; len(samples) < page {
				return
			}
		}
	}
}
