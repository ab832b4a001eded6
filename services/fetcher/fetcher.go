// Package fetcher ensures that all data of a run are in the object store before the run
// starts. Each data set is copied once, however many runs need it.
//
// The file decide.go has the rules and does no I/O; fetcher.go handles events and gathers the
// input of decide, and orders.go carries out orders. Package queue tracks which order
// waits for which download, and package download downloads a source into the object
// store. Package dataset owns the documents, the sources and the objects.
package fetcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/fetcher/queue"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// fetcher handles submitted runs, and creates their orders.
type fetcher struct {
	settings   dataset.Settings
	bus        Bus
	store      dataset.Store
	objects    dataset.Objects
	log        *zap.Logger
	cache      *dataset.Cache
	downloader downloader
	supervisor *download.Supervisor
	hasJobs    bool // downloader is the supervisor
	queue      *queue.Queue
	loop       *control.Loop // carries out the orders
}

func newFetcher(s dataset.Settings, d Deps, cache *dataset.Cache) *fetcher {
	f := &fetcher{
		settings: s, bus: d.Bus, store: d.Dataset.Store, objects: d.Dataset.Objects, log: d.Dataset.Log, cache: cache,
		supervisor: download.NewSupervisor(s, d.Dataset, cache, d.Jobs, d.JobTemplate), hasJobs: d.Jobs != nil,
	}
	f.queue = queue.New(func() { f.loop.Wake() })
	f.downloader = download.New(s, d.Dataset, cache)
	if f.hasJobs {
		f.downloader = f.supervisor
	}
	return f
}

// handleSubmitted handles a submitted run: it stores an order for the run's data, or
// returns the order's outcome. It does not use the store for a run without data.
func (f *fetcher) handleSubmitted(ctx context.Context, run event.Submitted) ([]event.Event, error) {
	d, faults := parser.Parser{Accepted: true}.Parse(run.File, []byte(run.Descriptor))
	if d == nil {
		return f.deferUnreadable(ctx, run, faults)
	}
	sources := append(sourcesOf(d), uploadedCode(run.Bundle)...)
	if len(sources) == 0 {
		return []event.Event{fetched(run, nil)}, nil
	}
	before, err := f.cache.Ending(ctx, run.Run)
	if err != nil {
		return nil, err
	}
	if before != nil {
		return eventsOf(*before, run), nil
	}
	if ended, err := f.cache.RunEnded(ctx, run.Run); ended || err != nil {
		return nil, err
	}
	for _, s := range sources {
		if s.Uploaded {
			continue
		}
		if refusal, ok := errors.AsType[*source.Error](f.cache.Sources.Check(s.URL)); ok {
			return f.refuse(ctx, run, failed(run, dataset.Failure{Reason: refusal.Reason, Class: refusal.Class, Message: refusal.Message}))
		}
	}
	return f.openOrder(ctx, dataset.Order{Submitted: run, Sources: sources, RequestedAt: time.Now().UTC()})
}

// refuse ends a run that has not been fetched yet. It does nothing for a run that was
// fetched before the rules or the settings changed, when its event is repeated.
func (f *fetcher) refuse(ctx context.Context, run event.Submitted, end event.Finished) ([]event.Event, error) {
	if past, err := f.pastFetching(ctx, run.Run); past || err != nil {
		return nil, err
	}
	return []event.Event{end}, nil
}

// pastFetching reports whether a run is in a phase after fetching.
func (f *fetcher) pastFetching(ctx context.Context, run string) (bool, error) {
	r, err := f.store.Run(ctx, run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("look at run %s: %w", run, err)
	}
	return pastFetching(r.Phase), nil
}

// openOrder stores an order, unless the order can end at once. The process that carries
// out the order publishes its events, so that they are in order.
func (f *fetcher) openOrder(ctx context.Context, o dataset.Order) ([]event.Event, error) {
	plan, err := f.reconcile(ctx, o)
	if err != nil || plan.RunEnded {
		return nil, err
	}
	if plan.Ending != nil {
		return eventsOf(*plan.Ending, o.Submitted), nil
	}
	run := o.Submitted.Run
	err = store.Create(ctx, f.store, store.KindOrder, dataset.OpenOrderPrefix+run, o)
	if errors.Is(err, store.ErrExists) {
		f.queue.RequeueNow(run)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("remember order of run %s: %w", run, err)
	}
	f.log.Info("order", zap.String("run", run), zap.Int("sources", len(o.Sources)), zap.Int("missing", len(plan.Missing)))
	f.queue.Add(o)
	return nil, nil
}

// handleCommand requeues the order of a canceled run, whose cancel mark was written
// before the command. If another process carries out the order, that process finds the
// mark itself.
func (f *fetcher) handleCommand(_ context.Context, c event.Command) ([]event.Event, error) {
	f.queue.RequeueNow(c.Run)
	return nil, nil
}

// reconcile gathers the input of decide for an order, and decides. It stores an outcome
// before it returns it, so that every caller gets the same outcome.
func (f *fetcher) reconcile(ctx context.Context, o dataset.Order) (decision, error) {
	run := o.Submitted.Run
	before, err := f.cache.Ending(ctx, run)
	if err != nil {
		return decision{}, err
	}
	if before != nil {
		return decision{Ending: before, AlreadyStored: true}, nil
	}
	state, states, err := f.gather(ctx, o)
	if err != nil {
		return decision{}, fmt.Errorf("look at the order of run %s: %w", run, err)
	}
	plan := decide(o, state, states)
	if plan.Ending == nil {
		return plan, nil
	}
	if plan.Ending.Finished == nil {
		present, err := f.cache.Claim(ctx, states)
		if err != nil {
			return decision{}, fmt.Errorf("claim the data of run %s: %w", run, err)
		}
		if !present { // an object was evicted in the meantime
			return f.reconcile(ctx, o)
		}
	}
	err = store.Create(ctx, f.store, store.KindOrder, dataset.DoneOrderPrefix+run, plan.Ending)
	if errors.Is(err, store.ErrExists) {
		return f.reconcile(ctx, o)
	}
	if err != nil {
		return decision{}, fmt.Errorf("remember the end of the order of run %s: %w", run, err)
	}
	return plan, nil
}

// gather returns whether a run still needs its data, and the states of its sources.
func (f *fetcher) gather(ctx context.Context, o dataset.Order) (state runState, states map[string]dataset.SourceState, err error) {
	if state, err = f.runState(ctx, o.Submitted.Run); state != runActive || err != nil {
		return state, nil, err
	}
	states = make(map[string]dataset.SourceState)
	for _, s := range o.Sources {
		if _, ok := states[s.Key()]; ok {
			continue
		}
		if states[s.Key()], err = f.cache.State(ctx, s, o.RequestedAt); err != nil {
			return runActive, nil, err
		}
	}
	return runActive, states, nil
}

// runState returns whether a run still needs its data.
func (f *fetcher) runState(ctx context.Context, run string) (runState, error) {
	if ended, err := f.cache.RunEnded(ctx, run); ended || err != nil {
		return runEnded, err
	}
	canceled, err := store.Canceled(ctx, f.store, run)
	if canceled || err != nil {
		return runCanceling, err
	}
	return runActive, nil
}

// runSweep sweeps the cache at intervals until ctx is done. Only one process at a time
// sweeps.
func (f *fetcher) runSweep(ctx context.Context) error {
	for control.Sleep(ctx, f.settings.SweepInterval) {
		err := errors.Join(f.supervisor.DeleteOrphans(ctx), f.cache.Sweep(ctx))
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrHeld) {
			f.log.Warn("sweep is not complete", zap.Error(err))
		}
	}
	return nil
}
