package watcher

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/always"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// resultsPollInterval is the time between two checks whether the executor has run the steps at the end of an attempt.
const resultsPollInterval = 250 * time.Millisecond

// pendingEnd returns the end of an attempt that was decided before and waits for steps. It is false for an attempt without such steps.
func (w *watcher) pendingEnd(ctx context.Context, l event.Launched) (always.PendingEnd, bool, error) {
	if len(l.Always) == 0 {
		return always.PendingEnd{}, false, nil
	}
	return w.docs.always().Pending(ctx, l.Run, l.Attempt)
}

// end publishes the end of an attempt, at once or when the steps have run that run at every end. The end is stored before, since the
// executor may end pods for them: what the cluster shows then is not why the attempt ended.
func (w *watcher) end(
	ctx context.Context, on *engine, a attempt, m *tracked, s verdict.Observation, events []event.Event,
) (recheckAt time.Time, err error) {
	missing := verdict.MissingSteps(m.doc.Launched, s)
	if len(missing) > 0 {
		published, err := w.docs.endDecided(ctx, a)
		if err != nil {
			return time.Time{}, err
		}
		if published { // the pods are gone by now, and so is what they showed
			missing = nil
		}
	}
	if len(missing) == 0 {
		return time.Time{}, w.finish(ctx, a, events)
	}
	e := newEndedAttempt(events)
	p, err := w.docs.always().PutIfAbsent(ctx,
		always.PendingEnd{
			Run: a.run, Attempt: a.number, Engine: on.name, Steps: missing, Since: s.Now,
			Ended: verdict.EndedSteps(m.doc.Launched, s), Finished: e.Finished, Retried: e.Retried,
		})
	if err != nil {
		return time.Time{}, err
	}
	return w.awaitSteps(ctx, a, m, p)
}

// noteSteps keeps how steps at the end of the attempt ended in the pods of a snapshot: these may be gone in the next one. The caller holds
// the lock.
func (m *tracked) noteSteps(s cluster.Snapshot) {
	for name, r := range always.Ended(m.doc.Launched.Always, s.Pods) {
		if m.steps == nil {
			m.steps = map[string]always.StepResult{}
		}
		m.steps[name] = r
	}
}

// stepResults returns how steps ended in pods of the attempt, nil unless all of them are known to have done so.
func (m *tracked) stepResults(steps []string) (all []always.StepResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range steps {
		r, known := m.steps[name]
		if !known {
			return nil
		}
		all = append(all, r)
	}
	return all
}

// awaitSteps publishes a stored end if the steps that it waits for have run, in pods of the attempt or by the executor, and else that it
// waits. A pod may be gone before the executor has looked at it, but not before the watch.
func (w *watcher) awaitSteps(ctx context.Context, a attempt, m *tracked, p always.PendingEnd) (recheckAt time.Time, err error) {
	results, known, err := w.docs.always().Results(ctx, a.run, a.number)
	if err != nil {
		return time.Time{}, err
	}
	if seen := m.stepResults(p.Steps); !known && seen != nil {
		if err := w.docs.always().PutResults(ctx, p, always.Results{Steps: seen}); err != nil {
			return time.Time{}, err
		}
		if results, known, err = w.docs.always().Results(ctx, a.run, a.number); err != nil { // perhaps the executor's
			return time.Time{}, err
		}
	}
	status := verdict.StepsStatus(m.doc.Launched, p, results, known)
	if status != nil && status.ID != m.lastReported {
		if err := w.deps.Bus.Publish(ctx, *status); err != nil {
			return time.Time{}, err
		}
		m.lastReported = status.ID
	}
	if !known {
		return w.deps.Clock().Add(resultsPollInterval), nil
	}
	return time.Time{}, w.finish(ctx, a, p.End(results))
}
