package executor

import (
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan"
)

// executor handles events: it puts runs into the queue, takes them out again,
// and tells the admitter.
type executor struct {
	settings       Settings
	deps           Deps
	planner        plan.Planner
	docs           documents
	scheduler      *scheduler
	deferredWakeup chan struct{} // holds one when attempts that were put aside are to be looked at
}

func newExecutor(s Settings, d Deps) *executor {
	docs, planner := documents{store: d.Store, settings: s}, s.Planner(d.Images == nil)
	planner.Images = d.Images
	return &executor{settings: s, deps: d, planner: planner, docs: docs, scheduler: newScheduler(s, d, planner, docs), deferredWakeup: make(chan struct{}, 1)}
}

// onFetched hears that a run's data are there.
func (e *executor) onFetched(ctx context.Context, run event.Fetched) ([]event.Event, error) {
	facts, err := e.docs.facts(ctx, AttemptKey{Run: run.Run, Attempt: run.Attempt})
	if err != nil {
		return nil, err
	}
	return e.applyDecision(ctx, run, Decide(run, facts, e.planner))
}

// onRetried hears that an attempt failed and another is to follow. The new one
// waits at the head of its priority, while the old one keeps its slot until its
// objects are gone.
func (e *executor) onRetried(ctx context.Context, ev event.Retried) ([]event.Event, error) {
	before := AttemptKey{Run: ev.Run, Attempt: ev.Attempt - 1}
	plan, err := e.docs.plan(ctx, before)
	if err != nil {
		return nil, err
	}
	if plan == nil || plan.NoLaunch {
		return []event.Event{noProgressEvent(ev.Header, fmt.Sprintf("attempt %d cannot follow attempt %d, of which there is no plan", ev.Attempt, before.Attempt))}, nil
	}
	if err := e.releaseSlots(ctx, func(en Allocation) (bool, bool) { return en.AttemptKey == before, true }); err != nil {
		return nil, err
	}
	run := plan.Run
	run.Header = ev.Header
	return e.onFetched(ctx, run)
}

// applyDecision carries out what was decided about an attempt.
func (e *executor) applyDecision(ctx context.Context, run event.Fetched, r Decision) ([]event.Event, error) {
	switch {
	case r.Unreadable != nil:
		u, err := e.docs.deferAttempt(ctx, run, e.deps.Clock())
		return []event.Event{versionSkewStatus(u, r.Unreadable)}, err
	case r.Enqueue != nil:
		return e.enqueue(ctx, *r.Enqueue)
	case r.PreventLaunch != nil:
		return e.preventLaunch(ctx, run, r.PreventLaunch)
	}
	return r.Publish, nil
}

// enqueue puts an attempt into the queue. That is said before the admitter is
// woken, so that no later phase is said earlier. A cancel mark that was set
// meanwhile, by somebody who could not yet find the run in the queue, counts.
func (e *executor) enqueue(ctx context.Context, w QueuedRun) ([]event.Event, error) {
	if err := e.docs.enqueue(ctx, w); err != nil {
		return nil, err
	}
	marked, err := e.docs.hasCancelMark(ctx, w.Run.Run)
	if err != nil {
		return nil, err
	}
	if marked {
		return e.preventLaunch(ctx, w.Run, canceledEvent(w.Run.Header))
	}
	if err := e.deps.Bus.Publish(ctx, queuedStatus(w.Run.Header)); err != nil {
		return nil, err
	}
	e.scheduler.wake()
	return nil, nil
}

// preventLaunch sees to it that an attempt is not launched, and returns what to say of
// it. If somebody was faster it is left to them.
func (e *executor) preventLaunch(ctx context.Context, run event.Fetched, last *event.Finished) ([]event.Event, error) {
	plan, err := e.docs.putPlanIfAbsent(ctx, Plan{NoLaunch: true, FinalEvent: last, Run: run})
	if err != nil {
		return nil, err
	}
	if !plan.NoLaunch {
		e.scheduler.wake()
		return nil, nil
	}
	return plan.finalEvents(), e.docs.dequeue(ctx, e.docs.queueKey(run))
}

// onCommand hears what a user wants. What waits is taken out of the queue;
// what is launched, or about to be, is deleted: that it is gone the watcher
// says.
func (e *executor) onCommand(ctx context.Context, c event.Command) ([]event.Event, error) {
	if c.Kind != event.CommandCancel {
		return nil, nil
	}
	select {
	case e.deferredWakeup <- struct{}{}: // it may be aside
	default:
	}
	run, err := e.docs.run(ctx, c.Run)
	if err != nil || run.Phase == event.PhaseFinished {
		return nil, err
	}
	ledger, _, err := e.docs.slotTable(ctx)
	if err != nil {
		return nil, err
	}
	var events []event.Event
	for attempt := 1; attempt <= max(c.Attempt, run.Attempt)+1; attempt++ {
		evs, err := e.cancelAttempt(ctx, ledger, run, AttemptKey{Run: c.Run, Attempt: attempt})
		if err != nil {
			return nil, err
		}
		events = append(events, evs...)
	}
	return events, nil
}

// cancelAttempt ends one attempt, wherever it is.
func (e *executor) cancelAttempt(ctx context.Context, l SlotTable, run store.Run, h AttemptKey) ([]event.Event, error) {
	plan, err := e.docs.plan(ctx, h)
	if err != nil {
		return nil, err
	}
	if plan != nil && !plan.NoLaunch && l.holds(h) {
		if err := e.deps.Cluster.Delete(ctx, plan.ref()); err != nil {
			return nil, fmt.Errorf("delete the objects of %s: %w", h.docKey(), err)
		}
		e.scheduler.wake()
		return nil, nil
	}
	key := queueKey(e.settings.priority(run.Labels), h)
	if plan != nil {
		return plan.finalEvents(), e.docs.dequeue(ctx, key)
	}
	w, err := e.docs.queuedRun(ctx, key)
	if w == nil || err != nil {
		return nil, err
	}
	return e.preventLaunch(ctx, w.Run, canceledEvent(w.Run.Header))
}

// onFinished hears that runs are over: their objects are deleted, and nothing of
// them is launched any more.
func (e *executor) onFinished(ctx context.Context, evs []event.Finished) ([]event.Event, error) {
	over := make(map[string]bool, len(evs))
	for _, ev := range evs {
		over[ev.Run] = true
	}
	if err := e.releaseSlots(ctx, func(en Allocation) (bool, bool) { return over[en.Run], !en.Launched }); err != nil {
		return nil, err
	}
	for _, ev := range evs {
		if err := e.discardFinished(ctx, ev.Header); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// discardFinished takes a run that is over out of the queue, should it be there, and
// sees to it that the attempt that ended is not launched later.
func (e *executor) discardFinished(ctx context.Context, h event.Header) error {
	attempt := AttemptKey{Run: h.Run, Attempt: h.Attempt}
	plan, err := e.docs.plan(ctx, attempt)
	if err != nil || plan != nil {
		return err
	}
	if _, err := e.docs.putPlanIfAbsent(ctx, Plan{NoLaunch: true, Run: event.Fetched{Header: h}}); err != nil {
		return err
	}
	run, err := e.docs.run(ctx, h.Run)
	if err != nil {
		return err
	}
	return e.docs.dequeue(ctx, queueKey(e.settings.priority(run.Labels), attempt))
}

// releaseSlots has the slots of those who are over freed, once their objects are
// gone. Of some that they are over is written down first: where a launch may
// still be under way, so that it is not tried again, and of an attempt that
// another follows, which nothing else tells. Of other runs the store tells.
func (e *executor) releaseSlots(ctx context.Context, over func(Allocation) (over, write bool)) error {
	ledger, version, err := e.docs.slotTable(ctx)
	if err != nil {
		return err
	}
	transitions := make(map[AttemptKey]Transition)
	for _, entry := range ledger.Allocations {
		ended, write := over(entry)
		if !ended {
			continue
		}
		e.scheduler.enqueueRelease(entry.AttemptKey, version)
		if write {
			transitions[entry.AttemptKey] = Terminating
		}
	}
	if len(transitions) > 0 {
		if err := e.docs.applyTransitions(ctx, transitions); err != nil {
			return err
		}
	}
	e.scheduler.wake()
	return nil
}
