package executor

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/executor/slots"
)

// retryDeferred looks at the attempts that were put aside, by whatever executor: one
// that is new enough queues them.
func (e *executor) retryDeferred(ctx context.Context) (time.Duration, error) {
	return 0, e.docs.Deferred().ForEach(ctx, e.retryDeferredAttempt)
}

// retryDeferredAttempt decides about one attempt that was put aside, and publishes what follows.
func (e *executor) retryDeferredAttempt(ctx context.Context, u launch.DeferredAttempt) (decided bool, err error) {
	facts, err := e.docs.Facts(ctx, slots.AttemptKey{Run: u.Run.Run, Attempt: u.Run.Attempt})
	if err != nil {
		return false, err
	}
	r, decided := decideDeferred(u, facts, e.planner, e.deps.Clock())
	if !decided {
		return false, nil
	}
	events, err := e.applyDecision(ctx, u.Run, r)
	if err != nil || len(events) == 0 {
		return err == nil, err
	}
	return true, e.deps.Bus.Publish(ctx, events...)
}
