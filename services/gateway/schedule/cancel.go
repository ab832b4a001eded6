package schedule

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Canceled is what one page of a cancel has canceled.
type Canceled struct {
	Runs, Sets int
	Next       string // token of the next page; empty after the last one
}

// CancelPage cancels the runs and sets of a deleted schedule that have not ended and are
// not being canceled, a page of them. Token "" is the first page, which has all sets, and
// the runs without a projection. It can be repeated. It cancels nothing of a schedule that
// does not exist or was submitted again. The error is store.ErrCursor for a token that
// CancelPage did not return.
func (k *Schedules) CancelPage(ctx context.Context, owner, ref, token, by string) (Canceled, error) {
	s, _, found, err := store.Find[Schedule](ctx, k.docs.store, store.KindSchedule, refID(owner, ref))
	if err != nil || !found || s.Deleted.IsZero() {
		return Canceled{}, err
	}
	var page Canceled
	if token == "" {
		if page, err = k.cancelLogged(ctx, s, by); err != nil {
			return page, err
		}
	}
	phases := slices.DeleteFunc(event.Phases(), func(p event.Phase) bool { return p == event.PhaseCanceling || p == event.PhaseFinished })
	all, next, err := k.docs.store.Runs(ctx, store.RunFilter{Schedule: s.ID, Phases: phases, Oldest: true}, token, maxOpenRuns)
	if err != nil {
		return page, err
	}
	for _, run := range all {
		if err := k.runs.submitter.Cancel(ctx, run, by); err != nil {
			return page, err
		}
		page.Runs++
	}
	page.Next = next
	k.log.Info("schedule canceled", zap.String("schedule", s.ID), zap.Int("runs", page.Runs),
		zap.Int("sets", page.Sets), zap.String("by", by))
	return page, nil
}

// cancelLogged cancels the sets of a schedule, and the runs that only its logs have.
func (k *Schedules) cancelLogged(ctx context.Context, s Schedule, by string) (page Canceled, err error) {
	if page.Sets, err = k.cancelSets(ctx, s, by); err != nil {
		return page, err
	}
	l, _, _, err := store.Find[firingLog](ctx, k.docs.store, store.KindFirings, s.ID)
	if err != nil {
		return page, err
	}
	active, _, err := k.runs.active(ctx, s.ID, l)
	if err != nil {
		return page, err
	}
	for _, one := range active {
		if one.Run == "" || !k.isUnrecorded(ctx, one.Run) {
			continue
		}
		done, err := k.cancelUnrecorded(ctx, one.Run, by)
		if err != nil {
			return page, err
		}
		if done {
			page.Runs++
		}
	}
	return page, nil
}

// cancelSets cancels the unfinished sets of a schedule, and returns how many were not
// canceled before.
func (k *Schedules) cancelSets(ctx context.Context, s Schedule, by string) (canceled int, err error) {
	sets, err := k.runs.setsOf(ctx, s.ID)
	if err != nil {
		return 0, err
	}
	for _, one := range sets {
		if one.set.State == set.StateFinished || one.set.State == set.StateCanceling {
			continue
		}
		if _, err := k.runs.sets.Cancel(ctx, "", one.Set, by); err != nil {
			return canceled, err
		}
		canceled++
	}
	return canceled, nil
}

// cancelUnrecorded cancels a run without a projection, and reports whether it was not
// canceled before.
func (k *Schedules) cancelUnrecorded(ctx context.Context, id, by string) (done bool, err error) {
	canceled, err := store.Canceled(ctx, k.docs.store, id)
	if err != nil || canceled {
		return false, err
	}
	run, err := k.runs.submitted(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil // it is in the outbox
	}
	if err != nil {
		return false, err
	}
	return true, k.runs.submitter.Cancel(ctx, run, by)
}
