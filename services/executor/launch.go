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
	"github.com/benchmark-ai/bai/services/executor/transpile"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// launch creates the objects of who was given a slot, and says so. It goes on
// where a launch that was cut off has ended, fresh or not: every step is done
// once, however often it is tried.
func (a *admitter) launch(ctx context.Context, e Entry, fresh *Place) error {
	plan, again, err := a.plan(ctx, e, fresh)
	if err != nil {
		return err
	}
	if plan.Never {
		if err := a.drop(ctx, plan, e.Queue); err != nil {
			return err
		}
		a.tell(e.Holder, Gone)
		return nil
	}
	var (
		stop  reason
		since News
		uid   string
	)
	if again {
		if stop, err = a.stop(ctx, e); err != nil || stop == over {
			return err
		}
		if since, err = a.desk.since(ctx, e.Holder); err != nil {
			return err
		}
	}
	switch {
	case since == Ending: // it is over, and the one who knew died before the ledger did
		a.tell(e.Holder, Ending)
		return nil
	case since == Launched: // what is gone of it is not made anew: the watcher has heard of it
		uid, err = a.find(ctx, plan)
	case stop == no:
		uid, err = a.create(ctx, plan)
	}
	if refusal, ok := errors.AsType[*cluster.RefusedError](err); ok {
		return a.refuse(ctx, e, plan, refusal)
	}
	if err != nil {
		return err
	}
	return a.confirm(ctx, e, plan, uid)
}

// confirm says that a plan's objects were created. If meanwhile the run was
// canceled or ended they are deleted at once; of a canceled run the watcher
// hears all the same, since it is who says that its objects are gone.
func (a *admitter) confirm(ctx context.Context, e Entry, plan Plan, uid string) error {
	stop, err := a.stop(ctx, e)
	if err != nil {
		return err
	}
	if stop != no {
		if err := a.deps.Cluster.Delete(ctx, plan.ref()); err != nil {
			return fmt.Errorf("delete the objects of %s: %w", plan.Job, err)
		}
	}
	if stop == over {
		return nil
	}
	if err := a.deps.Bus.Publish(ctx, launched(plan, uid, a.settings)); err != nil {
		return err
	}
	if err := a.desk.dequeue(ctx, e.Queue); err != nil {
		return err
	}
	a.deps.Log.Info("launched", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
	a.tell(e.Holder, Launched)
	return nil
}

// plan returns the plan of who was given a slot, made now if there is none, and
// whether it was there before.
func (a *admitter) plan(ctx context.Context, e Entry, fresh *Place) (p Plan, again bool, err error) {
	if fresh == nil {
		was, err := a.desk.plan(ctx, e.Holder)
		if err != nil || was != nil {
			return deref(was), true, err
		}
		w, err := a.desk.waiting(ctx, e.Queue)
		if err != nil {
			return Plan{}, false, err
		}
		if w == nil {
			a.deps.Log.Error("neither plan nor queue knows of it", zap.String("run", e.Run), zap.Int("attempt", e.Attempt))
			return Plan{Never: true}, false, nil
		}
		fresh = &Place{Waiting: *w, Key: e.Queue}
	}
	facts, err := a.desk.facts(ctx, e.Holder)
	if err != nil || facts.Plan != nil {
		return deref(facts.Plan), true, err
	}
	if _, faults := parse(fresh.Run, a.settings); faults.Err() != nil { // a newer executor queued it
		_, err := a.desk.aside(ctx, fresh.Run, a.deps.Clock())
		return Plan{Never: true}, false, err
	}
	if !facts.Over && !facts.Canceled {
		if facts.Images, err = a.images(ctx, fresh.Run); err != nil {
			return Plan{}, false, err
		}
	}
	p, err = a.desk.settle(ctx, Settle(fresh.Run, facts, a.settings))
	return p, false, err
}

// images asks the registries of images that run by themselves. An attempt that
// follows another has the answers of that one, whatever they were.
func (a *admitter) images(ctx context.Context, run event.Fetched) ([]cluster.Image, error) {
	d, _ := parse(run, a.settings)
	if d == nil {
		return nil, nil
	}
	queries := transpile.Images(d, a.settings.Pods)
	if len(queries) == 0 {
		return nil, nil
	}
	before, err := a.desk.plan(ctx, Holder{Run: run.Run, Attempt: run.Attempt - 1})
	if err != nil || before != nil {
		return deref(before).Images, err
	}
	images := make([]cluster.Image, 0, len(queries))
	for _, q := range queries {
		image, err := a.deps.Images.Image(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("ask the registry of %s: %w", q.Name, err)
		}
		images = append(images, image)
	}
	return images, nil
}

func deref(p *Plan) Plan {
	if p == nil {
		return Plan{}
	}
	return *p
}

// reason is why a launch does not go on.
type reason int

const (
	no     reason = iota
	marked        // the run has a cancel mark
	over          // the run has ended, or the slot is not held any more
)

// stop looks whether a launch is to go on.
func (a *admitter) stop(ctx context.Context, e Entry) (reason, error) {
	ledger, _, err := a.desk.ledger(ctx)
	if err != nil {
		return no, err
	}
	if now, ok := ledger.entry(e.Holder); !ok || now.Ending {
		return over, nil
	}
	canceled, err := a.desk.canceled(ctx, e.Run)
	if err != nil || !canceled {
		return no, err
	}
	return marked, nil
}

// create creates the objects of a plan while the user is told, and returns the
// UID of its Job, empty where that is gone already.
func (a *admitter) create(ctx context.Context, p Plan) (uid string, err error) {
	if err := a.labels(ctx, p); err != nil {
		return "", err
	}
	secrets, err := a.secrets(p)
	if err != nil {
		return "", err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.deps.Bus.Publish(gctx, launching(p, a.settings)) })
	g.Go(func() (err error) {
		uid, err = a.build(gctx, p, p.objects(secrets))
		return err
	})
	if err := g.Wait(); err != nil || uid != "" {
		return uid, err
	}
	return a.find(ctx, p)
}

// labels refuses a plan whose descriptor names an object that its labels do not
// allow it to name.
func (a *admitter) labels(ctx context.Context, p Plan) error {
	d, faults := parse(p.Run, a.settings)
	if err := faults.Err(); err != nil {
		return fmt.Errorf("read the descriptor of %s once more: %w", p.Job, err)
	}
	for _, r := range byLabel(p.Run, d, a.settings) {
		has, err := a.deps.Cluster.Labels(ctx, string(r.Kind), p.Scope, r.Name)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
		if err := checkLabels(p.Run, r, has, a.settings); err != nil {
			return err
		}
	}
	return nil
}

// find returns the UID of the Job of a plan that was created before, empty where
// it is gone already.
func (a *admitter) find(ctx context.Context, p Plan) (string, error) {
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

// secrets makes the Secrets of a plan, which are kept nowhere.
func (a *admitter) secrets(p Plan) (all []*corev1.Secret, err error) {
	d, faults := parse(p.Run, a.settings)
	if err := faults.Err(); err != nil {
		return nil, fmt.Errorf("read the descriptor of %s once more: %w", p.Job, err)
	}
	in := transpile.Input{Run: p.Run, Descriptor: d, Images: p.Images}
	if d.Hardware.Strategy == descriptors.MPI {
		// Should they have been made before, those that are there stay: nothing
		// but their Secret, which all of the pods mount, knows of them.
		if in.Keys, err = newKeys(); err != nil {
			return nil, err
		}
	}
	return transpile.Secrets(in, a.settings.Pods, a.deps.Token(p.Run.Run))
}

// refuse ends a run whose objects the cluster will not have, and takes back
// those that it took.
func (a *admitter) refuse(ctx context.Context, e Entry, p Plan, refusal error) error {
	if err := a.deps.Cluster.Delete(ctx, p.ref()); err != nil {
		return fmt.Errorf("delete the objects of %s: %w", p.Job, err)
	}
	if err := a.deps.Bus.Publish(ctx, refused(p.Run.Header, refusal)); err != nil {
		return err
	}
	if err := a.desk.dequeue(ctx, e.Queue); err != nil {
		return err
	}
	a.deps.Log.Info("refused", zap.String("run", e.Run), zap.Error(refusal))
	a.tell(e.Holder, Ending)
	return nil
}

// release deletes the objects of an attempt that is over, and when they are
// gone has its slot freed.
func (a *admitter) release(ctx context.Context, e Entry) error {
	plan, err := a.desk.plan(ctx, e.Holder)
	if err != nil {
		return err
	}
	if plan == nil || plan.Never { // nothing was created
		a.tell(e.Holder, Gone)
		return nil
	}
	kept, err := a.keep(ctx, e, *plan)
	if err != nil {
		return err
	}
	if kept {
		a.tell(e.Holder, Gone)
		return nil
	}
	return a.clear(ctx, e.Holder, plan.ref())
}

// clear deletes the objects of an attempt, and frees its slot when they are gone.
// As long as they are not, it asks for that from time to time: a node that is
// lost never says that what ran on it has ended.
func (a *admitter) clear(ctx context.Context, h Holder, r cluster.Ref) error {
	var next time.Time
	for wait := a.settings.soon(); ; wait = min(2*wait, a.settings.Poll) {
		if now := a.deps.Clock(); !now.Before(next) {
			if err := a.deps.Cluster.Delete(ctx, r); err != nil {
				return fmt.Errorf("delete the objects of %s: %w", r.Job, err)
			}
			next = now.Add(a.settings.Reconcile)
		}
		_, err := a.deps.Cluster.Observe(ctx, r)
		if errors.Is(err, cluster.ErrNotFound) {
			a.tell(h, Gone)
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

// look sees whether a gang has all its nodes, so that the next one may go.
func (a *admitter) look(ctx context.Context, e Entry) error {
	plan, err := a.desk.plan(ctx, e.Holder)
	if err != nil || plan == nil {
		return err
	}
	seen, err := a.deps.Cluster.Observe(ctx, plan.ref())
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return fmt.Errorf("look at the pods of %s: %w", plan.Job, err)
	}
	if placed(seen, e.Pods) {
		a.tell(e.Holder, Placed)
	}
	return nil
}
