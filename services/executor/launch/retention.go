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
// so, and decides whether they are. First it stops servers and workers that still run,
// because retained objects hold no slot. Objects whose pods may still run are not
// retained, whatever the settings.
func (l *Launcher) retainObjects(ctx context.Context, e slots.Allocation, r *release) (retention, error) {
	run, known, err := l.findOutcome(ctx, e, r)
	if err != nil || !known {
		return undecided, err
	}
	d := l.retentionFor(*r.plan, run)
	if d == 0 {
		return notRetained, nil
	}
	ended, err := l.terminatePods(ctx, e, r)
	if err != nil || ended != retained {
		return ended, err
	}
	err = store.Create(ctx, l.deps.Docs.Store, kindRetained, e.DocKey(),
		retainedObjects{Engine: l.settings.Engine, Ref: r.plan.Ref(), Until: l.deps.Clock().Add(d)})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return undecided, fmt.Errorf("keep the objects of %s: %w", r.plan.Job, err)
	}
	return retained, nil
}

// terminatePods stops the pods of an attempt that may be retained, which it is once
// none of its pods runs or will run. The slot stays held until then.
func (l *Launcher) terminatePods(ctx context.Context, e slots.Allocation, r *release) (retention, error) {
	p, now, stopped := r.plan, l.deps.Clock(), !r.nextStop.IsZero()
	if r.terminateBy.IsZero() {
		r.terminateBy = now.Add(l.planner.Pods.MaxTermination() + maxTerminationWait)
	}
	seen, err := l.deps.Cluster.Observe(ctx, p.Ref())
	gone := errors.Is(err, cluster.ErrNotFound)
	if err != nil && !gone {
		return undecided, fmt.Errorf("look whether %s has ended: %w", p.Job, err)
	}
	switch {
	case gone || !retainable(seen, p.Jobs) || now.After(r.terminateBy):
		l.deps.Log.Info("not kept, since it may still run", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
		return notRetained, nil
	case terminated(seen) && (stopped || p.Jobs <= 1): // the Job of another role may be about to create a pod
		return retained, nil
	case !now.Before(r.nextStop):
		if err := l.deps.Cluster.Stop(ctx, p.Ref()); err != nil {
			return undecided, fmt.Errorf("stop the pods of %s, which are to be kept: %w", p.Job, err)
		}
		r.nextStop = now.Add(l.settings.Reconcile)
	}
	return undecided, nil
}

// maxTerminationWait is the time beyond the grace period after which a stopped pod
// counts as lost with its node.
const maxTerminationWait = 2 * time.Minute

// maxProjectionLag is the maximum time from the event of a run's end to its projection.
const maxProjectionLag = 10 * time.Second

// findOutcome returns the run, and whether the store has its outcome, or will not have it,
// or the outcome does not matter for retention. The event of the end may arrive before its
// projection.
func (l *Launcher) findOutcome(ctx context.Context, e slots.Allocation, r *release) (run store.Run, known bool, err error) {
	run, err = l.deps.Docs.Run(ctx, e.Run)
	if err != nil || run.Phase == event.PhaseFinished || run.Attempt > e.Attempt {
		return run, true, err
	}
	now := l.deps.Clock()
	if r.outcomeBy.IsZero() {
		r.outcomeBy = now.Add(maxProjectionLag)
	}
	failed := store.Run{Phase: event.PhaseFinished, Outcome: event.Failed, Attempt: e.Attempt}
	return run, now.After(r.outcomeBy) || l.retentionFor(*r.plan, failed) == 0, nil
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
