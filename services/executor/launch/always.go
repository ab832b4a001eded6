package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan/always"
)

// kindAlwaysPod is the kind of documents of attempts for whose steps at the end a pod was made: run and attempt → alwaysPod. They stay, so
// that a pod is made once.
const kindAlwaysPod store.Kind = "alwayspod"

// alwaysPod is the document of a pod that was made for steps at the end of an attempt.
type alwaysPod struct {
	Made time.Time `json:"made"`
}

// Times that bound the steps at the end of an attempt.
const (
	lostPod           = time.Minute            // how long a pod may outlast its deletion
	maxStepsPending   = 10 * time.Minute       // for a pod that is made for the steps, if the descriptor sets no limit
	stepsPollInterval = 200 * time.Millisecond // between two checks of a pod
)

// Steps returns the loop that runs the steps for which ends on the engine wait.
func (l *Launcher) Steps() *control.Loop {
	poll := l.settings.Poll
	return control.NewLoop("executor/always", 4*poll, l.deps.Log, l.runAllSteps, control.LoopSettings{
		Backoff: control.Backoff{First: poll / 8, Max: 5 * poll}, Failing: "cannot run steps at the end of runs, tries again",
	})
}

// runAllSteps runs the steps of attempts whose ends wait for them, as far as they can go now, and returns the time until the next call. The
// cancel mark of a run is no reason not to: nothing but these steps runs.
func (l *Launcher) runAllSteps(ctx context.Context) (next time.Duration, err error) {
	all, err := l.deps.Docs.Always().All(ctx, l.deps.Docs.Store)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	var errs []error
	for _, p := range all {
		if p.Engine != l.settings.Engine {
			continue
		}
		open, err := l.advanceSteps(ctx, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("run the steps at the end of %s/%d: %w", p.Run, p.Attempt, err))
		}
		if open {
			next = stepsPollInterval
		}
	}
	return next, errors.Join(errs...)
}

// advanceSteps takes the steps of one attempt further, and reports whether they are open. Once they are not, it removes what is left of
// them.
func (l *Launcher) advanceSteps(ctx context.Context, p always.PendingEnd) (open bool, err error) {
	key := slots.AttemptKey{Run: p.Run, Attempt: p.Attempt}
	plan, err := l.deps.Docs.Plan(ctx, key)
	if err != nil {
		return false, err
	}
	_, known, err := l.deps.Docs.Always().Results(ctx, p.Run, p.Attempt)
	switch {
	case err != nil:
		return false, err
	case known:
		return false, l.discardSteps(ctx, p, plan)
	case plan == nil || plan.mainPod() == nil:
		return false, l.storeResults(ctx, p, notRun(p.Steps, "the platform has lost the plan of the attempt"))
	}
	return true, l.runSteps(ctx, p, *plan, key)
}

// runSteps takes the steps of an attempt with a plan further.
func (l *Launcher) runSteps(ctx context.Context, p always.PendingEnd, plan Plan, key slots.AttemptKey) error {
	s, err := l.observeSteps(ctx, p, plan, key)
	if err != nil {
		return err
	}
	switch do := decideSteps(s, plan.needsOf); {
	case do.Stop:
		return l.deps.Cluster.Stop(ctx, plan.Ref())
	case do.Make != nil:
		return l.makeSteps(ctx, p, plan, do.Make)
	case do.Results != nil:
		return l.storeResults(ctx, p, *do.Results)
	}
	return nil
}

// needsOf returns the steps that a step at the end of the attempt needs.
func (p Plan) needsOf(step string) []string {
	for _, c := range p.mainPod().InitContainers {
		if c.Name == cluster.ContainerStep+step {
			return always.Needs(c)
		}
	}
	return nil
}

// observeSteps returns what is known of the pods that run the steps of an attempt. It notes that a pod was made for them, if a crash has
// prevented that.
func (l *Launcher) observeSteps(ctx context.Context, p always.PendingEnd, plan Plan, key slots.AttemptKey) (s stepsState, err error) {
	s = stepsState{
		All: plan.alwaysSteps(), Steps: p.Steps, Ended: p.Ended, Now: l.deps.Clock(), Since: p.Since, Lost: lostPod,
		Pending: cmp.Or(plan.PendingDeadline, maxStepsPending),
	}
	s.Longest = s.Pending + l.planner.Pods.MaxTermination() + plan.stepDeadline(plan.alwaysSteps()) + maxTerminationWait
	if s.First, err = l.observeIfPresent(ctx, plan.Ref()); err != nil {
		return s, err
	}
	if s.Own, err = l.observeIfPresent(ctx, plan.alwaysRef()); err != nil {
		return s, err
	}
	made, _, found, err := store.Find[alwaysPod](ctx, l.deps.Docs.Store, kindAlwaysPod, key.DocKey())
	if err != nil {
		return s, fmt.Errorf("look whether a pod was made: %w", err)
	}
	if s.Made = made.Made; !found && s.Own.Job != nil {
		s.Made = s.Now
		return s, l.noteMade(ctx, key)
	}
	return s, nil
}

func (l *Launcher) observeIfPresent(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	seen, err := l.deps.Cluster.Observe(ctx, r)
	if errors.Is(err, cluster.ErrNotFound) {
		return cluster.Snapshot{}, nil
	}
	if err != nil {
		return cluster.Snapshot{}, fmt.Errorf("look at %s: %w", r.Job, err)
	}
	return seen, nil
}

// noteMade stores that a pod was made for the steps of an attempt.
func (l *Launcher) noteMade(ctx context.Context, key slots.AttemptKey) error {
	err := store.Create(ctx, l.deps.Docs.Store, kindAlwaysPod, key.DocKey(), alwaysPod{Made: l.deps.Clock().UTC()})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note that a pod was made: %w", err)
	}
	return nil
}

// makeSteps creates the objects of a pod for steps, unless the watcher has seen them run in a pod that is gone by now. If the cluster
// refuses the objects, the steps do not run.
func (l *Launcher) makeSteps(ctx context.Context, p always.PendingEnd, plan Plan, steps []string) error {
	if _, known, err := l.deps.Docs.Always().Results(ctx, p.Run, p.Attempt); err != nil || known {
		return err
	}
	d, faults := l.planner.Parse(plan.Run)
	if faults.Err() != nil {
		return l.storeResults(ctx, p, notRun(steps, "this executor cannot read the descriptor: "+faults.Err().Error()))
	}
	objects, err := l.stepObjects(plan, d, steps)
	if err != nil {
		return err
	}
	own := plan
	own.Job = plan.alwaysRef().Job
	_, err = l.createInOrder(ctx, own, objects)
	if refused, ok := errors.AsType[*cluster.RefusedError](err); ok {
		if err := l.deps.Cluster.Delete(ctx, plan.alwaysRef()); err != nil {
			return err
		}
		return l.storeResults(ctx, p, notRun(steps, refused.Error()))
	}
	if err != nil {
		return err
	}
	l.deps.Log.Info("a pod is made for steps that always run", zap.String("run", p.Run),
		zap.Int("attempt", p.Attempt), zap.Strings("steps", steps))
	return l.noteMade(ctx, slots.AttemptKey{Run: p.Run, Attempt: p.Attempt})
}

func (l *Launcher) stepObjects(plan Plan, d *descriptors.Descriptor, steps []string) ([]cluster.Object, error) {
	secrets, err := l.buildSecrets(plan, d)
	if err != nil {
		return nil, err
	}
	return alwaysObjects(plan, secrets, steps), nil
}

func notRun(steps []string, why string) always.Results {
	var r always.Results
	for _, name := range steps {
		r.Steps = append(r.Steps, always.StepResult{Name: name, NotRun: why})
	}
	return r
}

// storeResults stores what became of the steps of an attempt, with which the watcher publishes its end.
func (l *Launcher) storeResults(ctx context.Context, p always.PendingEnd, r always.Results) error {
	l.deps.Log.Info("steps that always run are done", zap.String("run", p.Run), zap.Int("attempt", p.Attempt),
		zap.String("not_run", r.NotRun()))
	return l.deps.Docs.Always().PutResults(ctx, p, r)
}

// discardSteps deletes the objects that were made for the steps of an attempt and, once they are gone and the end is published, the
// document of its end.
func (l *Launcher) discardSteps(ctx context.Context, p always.PendingEnd, plan *Plan) error {
	if plan != nil {
		if err := l.deps.Cluster.Delete(ctx, plan.alwaysRef()); err != nil {
			return err
		}
		seen, err := l.observeIfPresent(ctx, plan.alwaysRef())
		if err != nil || seen.Job != nil || len(seen.Pods) > 0 {
			return err
		}
	}
	run, err := l.deps.Docs.Run(ctx, p.Run)
	if err != nil || run.ID != "" && run.Phase != event.PhaseFinished && run.Attempt <= p.Attempt {
		return err
	}
	return l.deps.Docs.Always().Remove(ctx, p)
}
