package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// launch creates the objects of who was given a slot, and says so. It goes on
// where a launch that was cut off has ended, fresh or not: every step is done
// once, however often it is tried.
func (a *scheduler) launch(ctx context.Context, e Allocation, item *Item) error {
	plan, d, err := a.ensurePlan(ctx, e, item)
	if err != nil {
		return err
	}
	if plan.NoLaunch {
		if err := a.removeFromQueue(ctx, plan, e.QueueKey); err != nil {
			return err
		}
		a.recordTransition(e.AttemptKey, Released)
		return nil
	}
	var (
		stop           stopReason
		lastTransition Transition
		uid            string
	)
	if d == nil { // the plan was there before
		if stop, err = a.checkStop(ctx, e); err != nil || stop == stopSlotLost {
			return err
		}
		if lastTransition, err = a.docs.lastTransition(ctx, e.AttemptKey); err != nil {
			return err
		}
	}
	switch {
	case lastTransition == Terminating: // it is over, and the one who knew died before the ledger did
		a.recordTransition(e.AttemptKey, Terminating)
		return nil
	case lastTransition == Launched: // what is gone of it is not made anew: the watcher has heard of it
		uid, err = a.findJobUID(ctx, plan)
	case stop == notStopped:
		uid, err = a.createObjects(ctx, plan, d)
	}
	if refusal, ok := errors.AsType[*cluster.RefusedError](err); ok {
		return a.reportRefusal(ctx, e, plan, refusal)
	}
	if err != nil {
		return err
	}
	return a.confirmLaunch(ctx, e, plan, uid)
}

// confirmLaunch says that a plan's objects were created. If meanwhile the run was
// canceled or ended they are deleted at once; of a canceled run the watcher
// hears all the same, since it is who says that its objects are gone.
func (a *scheduler) confirmLaunch(ctx context.Context, e Allocation, plan Plan, uid string) error {
	stop, err := a.checkStop(ctx, e)
	if err != nil {
		return err
	}
	if stop != notStopped {
		if err := a.deps.Cluster.Delete(ctx, plan.ref()); err != nil {
			return fmt.Errorf("delete the objects of %s: %w", plan.Job, err)
		}
	}
	if stop == stopSlotLost {
		return nil
	}
	if err := a.deps.Bus.Publish(ctx, launchedEvent(plan, uid, a.settings)); err != nil {
		return err
	}
	if err := a.docs.dequeue(ctx, e.QueueKey); err != nil {
		return err
	}
	a.deps.Log.Info("launched", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
	a.recordTransition(e.AttemptKey, Launched)
	return nil
}

// ensurePlan returns the plan of an attempt that was given a slot. Where there was none
// it makes the plan, and returns the descriptor too.
func (a *scheduler) ensurePlan(ctx context.Context, e Allocation, item *Item) (p Plan, d *descriptors.Descriptor, err error) {
	if item == nil {
		existing, err := a.docs.plan(ctx, e.AttemptKey)
		if err != nil || existing != nil {
			return deref(existing), nil, err
		}
		queued, err := a.docs.queuedRun(ctx, e.QueueKey)
		if err != nil {
			return Plan{}, nil, err
		}
		if queued == nil {
			a.deps.Log.Error("neither plan nor queue knows of it", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
			return Plan{NoLaunch: true}, nil, nil
		}
		item = &Item{QueuedRun: *queued, Key: e.QueueKey}
	}
	facts, err := a.docs.facts(ctx, e.AttemptKey)
	if err != nil || facts.Plan != nil {
		return deref(facts.Plan), nil, err
	}
	d, faults := a.planner.Parse(item.Run)
	if faults.Err() != nil { // a newer executor queued it
		_, err := a.docs.deferAttempt(ctx, item.Run, a.deps.Clock())
		return Plan{NoLaunch: true}, nil, err
	}
	if !facts.RunFinished && !facts.Canceled {
		if facts.Images, err = a.resolveImages(ctx, item.Run, d); err != nil {
			return Plan{}, nil, err
		}
	}
	p, err = a.docs.putPlanIfAbsent(ctx, MakePlan(item.Run, d, facts, a.planner))
	return p, d, err
}

// resolveImages asks the registries of images that run by themselves. An attempt that
// follows another has the answers of that one, whatever they were.
func (a *scheduler) resolveImages(ctx context.Context, run event.Fetched, d *descriptors.Descriptor) ([]cluster.Image, error) {
	if len(transpile.Images(d, a.planner.Pods)) == 0 {
		return nil, nil
	}
	before, err := a.docs.plan(ctx, AttemptKey{Run: run.Run, Attempt: run.Attempt - 1})
	if err != nil || before != nil {
		return deref(before).Images, err
	}
	return a.planner.AskRegistries(ctx, d)
}

func deref(p *Plan) Plan {
	if p == nil {
		return Plan{}
	}
	return *p
}

// stopReason is why a launch does not go on.
type stopReason int

const (
	notStopped   stopReason = iota
	stopCanceled            // the run has a cancel mark
	stopSlotLost            // the run has ended, or the slot is not held any more
)

// checkStop looks whether a launch is to go on.
func (a *scheduler) checkStop(ctx context.Context, e Allocation) (stopReason, error) {
	ledger, _, err := a.docs.slotTable(ctx)
	if err != nil {
		return notStopped, err
	}
	if allocation, ok := ledger.allocation(e.AttemptKey); !ok || allocation.Terminating {
		return stopSlotLost, nil
	}
	canceled, err := a.docs.hasCancelMark(ctx, e.Run)
	if err != nil || !canceled {
		return notStopped, err
	}
	return stopCanceled, nil
}

// createObjects creates the objects of a plan while it reports that to the user, and
// returns the UID of its Job, empty where that is gone already. A descriptor that is
// nil is read anew.
func (a *scheduler) createObjects(ctx context.Context, p Plan, d *descriptors.Descriptor) (uid string, err error) {
	if d == nil {
		var faults descriptors.Faults
		if d, faults = a.planner.Parse(p.Run); faults.Err() != nil {
			return "", fmt.Errorf("read the descriptor of %s once more: %w", p.Job, faults.Err())
		}
	}
	if err := a.checkReferenceLabels(ctx, p, d); err != nil {
		return "", err
	}
	secrets, err := a.buildSecrets(p, d)
	if err != nil {
		return "", err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.deps.Bus.Publish(gctx, launchingStatus(p, d, a.settings)) })
	g.Go(func() (err error) {
		uid, err = a.createInOrder(gctx, p, p.objectsWithSecrets(secrets))
		return err
	})
	if err := g.Wait(); err != nil || uid != "" {
		return uid, err
	}
	return a.findJobUID(ctx, p)
}

// checkReferenceLabels refuses a plan whose descriptor names an object that its labels do not
// allow it to name.
func (a *scheduler) checkReferenceLabels(ctx context.Context, p Plan, d *descriptors.Descriptor) error {
	for _, r := range a.planner.LabelGated(p.Run, d) {
		has, err := a.deps.Cluster.Labels(ctx, string(r.Kind), p.Scope, r.Name)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
		if err := a.planner.CheckLabels(p.Run, r, has); err != nil {
			return err
		}
	}
	return nil
}

// findJobUID returns the UID of the Job of a plan that was created before, empty where
// it is gone already.
func (a *scheduler) findJobUID(ctx context.Context, p Plan) (string, error) {
	seen, err := a.deps.Cluster.Observe(ctx, p.ref())
	if errors.Is(err, cluster.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", p.Job, err)
	}
	if seen.Job == nil {
		return "", nil
	}
	return string(seen.Job.UID), nil
}

// buildSecrets makes the Secrets of a plan, which are stored nowhere.
func (a *scheduler) buildSecrets(p Plan, d *descriptors.Descriptor) (all []*corev1.Secret, err error) {
	in := transpile.Input{Run: p.Run, Descriptor: d, Images: p.Images}
	if d.Hardware.Strategy == descriptors.MPI {
		// Should they have been made before, those that are there stay: nothing
		// but their Secret, which all of the pods mount, knows of them.
		if in.Keys, err = newKeys(); err != nil {
			return nil, err
		}
	}
	return transpile.Secrets(in, a.planner.Pods, a.deps.Token(p.Run.Run))
}

// reportRefusal ends a run whose objects the cluster will not have, and takes back
// those that it took.
func (a *scheduler) reportRefusal(ctx context.Context, e Allocation, p Plan, refusal error) error {
	if err := a.deps.Cluster.Delete(ctx, p.ref()); err != nil {
		return fmt.Errorf("delete the objects of %s: %w", p.Job, err)
	}
	if err := a.deps.Bus.Publish(ctx, refusedEvent(p.Run.Header, refusal)); err != nil {
		return err
	}
	if err := a.docs.dequeue(ctx, e.QueueKey); err != nil {
		return err
	}
	a.deps.Log.Info("refused", zap.String("run", e.Run), zap.Error(refusal))
	a.recordTransition(e.AttemptKey, Terminating)
	return nil
}

// releaseSlot deletes the objects of an attempt that is over, and when they are
// gone has its slot freed.
func (a *scheduler) releaseSlot(ctx context.Context, e Allocation) error {
	plan, err := a.docs.plan(ctx, e.AttemptKey)
	if err != nil {
		return err
	}
	if plan == nil || plan.NoLaunch { // nothing was created
		a.recordTransition(e.AttemptKey, Released)
		return nil
	}
	retained, err := a.retainObjects(ctx, e, *plan)
	if err != nil {
		return err
	}
	if retained {
		a.recordTransition(e.AttemptKey, Released)
		return nil
	}
	return a.deleteObjects(ctx, e.AttemptKey, plan.ref())
}

// deleteObjects deletes the objects of an attempt, and frees its slot when they are gone.
// As long as they are not, it asks for that from time to time: a node that is
// lost never says that what ran on it has ended.
func (a *scheduler) deleteObjects(ctx context.Context, h AttemptKey, r cluster.Ref) error {
	var next time.Time
	for wait := a.settings.deletionDelay(); ; wait = min(2*wait, a.settings.Poll) {
		if now := a.deps.Clock(); !now.Before(next) {
			if err := a.deps.Cluster.Delete(ctx, r); err != nil {
				return fmt.Errorf("delete the objects of %s: %w", r.Job, err)
			}
			next = now.Add(a.settings.Reconcile)
		}
		_, err := a.deps.Cluster.Observe(ctx, r)
		if errors.Is(err, cluster.ErrNotFound) {
			a.recordTransition(h, Released)
			return nil
		}
		if err != nil {
			return fmt.Errorf("look whether %s is gone: %w", r.Job, err)
		}
		if !sleep(ctx, wait, nil) {
			return nil
		}
	}
}

// checkScheduling sees whether a gang has all its nodes, so that the next one may go.
func (a *scheduler) checkScheduling(ctx context.Context, e Allocation) error {
	plan, err := a.docs.plan(ctx, e.AttemptKey)
	if err != nil || plan == nil {
		return err
	}
	seen, err := a.deps.Cluster.Observe(ctx, plan.ref())
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return fmt.Errorf("look at the pods of %s: %w", plan.Job, err)
	}
	if allScheduled(seen, e.Pods) {
		a.recordTransition(e.AttemptKey, Scheduled)
	}
	return nil
}
