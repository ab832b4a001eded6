package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// kindRetained are the documents of attempts whose objects are kept: run, attempt →
// Kept.
const kindRetained store.Kind = "kept"

// retainObjects notes that an attempt's objects stay for a while, if they do, and reports
// whether they do. A server or a worker that still runs is ended before, because kept
// objects hold no slot. If something may run in spite of that they do not stay,
// whatever was asked for.
func (a *scheduler) retainObjects(ctx context.Context, e Allocation, p Plan) (bool, error) {
	run, err := a.awaitOutcome(ctx, e, p)
	if err != nil {
		return false, err
	}
	d := retentionFor(p, run, a.settings)
	if d == 0 {
		return false, nil
	}
	terminated, err := a.terminatePods(ctx, e, p)
	if err != nil || !terminated {
		return false, err
	}
	err = store.Create(ctx, a.deps.Store, kindRetained, e.docKey(), Retained{Ref: p.ref(), Until: a.deps.Clock().Add(d)})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return false, fmt.Errorf("keep the objects of %s: %w", p.Job, err)
	}
	return true, nil
}

// terminatePods has all of an attempt end that may be kept, and reports whether nothing of it
// runs any more, nor will. As long as something does, its slot is not free.
func (a *scheduler) terminatePods(ctx context.Context, e Allocation, p Plan) (bool, error) {
	until := a.deps.Clock().Add(a.settings.Pods.MaxTermination() + maxTerminationWait)
	var nextStop time.Time // when those that run are told to end
	for wait := a.settings.deletionDelay(); ; wait = min(2*wait, a.settings.Poll) {
		seen, err := a.deps.Cluster.Observe(ctx, p.ref())
		gone := errors.Is(err, cluster.ErrNotFound)
		if err != nil && !gone {
			return false, fmt.Errorf("look whether %s has ended: %w", p.Job, err)
		}
		now, stopped := a.deps.Clock(), !nextStop.IsZero()
		switch {
		case gone || !Retainable(seen, p.Jobs) || now.After(until):
			a.deps.Log.Info("not kept, since it may still run", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
			return false, nil
		case Terminated(seen) && (stopped || p.Jobs <= 1): // the Job of another role may be about to make a pod
			return true, nil
		case !now.Before(nextStop):
			if err := a.deps.Cluster.Stop(ctx, p.ref()); err != nil {
				return false, fmt.Errorf("stop the pods of %s, which are to be kept: %w", p.Job, err)
			}
			nextStop = now.Add(a.settings.Reconcile)
		}
		if !sleep(ctx, wait, nil) {
			return false, ctx.Err()
		}
	}
}

// maxTerminationWait is how much longer than its grace a pod that was told to end is waited for,
// before it is taken for one whose node is lost.
const maxTerminationWait = 2 * time.Minute

// maxProjectionLag is how long the end of a run may take to be found in the store after
// it was said.
const maxProjectionLag = 10 * time.Second

// awaitOutcome returns the run once the store knows how it ended, where that matters:
// who heard of the end may be ahead.
func (a *scheduler) awaitOutcome(ctx context.Context, e Allocation, p Plan) (store.Run, error) {
	end := a.deps.Clock().Add(maxProjectionLag)
	for {
		run, err := a.docs.run(ctx, e.Run)
		if err != nil || run.Phase == event.PhaseFinished || run.Attempt > e.Attempt || a.deps.Clock().After(end) {
			return run, err
		}
		failed := store.Run{Phase: event.PhaseFinished, Outcome: event.Failed, Attempt: e.Attempt}
		if retentionFor(p, failed, a.settings) == 0 {
			return run, nil
		}
		if !sleep(ctx, min(a.settings.Poll, 100*time.Millisecond), nil) {
			return run, ctx.Err()
		}
	}
}

// sweepRetained deletes, from time to time, the objects that were kept for long enough.
func (a *scheduler) sweepRetained(ctx context.Context, now time.Time) error {
	if now.Before(a.nextSweep) {
		return nil
	}
	a.nextSweep = now.Add(a.settings.Reconcile)
	const page = 100
	for after := ""; ; {
		docs, err := a.deps.Store.Docs(ctx, kindRetained, after, page)
		if err != nil {
			return fmt.Errorf("look what is kept: %w", err)
		}
		for _, doc := range docs {
			after = doc.Key
			if err := a.deleteExpired(ctx, doc, now); err != nil {
				return err
			}
		}
		if len(docs) < page {
			return nil
		}
	}
}

// deleteExpired deletes the objects of which a document says that they were kept,
// if it is time.
func (a *scheduler) deleteExpired(ctx context.Context, doc store.Doc, now time.Time) error {
	var k Retained
	if err := json.Unmarshal(doc.Value, &k); err != nil {
		return fmt.Errorf("read what is kept of %s: %w", doc.Key, err)
	}
	if now.Before(k.Until) {
		return nil
	}
	if err := a.deps.Cluster.Delete(ctx, k.Ref); err != nil {
		return fmt.Errorf("delete the objects of %s, which were kept: %w", k.Ref.Job, err)
	}
	a.deps.Log.Info("kept for long enough", zap.String("run", k.Ref.Run), zap.Int("attempt", k.Ref.Attempt))
	return a.deps.Store.DeleteDoc(ctx, store.Doc{Kind: kindRetained, Key: doc.Key})
}
