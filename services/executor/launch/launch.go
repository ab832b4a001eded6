// Package launch creates the objects of attempts that hold a slot, and deletes them
// again. The plan of an attempt is a document that is created once: the process that
// creates it decides whether the attempt is ever launched.
package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Settings of a launcher.
type Settings struct {
	Engine         string           // key of the engine; empty for the default one
	Keep           descriptors.Keep // rule for objects of runs whose descriptor has none
	Poll           time.Duration    // longest time between two checks of objects that are being deleted
	Reconcile      time.Duration    // time between two deletions of the same objects, and between two sweeps
	NoLimitsReason string           // why the local cluster enforces no limits of CPU and memory; empty if it does
}

// Cluster runs the objects.
type Cluster interface {
	cluster.Creator
	cluster.Ender
	// Observe returns the current state of an attempt. The error is cluster.ErrNotFound
	// once neither its job nor any of its pods exists.
	Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error)
	cluster.Labeler
}

// Deps are the dependencies of a launcher.
type Deps struct {
	Docs    Documents
	Cluster Cluster
	Publish func(ctx context.Context, events ...event.Event) error
	Token   func(run string) string
	Clock   func() time.Time
	Log     *zap.Logger
}

// Launcher does the tasks of attempts with a slot of one engine. It implements slots.Tasks.
type Launcher struct {
	settings Settings
	planner  plan.Planner
	deps     Deps
	outages  outages
	releases releases
}

// New returns a launcher that launches the planner's plans on the planner's engine.
func New(s Settings, p plan.Planner, d Deps) *Launcher {
	return &Launcher{settings: s, planner: p, deps: d}
}

// Do implements slots.Tasks.
func (l *Launcher) Do(ctx context.Context, t slots.Task, e slots.Allocation, item *slots.Item) (p slots.Progress, err error) {
	switch t {
	case slots.Launch:
		p.Transition, err = l.launch(ctx, e, item)
	case slots.Release:
		return l.releaseSlot(ctx, e)
	case slots.CheckScheduling:
		p.Transition, err = l.checkScheduling(ctx, e)
	case slots.NoTask:
	}
	return p, err
}

// Discard implements slots.Tasks.
func (l *Launcher) Discard(ctx context.Context, item slots.Item) (bool, error) {
	p, err := l.deps.Docs.Plan(ctx, item.AttemptKey())
	if err != nil || p == nil {
		return false, err
	}
	return true, l.removeFromQueue(ctx, *p, item.Key)
}

// removeFromQueue removes an attempt that must not be launched from the queue. It first
// publishes the attempt's end again.
func (l *Launcher) removeFromQueue(ctx context.Context, p Plan, key string) error {
	if events := p.FinalEvents(); len(events) > 0 {
		if err := l.deps.Publish(ctx, events...); err != nil {
			return err
		}
	}
	return l.deps.Docs.Dequeue(ctx, key)
}

// deletionDelay returns the time until the first check of deleted objects. It is short
// on this machine, and longer than two API calls elsewhere.
func (l *Launcher) deletionDelay() time.Duration {
	if l.planner.Local() && !l.planner.Exec {
		return 2 * time.Millisecond
	}
	return 100 * time.Millisecond
}

// launch creates the objects of an attempt that has a slot, and publishes the launch.
// It continues an interrupted launch. Every step has its effect once, however often it
// is tried.
func (l *Launcher) launch(ctx context.Context, e slots.Allocation, item *slots.Item) (slots.Transition, error) {
	p, d, err := l.ensurePlan(ctx, e, item)
	if err != nil {
		return 0, err
	}
	if p.NoLaunch {
		return slots.Released, l.removeFromQueue(ctx, p, e.QueueKey)
	}
	next := createMissing
	if d == nil { // the plan existed before
		if next, err = l.resume(ctx, e); err != nil {
			return 0, err
		}
	}
	var uid string
	switch next {
	case abandon:
		return 0, nil
	case markEnding:
		return slots.Terminating, nil
	case findObjects:
		uid, err = l.findJobUID(ctx, p)
	case createMissing:
		uid, err = l.createObjects(ctx, p, d)
	case skipCreation:
	}
	if refusal, ok := errors.AsType[*cluster.RefusedError](err); ok {
		return l.reportRefusal(ctx, e, p, refusal)
	}
	if err != nil {
		return 0, errors.Join(err, l.reportOutage(ctx, p, err))
	}
	l.outages.end(e.AttemptKey)
	return l.confirmLaunch(ctx, e, p, uid)
}

// resume decides how an interrupted launch continues.
func (l *Launcher) resume(ctx context.Context, e slots.Allocation) (resumption, error) {
	stop, err := l.checkStop(ctx, e)
	if err != nil || stop == stopSlotLost {
		return abandon, err
	}
	run, err := l.deps.Docs.Run(ctx, e.Run)
	return decideResume(stop, lastTransition(run, e.Attempt)), err
}

// confirmLaunch publishes that the objects of a plan were created. If the run was
// canceled or has finished in the meantime, it deletes the objects at once. It also
// publishes the launch of a canceled run, since the watcher reports when the objects
// are gone.
func (l *Launcher) confirmLaunch(ctx context.Context, e slots.Allocation, p Plan, uid string) (slots.Transition, error) {
	stop, err := l.checkStop(ctx, e)
	if err != nil {
		return 0, err
	}
	if stop != notStopped {
		if err := l.deps.Cluster.Delete(ctx, p.Ref()); err != nil {
			return 0, fmt.Errorf("delete the objects of %s: %w", p.Job, err)
		}
	}
	if stop == stopSlotLost {
		return 0, nil
	}
	if err := l.deps.Publish(ctx, launchedEvent(p, uid, l.planner.Engine)); err != nil {
		return 0, err
	}
	if err := l.deps.Docs.Dequeue(ctx, e.QueueKey); err != nil {
		return 0, err
	}
	l.deps.Log.Info("launched", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
	return slots.Launched, nil
}

// ensurePlan returns the plan of an attempt that has a slot. If there is no plan, it
// makes one and also returns the descriptor.
func (l *Launcher) ensurePlan(ctx context.Context, e slots.Allocation, item *slots.Item) (p Plan, d *descriptors.Descriptor, err error) {
	if item == nil {
		existing, err := l.deps.Docs.Plan(ctx, e.AttemptKey)
		if err != nil || existing != nil {
			return deref(existing), nil, err
		}
		queued, found, err := l.deps.Docs.QueuedRun(ctx, e.QueueKey)
		if err != nil {
			return Plan{}, nil, err
		}
		if !found {
			l.deps.Log.Error("neither plan nor queue knows of it", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
			return Plan{NoLaunch: true}, nil, nil
		}
		item = &slots.Item{QueuedRun: queued, Key: e.QueueKey}
	}
	facts, err := l.deps.Docs.Facts(ctx, e.AttemptKey)
	if err != nil || facts.Plan != nil {
		return deref(facts.Plan), nil, err
	}
	d, faults := l.planner.Parse(item.Run)
	if faults.Err() != nil { // a newer executor queued the run
		_, err := l.deps.Docs.Defer(ctx, item.Run, l.deps.Clock())
		return Plan{NoLaunch: true}, nil, err
	}
	if !facts.RunFinished && !facts.Canceled {
		if facts.Images, err = l.resolveImages(ctx, item.Run, d); err != nil {
			return Plan{}, nil, err
		}
	}
	p, err = l.deps.Docs.PutPlanIfAbsent(ctx, makePlan(item.Run, d, facts, l.planner))
	return p, d, err
}

// resolveImages asks the registries about images whose own entrypoint is run. A retried
// attempt uses the answers of the attempt before.
func (l *Launcher) resolveImages(ctx context.Context, run event.Fetched, d *descriptors.Descriptor) ([]cluster.Image, error) {
	if len(transpile.Images(d, l.planner.Pods)) == 0 {
		return nil, nil
	}
	before, err := l.deps.Docs.Plan(ctx, slots.AttemptKey{Run: run.Run, Attempt: run.Attempt - 1})
	if err != nil || before != nil {
		return deref(before).Images, err
	}
	return l.planner.AskRegistries(ctx, d)
}

func deref(p *Plan) Plan {
	if p == nil {
		return Plan{}
	}
	return *p
}

// checkStop returns the reason why a launch must stop.
func (l *Launcher) checkStop(ctx context.Context, e slots.Allocation) (stopReason, error) {
	table, err := l.deps.Docs.Table(ctx)
	if err != nil {
		return notStopped, err
	}
	if allocation, ok := table.Allocation(e.AttemptKey); !ok || allocation.Terminating {
		return stopSlotLost, nil
	}
	canceled, err := store.Canceled(ctx, l.deps.Docs.Store, e.Run)
	if err != nil || !canceled {
		return notStopped, err
	}
	return stopCanceled, nil
}

// createObjects creates the objects of a plan and publishes the status launching at the
// same time. It returns the UID of the main Job, or "" if the Job is gone already. If d
// is nil, it parses the descriptor again.
func (l *Launcher) createObjects(ctx context.Context, p Plan, d *descriptors.Descriptor) (uid string, err error) {
	if d == nil {
		var faults parser.Faults
		if d, faults = l.planner.Parse(p.Run); faults.Err() != nil {
			return "", fmt.Errorf("read the descriptor of %s once more: %w", p.Job, faults.Err())
		}
	}
	if err := l.checkReferenceLabels(ctx, p, d); err != nil {
		return "", err
	}
	secrets, err := l.buildSecrets(p, d)
	if err != nil {
		return "", err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.deps.Publish(gctx, launchingStatus(p, d, l.planner, l.settings.NoLimitsReason)) })
	g.Go(func() (err error) {
		uid, err = l.createInOrder(gctx, p, p.objectsWithSecrets(secrets))
		return err
	})
	if err := g.Wait(); err != nil || uid != "" {
		return uid, err
	}
	return l.findJobUID(ctx, p)
}

// checkReferenceLabels refuses a plan whose descriptor names an object that the
// object's labels do not allow it to use.
func (l *Launcher) checkReferenceLabels(ctx context.Context, p Plan, d *descriptors.Descriptor) error {
	for _, r := range l.planner.LabelGated(p.Run, d) {
		has, err := l.deps.Cluster.Labels(ctx, string(r.Kind), p.Scope, r.Name)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return asOutage(err)
		}
		if err := l.planner.CheckLabels(p.Run, r, has); err != nil {
			return err
		}
	}
	return nil
}

// findJobUID returns the UID of the Job of a plan that was created before, or "" if the
// Job is gone.
func (l *Launcher) findJobUID(ctx context.Context, p Plan) (string, error) {
	seen, err := l.deps.Cluster.Observe(ctx, p.Ref())
	if errors.Is(err, cluster.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", asOutage(fmt.Errorf("look at %s: %w", p.Job, err))
	}
	if seen.Job == nil {
		return "", nil
	}
	return string(seen.Job.UID), nil
}

// buildSecrets makes the Secrets of a plan. The platform does not store them.
func (l *Launcher) buildSecrets(p Plan, d *descriptors.Descriptor) (all []*corev1.Secret, err error) {
	in := transpile.Input{Run: p.Run, Descriptor: d, Images: p.Images}
	if d.Hardware.Strategy == descriptors.MPI {
		// If Secrets with other keys exist already, they stay. All pods of the run
		// mount the same Secret.
		if in.Keys, err = newKeys(); err != nil {
			return nil, err
		}
	}
	return transpile.Secrets(in, l.planner.Pods, l.deps.Token(p.Run.Run))
}

// reportRefusal ends a run whose objects the cluster refuses, and deletes the objects
// that it accepted.
func (l *Launcher) reportRefusal(ctx context.Context, e slots.Allocation, p Plan, refusal error) (slots.Transition, error) {
	if err := l.deps.Cluster.Delete(ctx, p.Ref()); err != nil {
		return 0, fmt.Errorf("delete the objects of %s: %w", p.Job, err)
	}
	if err := l.deps.Publish(ctx, RefusedEvent(p.Run.Header, refusal)); err != nil {
		return 0, err
	}
	if err := l.deps.Docs.Dequeue(ctx, e.QueueKey); err != nil {
		return 0, err
	}
	l.deps.Log.Info("refused", zap.String("run", e.Run), zap.Error(refusal))
	return slots.Terminating, nil
}

// checkScheduling checks whether all pods of a gang have nodes, so that the next gang
// may start.
func (l *Launcher) checkScheduling(ctx context.Context, e slots.Allocation) (slots.Transition, error) {
	plan, err := l.deps.Docs.Plan(ctx, e.AttemptKey)
	if err != nil || plan == nil {
		return 0, err
	}
	seen, err := l.deps.Cluster.Observe(ctx, plan.Ref())
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return 0, fmt.Errorf("look at the pods of %s: %w", plan.Job, err)
	}
	if allScheduled(seen, e.Pods) {
		return slots.Scheduled, nil
	}
	return 0, nil
}
