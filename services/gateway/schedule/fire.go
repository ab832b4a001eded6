package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// lockRetryInterval is how long whoever has a schedule's turn is waited for at a time.
const lockRetryInterval = 100 * time.Millisecond

// reconciler is one schedule while it fires.
type reconciler struct {
	*Schedules

	schedule Schedule
	firings  storedFiringLog
	state    State
	changed  bool
}

// reconcile fires what is due, and goes on with the first of the backfills.
func (f *reconciler) reconcile(ctx context.Context, backfills []Backfill) (wake time.Time, err error) {
	due := false
	if !f.schedule.Paused {
		due, wake = Due(f.state)
	}
	if !due && len(backfills) == 0 {
		return wake, nil
	}
	unlock, err := f.lockSchedule(ctx, f.schedule)
	if errors.Is(err, store.ErrHeld) {
		return f.state.Now.Add(lockRetryInterval), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	defer unlock()
	err = f.loadActive(ctx)
	if err == nil && due {
		wake, err = f.fire(ctx)
	}
	if err == nil && len(backfills) > 0 {
		err = f.advanceBackfill(ctx, backfills[0])
	}
	if saveErr := f.saveFirings(ctx); err == nil {
		err = saveErr
	}
	return wake, err
}

// loadActive finds the runs that go on: those that the ledger has, and those that
// were asked for beside it.
func (f *reconciler) loadActive(ctx context.Context) error {
	active, ended, err := f.activeRuns(ctx, f.schedule.ID, f.firings.FiringLog)
	if err != nil {
		return err
	}
	f.state.Active = active
	records := slices.Clone(f.firings.Records)
	for i, r := range records {
		if r.Open && slices.Contains(ended, r.Run) {
			records[i].Open, f.changed = false, true
		}
	}
	f.firings.Records = records
	return nil
}

// activeRuns returns the runs of a schedule that are not over, oldest firing first,
// and those of the ledger that are.
func (k *Schedules) activeRuns(ctx context.Context, id string, l FiringLog) (active []ActiveRun, ended []string, err error) {
	for _, r := range l.Records {
		if !r.Open {
			continue
		}
		run, err := k.store.Run(ctx, r.Run)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // not known yet: it was just submitted
			return nil, nil, err
		}
		if run.Phase == event.PhaseFinished {
			ended = append(ended, r.Run)
			continue
		}
		active = append(active, ActiveRun{Run: r.Run, Time: r.Time, Reported: r.Reported})
	}
	phases := event.Phases()
	runs, _, err := k.store.Runs(ctx, store.RunFilter{Schedule: id, Phases: phases[:len(phases)-1], Oldest: true}, "", page)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range runs {
		listed := slices.ContainsFunc(active, func(g ActiveRun) bool { return g.Run == run.ID }) || slices.Contains(ended, run.ID)
		if !listed && run.Firing != nil {
			active = append(active, ActiveRun{Run: run.ID, Time: *run.Firing, Reported: true})
		}
	}
	active, err = k.withTriggers(ctx, id, active)
	return active, ended, err
}

// fire carries out what is decided, as far as that goes.
func (f *reconciler) fire(ctx context.Context) (wake time.Time, err error) {
	decision := Decide(f.state)
	for _, late := range decision.Overdue {
		if err := f.publishMissed(ctx, late.Run, late.Time, 1, NotEnded, fmt.Sprintf("run %s had not ended when its schedule was to fire again", late.Run)); err != nil {
			return time.Time{}, err
		}
		f.markOverdue(late.Run)
	}
	for _, result := range decision.Results {
		if err := f.apply(ctx, result); err != nil {
			return time.Time{}, err
		}
		f.firings.Until, f.changed = later(result.Time, result.Last), true
	}
	return decision.Wake, nil
}

// apply carries out the fate of a firing.
func (f *reconciler) apply(ctx context.Context, result FiringResult) error {
	if result.Reason != "" {
		return f.skipFirings(ctx, result)
	}
	for _, run := range result.Cancel {
		if err := f.cancelRun(ctx, run); err != nil {
			return err
		}
	}
	run, refused, err := f.submitAt(ctx, result.Time)
	if err != nil {
		return err
	}
	if refused != "" {
		result.Reason, result.Message = Refused, refused
		return f.skipFirings(ctx, result)
	}
	f.addRecord(Record{Time: result.Time, Run: run, Open: true})
	return nil
}

// cancelRun cancels a run that another takes the place of.
func (f *reconciler) cancelRun(ctx context.Context, id string) error {
	run, err := f.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		run, err = f.loadSubmission(ctx, id)
	}
	if err != nil || run.Phase == event.PhaseFinished {
		return err
	}
	return f.submitter.Cancel(ctx, run, "schedule "+f.schedule.ID)
}

// loadSubmission returns what is known of a run that was just submitted.
func (k *Schedules) loadSubmission(ctx context.Context, id string) (store.Run, error) {
	sub, _, err := store.Get[event.Submitted](ctx, k.store, store.KindSubmission, id)
	if err != nil {
		return store.Run{}, fmt.Errorf("look for run %s: %w", id, err)
	}
	return store.Run{ID: sub.Run, Namespace: sub.Namespace, Owner: sub.Owner, Lineage: sub.Lineage}, nil
}

// submitAt makes the run of a firing, or says why there can be none.
func (f *reconciler) submitAt(ctx context.Context, at time.Time) (run, refused string, err error) {
	e, err := f.loadEdition(ctx, f.schedule)
	if err != nil {
		return "", "", err
	}
	return f.Schedules.submitFiring(ctx, e.request(f.schedule, FiringKey(at), at))
}

func (k *Schedules) submitFiring(ctx context.Context, req submit.Request) (run, refused string, err error) {
	acc, err := k.submitter.Submit(ctx, req)
	var (
		invalid     *submit.InvalidError
		unsupported *submit.UnsupportedError
	)
	switch {
	case err == nil:
		return acc.Run, "", nil
	case errors.As(err, &invalid), errors.As(err, &unsupported):
		return "", err.Error(), nil
	}
	return "", "", fmt.Errorf("fire for %s: %w", req.Firing.Time.Format(time.RFC3339), err)
}

func (k *Schedules) loadEdition(ctx context.Context, s Schedule) (edition, error) {
	e, _, err := store.Get[edition](ctx, k.store, store.KindScheduleVersion, editionKey(s.ID, s.Version, s.Digest))
	if err != nil {
		return edition{}, fmt.Errorf("read version %d of the descriptor: %w", s.Version, err)
	}
	return e, nil
}

// skipFirings says of firings that they have no run.
func (f *reconciler) skipFirings(ctx context.Context, result FiringResult) error {
	if err := f.publishMissed(ctx, "", result.Time, result.Count, result.Reason, result.Message); err != nil {
		return err
	}
	f.addRecord(Record{Time: result.Time, Last: result.Last, Count: result.Count, Reason: result.Reason, Message: result.Message})
	return nil
}

// publishMissed says ScheduleMissed. What is said again has the same ID.
func (f *reconciler) publishMissed(ctx context.Context, run string, at time.Time, count int, reason event.Reason, message string) error {
	s := f.schedule
	h := event.NewHeader(event.Derive("schedule-missed", s.ID, FiringKey(at), string(reason)), s.ID, s.Namespace, s.Owner, at.UTC())
	h.Schedule, h.Firing = s.ID, &at
	if count > 1 {
		message = fmt.Sprintf("%d firings, the first for %s: %s", count, s.Rules.formatTime(at), message)
	}
	f.log.Warn("schedule missed", zap.String("schedule", s.ID), zap.Time("firing", at), zap.String("run", run), zap.String("reason", string(reason)))
	return f.bus.Publish(ctx, event.Status{Header: h, Phase: event.PhaseSubmitted, Reason: event.ScheduleMissed, Message: message})
}
