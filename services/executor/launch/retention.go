package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// kindRetained is the kind of documents of attempts whose objects are retained: run and
// attempt → retainedObjects.
const kindRetained store.Kind = "kept"

// retainObjects records that the objects of an attempt are retained, if the rules say
// so, and reports whether they are. First it stops servers and workers that still run,
// because retained objects hold no slot. Objects whose pods may still run are not
// retained, whatever the settings.
func (l *Launcher) retainObjects(ctx context.Context, e slots.Allocation, p Plan) (bool, error) {
	run, err := l.awaitOutcome(ctx, e, p)
	if err != nil {
		return false, err
	}
	d := l.retentionFor(p, run)
	if d == 0 {
		return false, nil
	}
	ended, err := l.terminatePods(ctx, e, p)
	if err != nil || !ended {
		return false, err
	}
	err = store.Create(ctx, l.deps.Docs.Store, kindRetained, e.DocKey(),
		retainedObjects{Engine: l.settings.Engine, Ref: p.Ref(), Until: l.deps.Clock().Add(d)})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return false, fmt.Errorf("keep the objects of %s: %w", p.Job, err)
	}
	return true, nil
}

// terminatePods stops the pods of an attempt that may be retained, and reports whether
// none of its pods runs or will run. The slot stays held until then.
func (l *Launcher) terminatePods(ctx context.Context, e slots.Allocation, p Plan) (bool, error) {
	until := l.deps.Clock().Add(l.planner.Pods.MaxTermination() + maxTerminationWait)
	var nextStop time.Time // time of the next call to Stop
	for wait := l.deletionDelay(); ; wait = min(2*wait, l.settings.Poll) {
		seen, err := l.deps.Cluster.Observe(ctx, p.Ref())
		gone := errors.Is(err, cluster.ErrNotFound)
		if err != nil && !gone {
			return false, fmt.Errorf("look whether %s has ended: %w", p.Job, err)
		}
		now, stopped := l.deps.Clock(), !nextStop.IsZero()
		switch {
		case gone || !retainable(seen, p.Jobs) || now.After(until):
			l.deps.Log.Info("not kept, since it may still run", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
			return false, nil
		case terminated(seen) && (stopped || p.Jobs <= 1): // the Job of another role may be about to create a pod
			return true, nil
		case !now.Before(nextStop):
			if err := l.deps.Cluster.Stop(ctx, p.Ref()); err != nil {
				return false, fmt.Errorf("stop the pods of %s, which are to be kept: %w", p.Job, err)
			}
			nextStop = now.Add(l.settings.Reconcile)
		}
		if !control.Sleep(ctx, wait) {
			return false, ctx.Err()
		}
	}
}

// maxTerminationWait is the time beyond the grace period after which a stopped pod
// counts as lost with its node.
const maxTerminationWait = 2 * time.Minute

// maxProjectionLag is the maximum time from the event of a run's end to its projection.
const maxProjectionLag = 10 * time.Second

// awaitOutcome returns the run once the store has its outcome, if the outcome matters
// for retention. The event of the end may arrive before its projection.
func (l *Launcher) awaitOutcome(ctx context.Context, e slots.Allocation, p Plan) (store.Run, error) {
	end := l.deps.Clock().Add(maxProjectionLag)
	for {
		run, err := l.deps.Docs.Run(ctx, e.Run)
		if err != nil || run.Phase == event.PhaseFinished || run.Attempt > e.Attempt || l.deps.Clock().After(end) {
			return run, err
		}
		failed := store.Run{Phase: event.PhaseFinished, Outcome: event.Failed, Attempt: e.Attempt}
		if l.retentionFor(p, failed) == 0 {
			return run, nil
		}
		if !control.Sleep(ctx, min(l.settings.Poll, 100*time.Millisecond)) {
			return run, ctx.Err()
		}
	}
}

// retentionFor returns how long the objects of an attempt stay after its end.
func (l *Launcher) retentionFor(p Plan, run store.Run) time.Duration {
	return retentionFor(p, run, l.settings.Keep, l.planner.Pods.RetentionPeriod())
}

// Sweep returns the loop that deletes the objects of this engine whose retention has
// expired.
func (l *Launcher) Sweep() *control.Loop {
	return control.NewLoop("executor/sweep", l.settings.Reconcile, l.deps.Log, l.sweep, control.LoopSettings{
		Failing: "cannot delete objects that were kept, tries again",
	})
}

func (l *Launcher) sweep(ctx context.Context) (time.Duration, error) {
	now := l.deps.Clock()
	for doc, err := range store.All[retainedObjects](ctx, l.deps.Docs.Store, kindRetained, "") {
		if err != nil {
			return 0, err
		}
		if doc.Value.Engine != l.settings.Engine {
			continue
		}
		if err := l.deleteExpired(ctx, doc, now); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// deleteExpired deletes objects whose retention has expired.
func (l *Launcher) deleteExpired(ctx context.Context, doc store.Document[retainedObjects], now time.Time) error {
	k := doc.Value
	if now.Before(k.Until) {
		return nil
	}
	if err := l.deps.Cluster.Delete(ctx, k.Ref); err != nil {
		return fmt.Errorf("delete the objects of %s, which were kept: %w", k.Ref.Job, err)
	}
	l.deps.Log.Info("kept for long enough", zap.String("run", k.Ref.Run), zap.Int("attempt", k.Ref.Attempt))
	return l.deps.Docs.Store.DeleteDoc(ctx, store.Doc{Kind: kindRetained, Key: doc.Key})
}
