package executor

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// deferred are the attempts whose descriptor an executor could not read.
func (d documents) deferred() skew.Queue[DeferredAttempt] {
	return skew.NewQueue[DeferredAttempt](d.store, kindDeferred, "")
}

// deferAttempt puts an attempt aside whose descriptor this executor cannot read. The first
// time counts for how long it may wait.
func (d documents) deferAttempt(ctx context.Context, run event.Fetched, now time.Time) (DeferredAttempt, error) {
	return d.deferred().PutIfAbsent(ctx, AttemptKey{Run: run.Run, Attempt: run.Attempt}.docKey(), DeferredAttempt{Run: run, Since: now.UTC()})
}

// retryDeferred looks, from time to time, at the attempts that were put aside, by whatever
// executor: one that is new enough receives them.
func (e *executor) retryDeferred(ctx context.Context) error {
	failed := false
	for {
		err := e.docs.deferred().ForEach(ctx, e.retryDeferredAttempt)
		if err != nil && !failed && ctx.Err() == nil {
			e.deps.Log.Warn("cannot look at runs that wait for a newer executor, tries again", zap.Error(err))
		}
		failed = err != nil
		if !sleep(ctx, e.settings.Reconcile, e.deferredWakeup) {
			return nil
		}
	}
}

// retryDeferredAttempt decides about one attempt that was put aside, and says what follows.
func (e *executor) retryDeferredAttempt(ctx context.Context, u DeferredAttempt) (decided bool, err error) {
	facts, err := e.docs.facts(ctx, AttemptKey{Run: u.Run.Run, Attempt: u.Run.Attempt})
	if err != nil {
		return false, err
	}
	r, decided := DecideDeferred(u, facts, e.planner, e.deps.Clock())
	if !decided {
		return false, nil
	}
	events, err := e.applyDecision(ctx, u.Run, r)
	if err != nil || len(events) == 0 {
		return err == nil, err
	}
	return true, e.deps.Bus.Publish(ctx, events...)
}
