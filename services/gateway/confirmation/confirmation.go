// Package confirmation makes the runs that confirm incidents, which the analyst asks for.
//
// # Order of the writes
//
//   - The analyst writes KindConfirmation: which two runs are repeated, how often, and for which incidents.
//   - A pass of the Runner looks at the run that goes on, submits the next one once it has ended, and writes KindConfirmationRuns. A run is
//     submitted under a key made of the request, its side and its ordinal (see package submit), so that a process that is killed before
//     the write submits the same run again, which is the same run.
//   - Once no incident waits for the runs, the run that goes on is canceled, KindConfirmationRuns is deleted, and then KindConfirmation. If
//     an incident asks for the runs again before that, the deletion fails, and the same runs are found again under their keys.
//
// Only one process makes runs at a time, the holder of a lease. A process that lost the lease without noticing submits at most the same
// runs, and its write fails.
package confirmation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	leaseName = "confirmations"
	leaseTime = 15 * time.Second
	interval  = 5 * time.Second // between two looks at the runs; the end of a run is looked at at once
)

// Store has requests and runs.
type Store interface {
	store.Docs
	store.Lister
	runReader
	costReader
}

// costReader reads what runs cost.
type costReader interface {
	// RunPoints is that of store.PointReader.
	RunPoints(ctx context.Context, runs, metrics []string) ([]store.RunPoints, error)
}

// runReader reads runs.
type runReader interface {
	// Run is that of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
}

// Submitter accepts the runs.
type Submitter interface {
	// Submit does the same as submit.Submitter.Submit.
	Submit(ctx context.Context, req submit.Request) (submit.Accepted, error)
	// Cancel does the same as submit.Submitter.Cancel.
	Cancel(ctx context.Context, run store.Run, by string) error
	// RunToConfirm does the same as submit.Submitter.RunToConfirm.
	RunToConfirm(ctx context.Context, confirmation, key string) (run string, err error)
}

// Deps are the dependencies of a Runner.
type Deps struct {
	Store     Store
	Submitter Submitter
	Holder    string // name of this process as holder of the lease
	Now       func() time.Time
	Log       *zap.Logger
}

// Runner makes the runs of confirmations while it holds the lease.
type Runner struct {
	deps   Deps
	loop   *control.Loop
	leader *control.Leader
}

// NewRunner returns a Runner.
func NewRunner(d Deps) *Runner {
	r := &Runner{deps: d, leader: control.NewLeader(d.Store, leaseName, d.Holder, leaseTime,
		control.LeaderSettings{Now: d.Now, Log: d.Log})}
	r.loop = control.NewLoop("confirmations", interval, d.Log, r.work, control.LoopSettings{
		Failing: "runs that confirm incidents wait", Working: "runs that confirm incidents go on",
	})
	return r
}

// Run makes runs while this process holds the lease, until ctx is done.
func (r *Runner) Run(ctx context.Context) error {
	defer r.leader.Release(ctx)
	return r.loop.Run(ctx)
}

// RunEnded makes the Runner look soon at a run that has ended. It ignores runs that confirm nothing. The Runner finds out in any case.
func (r *Runner) RunEnded(run store.Run) {
	if run.Confirms != "" {
		r.loop.Wake()
	}
}

func (r *Runner) work(ctx context.Context) (time.Duration, error) {
	err := r.Reconcile(ctx)
	if errors.Is(err, store.ErrHeld) {
		return 0, nil
	}
	return 0, err
}

// Reconcile is one pass over all requests. It renews the lease between two of them. The error is store.ErrHeld while another process makes
// runs. Only one goroutine at a time may call it.
func (r *Runner) Reconcile(ctx context.Context) error {
	var errs []error
	for d, err := range store.All[confirm.Request](ctx, r.deps.Store, store.KindConfirmation, "") {
		switch {
		case err != nil && d.Key == "":
			return errors.Join(append(errs, err)...)
		case err != nil:
			r.deps.Log.Error("a request for runs that confirm an incident cannot be read", zap.String("request", d.Key), zap.Error(err))
			continue
		}
		if _, err := r.leader.Hold(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if err := r.advance(ctx, d.Key); err != nil {
			errs = append(errs, fmt.Errorf("confirmation %s: %w", d.Key, err))
		}
	}
	return errors.Join(errs...)
}

// advance brings one request forward. A list may show one that was deleted, or an earlier version: it is read again.
func (r *Runner) advance(ctx context.Context, key string) error {
	req, at, found, err := store.Find[confirm.Request](ctx, r.deps.Store, store.KindConfirmation, key)
	if err != nil || !found {
		return err
	}
	d := store.Document[confirm.Request]{Key: key, Version: at, Value: req}
	p, version, _, err := store.Find[confirm.Progress](ctx, r.deps.Store, store.KindConfirmationRuns, key)
	if err != nil {
		return err
	}
	next := confirm.Progress{Runs: slices.Clone(p.Runs), Done: p.Done, Gaps: p.Gaps}
	changed, err := r.look(ctx, &next)
	if err != nil {
		return err
	}
	costs, err := r.costs(ctx, d.Value, next)
	if err != nil {
		return err
	}
	plan := confirm.Decide(d.Value, next, costs, r.deps.Now())
	switch {
	case plan.Close:
		return r.close(ctx, d, next)
	case plan.Ordinal >= 0:
		if next, err = r.submit(ctx, d.Value, next, plan.Ordinal); err != nil {
			return err
		}
		next.Gaps = withGaps(next.Gaps, confirm.UnknownCost(d.Value, costs))
		changed = true
	case plan.Done != next.Done:
		next.Done, changed = plan.Done, true
	}
	if !changed {
		return nil
	}
	return r.save(ctx, d.Key, version, next)
}

// save writes how far a request has come. If another process did so meanwhile, a later pass decides again.
func (r *Runner) save(ctx context.Context, key string, version int64, p confirm.Progress) error {
	var err error
	if version == 0 {
		err = store.Create(ctx, r.deps.Store, store.KindConfirmationRuns, key, p)
	} else {
		_, err = store.Replace(ctx, r.deps.Store, store.KindConfirmationRuns, key, version, p)
	}
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) {
		r.leader.Invalidate()
	}
	return err
}

// look notes whether the run that goes on has ended.
func (r *Runner) look(ctx context.Context, p *confirm.Progress) (changed bool, err error) {
	for n, one := range p.Runs {
		if one.State != confirm.Running {
			continue
		}
		run, err := r.runOf(ctx, one.Run)
		if err != nil {
			return changed, err
		}
		if run.Phase == event.PhaseFinished {
			p.Runs[n].State, p.Runs[n].Nodes, changed = confirm.StateOf(run.Outcome), nodesOf(run), true
		}
	}
	return changed, nil
}

// runOf returns a run that was submitted. One that was deleted has failed.
func (r *Runner) runOf(ctx context.Context, id string) (store.Run, error) {
	run, err := r.deps.Store.Run(ctx, id)
	if !errors.Is(err, store.ErrNotFound) {
		return run, err
	}
	sub, found, err := store.FindSubmission(ctx, r.deps.Store, id)
	if err != nil {
		return store.Run{}, err
	}
	if !found {
		return store.Run{ID: id, Phase: event.PhaseFinished, Outcome: event.Failed}, nil
	}
	return store.Run{ID: sub.Run, Namespace: sub.Namespace, Owner: sub.Owner, Lineage: sub.Lineage}, nil // its projection is to come
}

// submit submits a run. If it cannot be repeated, no further one is submitted.
func (r *Runner) submit(ctx context.Context, req confirm.Request, p confirm.Progress, ordinal int) (confirm.Progress, error) {
	id := req.New
	side := confirm.SideOf(req.ID, ordinal)
	if side == incident.SideOld {
		id = req.Old
	}
	run, err := r.deps.Store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		p.Done = fmt.Sprintf("run %s does not exist any more", id)
		return p, nil
	}
	if err != nil {
		return p, err
	}
	nodes, err := r.nodes(ctx, req, p, ordinal)
	if err != nil {
		return p, err
	}
	again, gaps := repetition(run, req, ordinal, nodes)
	acc, err := r.deps.Submitter.Submit(ctx, again)
	if err != nil {
		if p.Done = refusal(err); p.Done == "" {
			return p, fmt.Errorf("repeat run %s: %w", id, err)
		}
		p.Done = fmt.Sprintf("run %s cannot be repeated: %s", id, p.Done)
		return p, nil
	}
	r.deps.Log.Info("submitted to confirm", zap.String("run", acc.Run), zap.String("incident", req.First),
		zap.String("side", string(side)), zap.Int("ordinal", ordinal))
	for _, gap := range gaps {
		p.Gaps = withGaps(p.Gaps, fmt.Sprintf("%s edition: %s", side, gap))
	}
	p.Runs = append(p.Runs, confirm.SubmittedRun{Ordinal: ordinal, Run: acc.Run, State: confirm.Running})
	return p, nil
}

// nodes returns where a run is to be.
func (r *Runner) nodes(ctx context.Context, req confirm.Request, p confirm.Progress, ordinal int) (*event.NodePreference, error) {
	suspected, err := r.runOf(ctx, req.New)
	if err != nil {
		return nil, err
	}
	return preferenceOf(p.Nodes(ordinal, nodesOf(suspected))), nil
}

// costs returns what is known of the cost of the runs of a request that limits it.
func (r *Runner) costs(ctx context.Context, req confirm.Request, p confirm.Progress) (confirm.Costs, error) {
	if req.MaxCost == "" {
		return nil, nil //nolint:nilnil // without a limit nobody asks
	}
	ids := []string{req.Old, req.New}
	for _, one := range p.Runs {
		ids = append(ids, one.Run)
	}
	all, err := r.deps.Store.RunPoints(ctx, ids, []string{descriptors.CostAmount})
	if err != nil {
		return nil, fmt.Errorf("read what the runs cost: %w", err)
	}
	return costsOf(all), nil
}

// close cancels the run that goes on, and deletes both documents of a request.
func (r *Runner) close(ctx context.Context, d store.Document[confirm.Request], p confirm.Progress) error {
	unnoted, err := r.unnoted(ctx, d.Value, p)
	if err != nil {
		return err
	}
	for _, one := range append(p.Runs, unnoted...) {
		if one.State != confirm.Running {
			continue
		}
		run, err := r.runOf(ctx, one.Run)
		if err == nil && run.Phase != event.PhaseFinished {
			err = r.deps.Submitter.Cancel(ctx, run, "confirmation of incident "+d.Value.First)
		}
		if err != nil {
			return fmt.Errorf("cancel run %s: %w", one.Run, err)
		}
	}
	for _, doc := range []store.Doc{
		{Kind: store.KindConfirmationRuns, Key: d.Key},
		{Kind: store.KindConfirmation, Key: d.Key, Version: d.Version},
	} {
		if err := r.deps.Store.DeleteDoc(ctx, doc); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// unnoted returns the run that a process submitted before it was killed, if there is one.
func (r *Runner) unnoted(ctx context.Context, req confirm.Request, p confirm.Progress) ([]confirm.SubmittedRun, error) {
	req.Incidents = []string{req.First} // as if one waited
	p.Done = ""
	next := confirm.Decide(req, p, nil, time.Time{})
	if next.Ordinal < 0 {
		return nil, nil
	}
	id, err := r.deps.Submitter.RunToConfirm(ctx, req.ID, keyOf(req, next.Ordinal))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return []confirm.SubmittedRun{{Ordinal: next.Ordinal, Run: id, State: confirm.Running}}, err
}
