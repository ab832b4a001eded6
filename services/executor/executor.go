package executor

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan"
)

// cancelTimeout is how long the command to cancel a run waits for the cluster.
const cancelTimeout = 5 * time.Second

// executor handles events: it puts runs into the queue, removes them from it, and wakes
// the scheduler.
type executor struct {
	settings  Settings
	deps      Deps
	planner   plan.Planner
	docs      launch.Documents
	launchers launchers
	scheduler *slots.Scheduler
	deferred  *control.Loop // decides about deferred attempts
}

func newExecutor(s Settings, d Deps) *executor {
	docs := launch.Documents{Documents: slots.Documents{Store: d.Store}}
	planner := s.Planner(false).Ask(d.Images)
	launchers := newLaunchers(s, d, planner, docs)
	scheduler := slots.NewScheduler(
		slots.Settings{Quota: s.quota(), Name: s.Name, Lease: s.Lease, Poll: s.Poll, Reconcile: s.Reconcile, Positions: s.Positions},
		slots.Deps{Docs: docs.Documents, Tasks: launchers, Publish: d.Bus.Publish, Clock: d.Clock, Log: d.Log})
	e := &executor{settings: s, deps: d, planner: planner, docs: docs, launchers: launchers, scheduler: scheduler}
	e.deferred = control.NewLoop("executor/unread", s.Reconcile, d.Log, e.retryDeferred, control.LoopSettings{
		Eager: true, Failing: "cannot look at runs that wait for a newer executor, tries again",
	})
	return e
}

// onFetched handles a run whose data are fetched.
func (e *executor) onFetched(ctx context.Context, run event.Fetched) ([]event.Event, error) {
	facts, err := e.docs.Facts(ctx, slots.AttemptKey{Run: run.Run, Attempt: run.Attempt})
	if err != nil {
		return nil, err
	}
	return e.applyDecision(ctx, run, decide(run, facts, e.planner))
}

// onRetried handles a new attempt after a failed one. The new attempt waits at the head
// of its priority. The old one keeps its slot until its objects are gone.
func (e *executor) onRetried(ctx context.Context, ev event.Retried) ([]event.Event, error) {
	before := slots.AttemptKey{Run: ev.Run, Attempt: ev.Attempt - 1}
	plan, err := e.docs.Plan(ctx, before)
	if err != nil {
		return nil, err
	}
	if plan == nil || plan.NoLaunch {
		message := fmt.Sprintf("attempt %d cannot follow attempt %d, of which there is no plan", ev.Attempt, before.Attempt)
		return []event.Event{noProgressEvent(ev.Header, message)}, nil
	}
	if err := e.releaseSlots(ctx, func(en slots.Allocation) (bool, bool) { return en.AttemptKey == before, true }); err != nil {
		return nil, err
	}
	run := plan.Run
	run.Header = ev.Header
	return e.onFetched(ctx, run)
}

// applyDecision carries out the decision about an attempt.
func (e *executor) applyDecision(ctx context.Context, run event.Fetched, r decision) ([]event.Event, error) {
	switch {
	case r.Unreadable != nil:
		u, err := e.docs.Defer(ctx, run, e.deps.Clock())
		return []event.Event{versionSkewStatus(u, r.Unreadable)}, err
	case r.Enqueue != nil:
		return e.enqueue(ctx, *r.Enqueue)
	case r.PreventLaunch != nil:
		return e.preventLaunch(ctx, run, r.PreventLaunch)
	}
	return r.Publish, nil
}

// enqueue puts an attempt into the queue. It publishes the status queued before it
// wakes the scheduler, so that no later phase is published earlier. It also handles a
// cancel mark that was set before the run was in the queue.
func (e *executor) enqueue(ctx context.Context, w slots.QueuedRun) ([]event.Event, error) {
	if err := e.docs.Enqueue(ctx, e.queueKey(w.Run), w); err != nil {
		return nil, err
	}
	marked, err := store.Canceled(ctx, e.deps.Store, w.Run.Run)
	if err != nil {
		return nil, err
	}
	if marked {
		return e.preventLaunch(ctx, w.Run, launch.CanceledEvent(w.Run.Header))
	}
	if err := e.deps.Bus.Publish(ctx, queuedStatus(w.Run.Header)); err != nil {
		return nil, err
	}
	e.scheduler.Wake()
	return nil, nil
}

// preventLaunch stores a plan that prevents the launch of an attempt, and returns the
// events of the attempt's end. If another process has stored a plan to launch the
// attempt, preventLaunch changes nothing.
func (e *executor) preventLaunch(ctx context.Context, run event.Fetched, last *event.Finished) ([]event.Event, error) {
	plan, err := e.docs.PutPlanIfAbsent(ctx, launch.Plan{NoLaunch: true, FinalEvent: last, Run: run})
	if err != nil {
		return nil, err
	}
	if !plan.NoLaunch {
		e.scheduler.Wake()
		return nil, nil
	}
	return plan.FinalEvents(), e.docs.Dequeue(ctx, e.queueKey(run))
}

// onCommand cancels a run. It removes a waiting attempt from the queue, and deletes the
// objects of an attempt that is launched or about to be. The watcher reports when these
// objects are gone.
func (e *executor) onCommand(ctx context.Context, c event.Command) ([]event.Event, error) {
	if c.Kind != event.CommandCancel {
		return nil, nil
	}
	e.deferred.Wake() // the attempt may be deferred
	run, err := e.docs.Run(ctx, c.Run)
	if err != nil || run.Phase == event.PhaseFinished {
		return nil, err
	}
	table, err := e.docs.Table(ctx)
	if err != nil {
		return nil, err
	}
	var events []event.Event
	for attempt := 1; attempt <= max(c.Attempt, run.Attempt)+1; attempt++ {
		evs, err := e.cancelAttempt(ctx, table, run, slots.AttemptKey{Run: c.Run, Attempt: attempt})
		if err != nil {
			return nil, err
		}
		events = append(events, evs...)
	}
	return events, nil
}

// cancelAttempt ends one attempt, in the queue or in the cluster.
func (e *executor) cancelAttempt(ctx context.Context, table slots.Table, run store.Run, h slots.AttemptKey) ([]event.Event, error) {
	plan, err := e.docs.Plan(ctx, h)
	if err != nil {
		return nil, err
	}
	if a, held := table.Allocation(h); held && plan != nil && !plan.NoLaunch {
		return nil, e.deleteObjects(ctx, a, plan.Ref())
	}
	key := slots.QueueKey(e.settings.priority(run.Labels), h)
	if plan != nil {
		return plan.FinalEvents(), e.docs.Dequeue(ctx, key)
	}
	w, found, err := e.docs.QueuedRun(ctx, key)
	if !found || err != nil {
		return nil, err
	}
	return e.preventLaunch(ctx, w.Run, launch.CanceledEvent(w.Run.Header))
}

// deleteObjects deletes the objects of an attempt with a slot, whose run is canceled. If
// the cluster does not answer, the scheduler goes on with that, so that the commands of
// other runs do not wait. An attempt whose launch was not published yet finds the mark
// itself: its launch has to be published, so that the watcher ends the run.
func (e *executor) deleteObjects(ctx context.Context, a slots.Allocation, r cluster.Ref) error {
	limited, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	err := e.launchers.delete(limited, a.Engine, r)
	if ctx.Err() != nil {
		return fmt.Errorf("delete the objects of %s: %w", a.DocKey(), err)
	}
	if err != nil {
		e.deps.Log.Warn("cannot delete the objects of a canceled run yet, tries again", zap.String("run", a.Run), zap.Error(err))
	}
	if err != nil && a.Launched {
		e.scheduler.Release(a)
	}
	e.scheduler.Wake()
	return nil
}

// onFinished deletes the objects of finished runs, and prevents their later launch.
func (e *executor) onFinished(ctx context.Context, evs []event.Finished) ([]event.Event, error) {
	over := make(map[string]bool, len(evs))
	for _, ev := range evs {
		over[ev.Run] = true
	}
	if err := e.releaseSlots(ctx, func(en slots.Allocation) (bool, bool) { return over[en.Run], !en.Launched }); err != nil {
		return nil, err
	}
	for _, ev := range evs {
		if err := e.discardFinished(ctx, ev.Header); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// discardFinished removes a finished run from the queue, and prevents a later launch of
// the attempt that ended.
func (e *executor) discardFinished(ctx context.Context, h event.Header) error {
	attempt := slots.AttemptKey{Run: h.Run, Attempt: h.Attempt}
	plan, err := e.docs.Plan(ctx, attempt)
	if err != nil || plan != nil {
		return err
	}
	if _, err := e.docs.PutPlanIfAbsent(ctx, launch.Plan{NoLaunch: true, Run: event.Fetched{Header: h}}); err != nil {
		return err
	}
	run, err := e.docs.Run(ctx, h.Run)
	if err != nil {
		return err
	}
	return e.docs.Dequeue(ctx, slots.QueueKey(e.settings.priority(run.Labels), attempt))
}

// releaseSlots releases the slots of the attempts for which over is true, once their
// objects are gone. If over also returns write, the end is first written to the table:
// for an attempt whose launch may still be in progress, so that it is not launched
// again, and for an attempt that was retried, since no other document has its end. The
// end of a run is in the store.
func (e *executor) releaseSlots(ctx context.Context, over func(slots.Allocation) (over, write bool)) error {
	table, err := e.docs.Table(ctx)
	if err != nil {
		return err
	}
	var ended []slots.Allocation
	transitions := make(map[slots.AttemptKey]slots.Transition)
	for _, a := range table.Allocations {
		over, write := over(a)
		if over {
			ended = append(ended, a)
		}
		if over && write {
			transitions[a.AttemptKey] = slots.Terminating
		}
	}
	if len(transitions) > 0 {
		if err := e.docs.Apply(ctx, transitions); err != nil {
			return err
		}
	}
	for _, a := range ended {
		e.scheduler.Release(a)
	}
	e.scheduler.Wake()
	return nil
}

// queueKey returns the key of an attempt in the queue.
func (e *executor) queueKey(run event.Fetched) string {
	return slots.QueueKey(e.settings.priority(run.Labels), slots.AttemptKey{Run: run.Run, Attempt: run.Attempt})
}
