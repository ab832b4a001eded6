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
	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	page       = 10_000 // samples that are read at once
	workers    = 2      // runs that are delivered to one destination at once
	firstPause = time.Second
)

// worker delivers runs. Each destination has a queue of its own, so that one that does not answer holds up no other.
type worker struct {
	Deps

	queues map[string]*queue.Queue[target] // by destination; that of "" is for destinations that the settings do not have now

	mu      sync.Mutex
	tracked map[target]bool // what is in the queues, with what is in a pause
	failing map[string]bool // destinations whose last delivery failed
}

// target is a destination that lacks a run.
type target struct{ run, destination string }

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
	w.add(owed)
	return nil
}

// destinationsOf returns the destinations in a run's descriptor, which the gateway has accepted.
func destinationsOf(r store.Run) []descriptors.Destination {
	d, _ := parser.Parser{Accepted: true}.Parse(r.File, []byte(r.Descriptor))
	if d == nil || d.Output == nil {
		return nil
	}
	return d.Output.Destinations
}

// add queues a run for each destination that lacks it, unless it is in that queue.
func (w *worker) add(owed store.Owed) {
	for _, d := range owed.Destinations {
		at := target{owed.Run, d.Name}
		w.mu.Lock()
		added := !w.tracked[at]
		w.tracked[at] = true
		w.mu.Unlock()
		if added {
			w.queueOf(d.Name).Add(at)
		}
	}
}

// queueOf returns the queue of a destination.
func (w *worker) queueOf(destination string) *queue.Queue[target] {
	if q, ok := w.queues[destination]; ok {
		return q
	}
	return w.queues[""]
}

func (w *worker) forget(at target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tracked, at)
}

// work delivers runs until ctx is done.
func (w *worker) work(ctx context.Context) error {
	w.mu.Lock()
	clear(w.tracked) // queues that have ended have lost their runs
	w.mu.Unlock()
	list := control.NewLoop("deliver", w.Poll, w.Log, w.list, control.LoopSettings{
		Backoff: control.Backoff{First: firstPause, Max: firstPause},
		Failing: "runs cannot be delivered now", Working: "runs are delivered again",
	})
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return list.Run(ctx) })
	for _, q := range w.queues {
		all.Go(func() error { return q.Run(ctx, workers, w.process) })
	}
	return all.Wait()
}

// list adds the runs that other processes have stored.
func (w *worker) list(ctx context.Context) (time.Duration, error) {
	for d, err := range store.AllAfter[store.Owed](ctx, w.Store, store.KindOwed, "") {
		if err != nil {
			return 0, fmt.Errorf("list runs to be delivered: %w", err)
		}
		w.add(d.Value)
	}
	return 0, nil
}

// process tries one destination of a run that lacks its rows.
func (w *worker) process(ctx context.Context, at target) (queue.Result, error) {
	owed, _, _, err := store.Find[store.Owed](ctx, w.Store, store.KindOwed, at.run)
	if err != nil {
		return queue.Result{}, fmt.Errorf("deliver run %s: %w", at.run, err)
	}
	i := slices.IndexFunc(owed.Destinations, func(d store.OwedDestination) bool { return d.Name == at.destination })
	if i < 0 { // another process has delivered it
		w.forget(at)
		return queue.Result{}, nil
	}
	failure := ""
	r, err := w.Store.Run(ctx, at.run)
	switch {
	case errors.Is(err, store.ErrNotFound): // it was deleted: nothing is left to deliver
	case err != nil:
		return queue.Result{}, fmt.Errorf("deliver run %s: %w", at.run, err)
	default:
		failure = w.deliver(ctx, r, at.destination)
	}
	if ctx.Err() != nil {
		return queue.Result{}, ctx.Err()
	}
	if failure == "" || failure != owed.Destinations[i].Error {
		if err := w.record(ctx, at.run, at.destination, failure); err != nil {
			return queue.Result{}, fmt.Errorf("deliver run %s: %w", at.run, err)
		}
	}
	if failure == "" {
		w.forget(at)
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
			ctx, onRow, stop := withProgress(ctx, maxSilence)
			defer stop()
			rows, err := w.delivery(ctx, r, d)
			if err != nil {
				return err
			}
			rows.Rows = counted(rows.Rows, onRow)
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
	out := Delivery{Run: r.ID, About: aboutRun(r), Columns: t.columns}
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
