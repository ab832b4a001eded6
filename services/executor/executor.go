package executor

import (
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// executor handles events: it puts runs into the queue, takes them out again,
// and tells the admitter.
type executor struct {
	settings Settings
	deps     Deps
	desk     desk
	admitter *admitter
	unread   chan struct{} // holds one when attempts that were put aside are to be looked at
}

func newExecutor(s Settings, d Deps) *executor {
	k := desk{store: d.Store, settings: s}
	return &executor{settings: s, deps: d, desk: k, admitter: newAdmitter(s, d, k), unread: make(chan struct{}, 1)}
}

// fetched hears that a run's data are there.
func (e *executor) fetched(ctx context.Context, run event.Fetched) ([]event.Event, error) {
	facts, err := e.desk.facts(ctx, Holder{Run: run.Run, Attempt: run.Attempt})
	if err != nil {
		return nil, err
	}
	return e.act(ctx, run, Receive(run, facts, e.settings))
}

// retried hears that an attempt failed and another is to follow. The new one
// waits at the head of its priority, while the old one keeps its slot until its
// objects are gone.
func (e *executor) retried(ctx context.Context, ev event.Retried) ([]event.Event, error) {
	before := Holder{Run: ev.Run, Attempt: ev.Attempt - 1}
	plan, err := e.desk.plan(ctx, before)
	if err != nil {
		return nil, err
	}
	if plan == nil || plan.Never {
		return []event.Event{lost(ev.Header, fmt.Sprintf("attempt %d cannot follow attempt %d, of which there is no plan", ev.Attempt, before.Attempt))}, nil
	}
	if err := e.release(ctx, func(en Entry) (bool, bool) { return en.Holder == before, true }); err != nil {
		return nil, err
	}
	run := plan.Run
	run.Header = ev.Header
	return e.fetched(ctx, run)
}

// act carries out what was decided about an attempt.
func (e *executor) act(ctx context.Context, run event.Fetched, r Reception) ([]event.Event, error) {
	switch {
	case r.Aside:
		u, err := e.desk.aside(ctx, run, e.deps.Clock())
		return []event.Event{awaitsNewer(u, e.settings)}, err
	case r.Queue != nil:
		return e.queue(ctx, *r.Queue)
	case r.Never != nil:
		return e.never(ctx, run, r.Never)
	}
	return r.Say, nil
}

// queue puts an attempt into the queue. That is said before the admitter is
// woken, so that no later phase is said earlier. A cancel mark that was set
// meanwhile, by somebody who could not yet find the run in the queue, counts.
func (e *executor) queue(ctx context.Context, w Waiting) ([]event.Event, error) {
	if err := e.desk.enqueue(ctx, w); err != nil {
		return nil, err
	}
	marked, err := e.desk.canceled(ctx, w.Run.Run)
	if err != nil {
		return nil, err
	}
	if marked {
		return e.never(ctx, w.Run, canceled(w.Run.Header))
	}
	if err := e.deps.Bus.Publish(ctx, queued(w.Run.Header)); err != nil {
		return nil, err
	}
	e.admitter.wake()
	return nil, nil
}

// never sees to it that an attempt is not launched, and returns what to say of
// it. If somebody was faster it is left to them.
func (e *executor) never(ctx context.Context, run event.Fetched, last *event.Finished) ([]event.Event, error) {
	plan, err := e.desk.settle(ctx, Plan{Never: true, Last: last, Run: run})
	if err != nil {
		return nil, err
	}
	if !plan.Never {
		e.admitter.wake()
		return nil, nil
	}
	return plan.last(), e.desk.dequeue(ctx, e.desk.queueKey(run))
}

// commanded hears what a user wants. What waits is taken out of the queue;
// what is launched, or about to be, is deleted: that it is gone the watcher
// says.
func (e *executor) commanded(ctx context.Context, c event.Command) ([]event.Event, error) {
	if c.Kind != event.CommandCancel {
		return nil, nil
	}
	select {
	case e.unread <- struct{}{}: // it may be aside
	default:
	}
	run, err := e.desk.run(ctx, c.Run)
	if err != nil || run.Phase == event.PhaseFinished {
		return nil, err
	}
	ledger, _, err := e.desk.ledger(ctx)
	if err != nil {
		return nil, err
	}
	var say []event.Event
	for attempt := 1; attempt <= max(c.Attempt, run.Attempt)+1; attempt++ {
		evs, err := e.cancel(ctx, ledger, run, Holder{Run: c.Run, Attempt: attempt})
		if err != nil {
			return nil, err
		}
		say = append(say, evs...)
	}
	return say, nil
}

// cancel ends one attempt, wherever it is.
func (e *executor) cancel(ctx context.Context, l Ledger, run store.Run, h Holder) ([]event.Event, error) {
	plan, err := e.desk.plan(ctx, h)
	if err != nil {
		return nil, err
	}
	if plan != nil && !plan.Never && l.holds(h) {
		if err := e.deps.Cluster.Delete(ctx, plan.ref()); err != nil {
			return nil, fmt.Errorf("delete the objects of %s: %w", h.key(), err)
		}
		e.admitter.wake()
		return nil, nil
	}
	key := queueKey(e.settings.priority(run.Labels), h)
	if plan != nil {
		return plan.last(), e.desk.dequeue(ctx, key)
	}
	w, err := e.desk.waiting(ctx, key)
	if w == nil || err != nil {
		return nil, err
	}
	return e.never(ctx, w.Run, canceled(w.Run.Header))
}

// finished hears that runs are over: their objects are deleted, and nothing of
// them is launched any more.
func (e *executor) finished(ctx context.Context, evs []event.Finished) ([]event.Event, error) {
	over := make(map[string]bool, len(evs))
	for _, ev := range evs {
		over[ev.Run] = true
	}
	if err := e.release(ctx, func(en Entry) (bool, bool) { return over[en.Run], !en.Launched }); err != nil {
		return nil, err
	}
	for _, ev := range evs {
		if err := e.forget(ctx, ev.Header); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// forget takes a run that is over out of the queue, should it be there, and
// sees to it that the attempt that ended is not launched later.
func (e *executor) forget(ctx context.Context, h event.Header) error {
	attempt := Holder{Run: h.Run, Attempt: h.Attempt}
	plan, err := e.desk.plan(ctx, attempt)
	if err != nil || plan != nil {
		return err
	}
	if _, err := e.desk.settle(ctx, Plan{Never: true, Run: event.Fetched{Header: h}}); err != nil {
		return err
	}
	run, err := e.desk.run(ctx, h.Run)
	if err != nil {
		return err
	}
	return e.desk.dequeue(ctx, queueKey(e.settings.priority(run.Labels), attempt))
}

// release has the slots of those who are over freed, once their objects are
// gone. Of some that they are over is written down first: where a launch may
// still be under way, so that it is not tried again, and of an attempt that
// another follows, which nothing else tells. Of other runs the store tells.
func (e *executor) release(ctx context.Context, over func(Entry) (over, write bool)) error {
	ledger, version, err := e.desk.ledger(ctx)
	if err != nil {
		return err
	}
	news := make(map[Holder]News)
	for _, entry := range ledger.Entries {
		yes, write := over(entry)
		if !yes {
			continue
		}
		e.admitter.releaseSoon(entry.Holder, version)
		if write {
			news[entry.Holder] = Ending
		}
	}
	if len(news) > 0 {
		if err := e.desk.learn(ctx, news); err != nil {
			return err
		}
	}
	e.admitter.wake()
	return nil
}
