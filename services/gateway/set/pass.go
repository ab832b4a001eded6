package set

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// errFenced reports that another gateway runs sets now.
var errFenced = errors.New("another gateway runs sets now")

// pass is one pass over the open sets.
type pass struct {
	*Runner

	now   time.Time
	all   bool            // read all active runs
	noted map[string]bool // runs to read in any case
}

// reconcile brings one set forward, as it was found in the store, and reports whether it has
// more to do at once. What it has found out before an error is written all the same.
func (p pass) reconcile(ctx context.Context, id string, s Set, found bool) (more bool, err error) {
	if !found || s.State == StateFinished {
		if err := p.notify(ctx, s); err != nil {
			return false, err
		}
		if closed, err := p.docs.close(ctx, id, p.now); err != nil || !closed {
			return false, err
		}
		p.forget(id)
		p.rollups.queue.Add(id) // a process that has ended may have left some of it
		return false, nil
	}
	if s.Fence > p.lease.Fence {
		p.leader.Invalidate()
		return false, errFenced
	}
	l, err := p.plans.get(ctx, s)
	if err != nil {
		return false, err
	}
	o := observer{pass: p, set: s, loaded: l, observation: observation{
		Submitted: make(map[int]string), Withdrawn: make(map[int]bool), Canceled: make(map[int]bool), Ended: make(map[int]ending),
		Invalid: l.invalid, Plan: l.plan, Cells: make(map[int]cellDecision),
	}}
	observeErr := o.observe(ctx)
	if observeErr == nil {
		observeErr = o.observeCells(ctx)
	}
	next, changed := decide(s, o.observation, p.now)
	if !changed {
		return false, observeErr
	}
	more, err = p.save(ctx, next)
	return more && observeErr == nil, errors.Join(observeErr, err)
}

// save writes a set, and reports whether another pass has more to do at once. If a request
// has changed the set in the meantime, another pass repeats this one, with the same effects.
func (p pass) save(ctx context.Context, s Set) (more bool, err error) {
	s.Fence = p.lease.Fence
	_, err = store.Replace(ctx, p.store, store.KindSet, s.ID, s.Version, s)
	if errors.Is(err, store.ErrConflict) {
		p.full = time.Time{}
		return true, nil
	}
	if err != nil {
		return false, err
	}
	p.changes.send()
	p.rollups.queue.Add(s.ID)
	if s.State == StateFinished {
		p.log.Info("set finished", zap.String("set", s.ID), zap.String("outcome", string(s.Outcome)),
			zap.Int("succeeded", s.Counts.Succeeded), zap.Int("failed", s.Counts.Failed), zap.Int("canceled", s.Counts.Canceled))
	}
	return s.State != StateFinished, nil
}

// observer looks at the active runs of one set, and submits or cancels them.
type observer struct {
	pass
	loaded
	observation

	set Set
}

// observe submits the active runs that are not submitted yet, or withdraws them if the set
// submits no more, and looks at the others. It stops at the first error.
func (o *observer) observe(ctx context.Context) error {
	for _, a := range o.set.Active {
		var err error
		switch {
		case a.Run == "" && o.set.State != StateRunning:
			err = o.withdraw(ctx, a)
		case a.Run == "" && o.invalid == "": // else the set stops
			err = o.submit(ctx, a)
		case a.Run != "" && (o.all || o.noted[a.Run] || o.set.State == StateCanceling && !a.Canceled):
			err = o.look(ctx, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withdraw has a run not be made. One that another pass has begun to submit is submitted; if
// the set has no plan any more, that needs to be the case already.
func (o *observer) withdraw(ctx context.Context, a ActiveRun) error {
	w, err := o.submitter.Withdraw(ctx, o.set.ID, runKey(a.Ordinal), o.set.Resumes)
	switch {
	case err != nil:
		return fmt.Errorf("withdraw run %d: %w", a.Ordinal, err)
	case w.Run != "" && o.invalid == "":
		return o.submit(ctx, a)
	case w.Made:
		o.Submitted[a.Ordinal] = w.Run
		o.note(w.Run)
		return nil
	}
	o.Withdrawn[a.Ordinal] = true
	return nil
}

// submit submits a run. A run that is refused has ended.
func (o *observer) submit(ctx context.Context, a ActiveRun) error {
	acc, err := o.submitter.Submit(ctx, o.submission(o.set, a.Ordinal))
	var (
		invalid     *submit.InvalidError
		unsupported *submit.UnsupportedError
	)
	switch {
	case err == nil:
		o.Submitted[a.Ordinal] = acc.Run
		o.note(acc.Run) // it may end before its ID is stored
		return nil
	case errors.As(err, &invalid), errors.As(err, &unsupported):
		o.log.Warn("run refused", zap.String("set", o.set.ID), zap.Int("ordinal", a.Ordinal), zap.Error(err))
		r := o.run(a.Ordinal)
		o.Ended[a.Ordinal] = ending{
			Outcome: event.Failed, Class: event.ClassUser, Cell: o.plan.Cell(r.Cell).Name, Repetition: r.Repetition,
			Warmup: r.Warmup, Message: err.Error(),
		}
		return nil
	}
	return fmt.Errorf("submit run %d: %w", a.Ordinal, err)
}

// look notes whether a run has ended, and cancels an unfinished run of a set that is being
// canceled.
func (o *observer) look(ctx context.Context, a ActiveRun) error {
	run, err := o.store.Run(ctx, a.Run)
	if errors.Is(err, store.ErrNotFound) {
		run, err = o.submittedRun(ctx, a.Run)
	}
	switch {
	case err != nil:
		return fmt.Errorf("look at run %s: %w", a.Run, err)
	case run.Phase == event.PhaseFinished:
		o.Ended[a.Ordinal] = ending{
			Outcome: run.Outcome, Class: run.Class, Cell: run.Cell, Repetition: run.Repetition, Warmup: run.Warmup,
			Message: run.Message, Time: timeOf(run),
		}
		return nil
	case o.set.State != StateCanceling || a.Canceled:
		return nil
	}
	if err := o.submitter.Cancel(ctx, run, o.set.CanceledBy); err != nil {
		return fmt.Errorf("cancel run %s: %w", a.Run, err)
	}
	o.Canceled[a.Ordinal] = true
	return nil
}

// submittedRun returns a run that was just submitted and has no projection yet. A run
// whose records were removed has finished, and counts as failed.
func (o *observer) submittedRun(ctx context.Context, id string) (store.Run, error) {
	sub, _, err := store.Get[event.Submitted](ctx, o.store, store.KindSubmission, id)
	if err != nil {
		return store.Run{}, err
	}
	run := store.Run{ID: sub.Run, Namespace: sub.Namespace, Owner: sub.Owner, Lineage: sub.Lineage}
	gone, err := store.RunForgotten(ctx, o.store, id)
	if gone {
		run.Phase, run.Outcome, run.Class = event.PhaseFinished, event.Failed, event.ClassPlatform
		run.Message = "the records of the run were removed from the store"
	}
	return run, err
}
