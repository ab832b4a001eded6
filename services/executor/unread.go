package executor

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// unread are the attempts whose descriptor an executor could not read.
func (d desk) unread() skew.Queue[Unread] { return skew.NewQueue[Unread](d.store, kindUnread, "") }

// aside puts an attempt aside whose descriptor this executor cannot read. The first
// time counts for how long it may wait.
func (d desk) aside(ctx context.Context, run event.Fetched, now time.Time) (Unread, error) {
	return d.unread().Put(ctx, Holder{Run: run.Run, Attempt: run.Attempt}.key(), Unread{Run: run, Since: now.UTC()})
}

// reread looks, from time to time, at the attempts that were put aside, by whatever
// executor: one that is new enough receives them.
func (e *executor) reread(ctx context.Context) error {
	failed := false
	for {
		err := e.desk.unread().Each(ctx, e.rereadOne)
		if err != nil && !failed && ctx.Err() == nil {
			e.deps.Log.Warn("cannot look at runs that wait for a newer executor, tries again", zap.Error(err))
		}
		failed = err != nil
		if !sleep(ctx, e.settings.Reconcile, e.unread) {
			return nil
		}
	}
}

// rereadOne decides about one attempt that was put aside, and says what follows.
func (e *executor) rereadOne(ctx context.Context, u Unread) (decided bool, err error) {
	facts, err := e.desk.facts(ctx, Holder{Run: u.Run.Run, Attempt: u.Run.Attempt})
	if err != nil {
		return false, err
	}
	r, decided := Reread(u, facts, e.settings, e.deps.Clock())
	if !decided {
		return false, nil
	}
	say, err := e.act(ctx, u.Run, r)
	if err != nil || len(say) == 0 {
		return err == nil, err
	}
	return true, e.deps.Bus.Publish(ctx, say...)
}
