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

// lockRetryInterval is the time until the next try if another process holds a
// schedule's lock.
const lockRetryInterval = 100 * time.Millisecond

// reconciler fires one schedule.
type reconciler struct {
	*Runner

	schedule Schedule
	firings  storedFiringLog
	state    state
	changed  bool
}

// reconcile makes the due firings, and continues the first of the backfills.
func (f *reconciler) reconcile(ctx context.Context, backfills []Backfill) (wake time.Time, err error) {
	due := false
	if !f.schedule.Paused {
		due, wake = isDue(f.state)
	}
	if !due && len(backfills) == 0 {
		return wake, nil
	}
	err = f.runs.alone(ctx, f.schedule, func(ctx context.Context) (err error) {
		if err = f.loadActive(ctx); err == nil && due {
			wake, err = f.fire(ctx)
		}
		if err == nil && len(backfills) > 0 {
			err = f.advanceBackfill(ctx, backfills[0])
		}
		if saveErr := f.save(ctx); err == nil {
			err = saveErr
		}
		return err
	})
	if errors.Is(err, store.ErrHeld) {
		return f.state.Now.Add(lockRetryInterval), nil
	}
	return wake, err
}

// loadActive loads the active runs and sets.
func (f *reconciler) loadActive(ctx context.Context) error {
	active, ended, err := f.runs.active(ctx, f.schedule.ID, f.firings.firingLog)
	if err != nil {
		return err
	}
	f.state.Active = active
	records := slices.Clone(f.firings.Records)
	for i, r := range records {
		if r.Open && slices.Contains(ended, r.Execution) {
			records[i].Open, f.changed = false, true
		}
	}
	f.firings.Records = records
	return nil
}

// save stores the firing log if it has changed.
func (f *reconciler) save(ctx context.Context) error {
	if !f.changed {
		return nil
	}
	f.firings.Records = trimRecords(f.firings.Records, f.schedule.Rules.History)
	return f.saveFirings(ctx, f.schedule.ID, f.firings)
}

func (f *reconciler) markOverdue(w Execution) {
	for i, r := range f.firings.Records {
		if r.Execution == w {
			f.firings.Records[i].Reported, f.firings.Records[i].Overdue, f.changed = true, true, true
		}
	}
}

func (f *reconciler) addRecord(r record) {
	all := slices.DeleteFunc(slices.Clone(f.firings.Records),
		func(old record) bool { return r.Execution != (Execution{}) && old.Execution == r.Execution })
	f.firings.Records, f.changed = append(all, r), true
}

// fire carries out the decision about the due firings. It stops at the first error.
func (f *reconciler) fire(ctx context.Context) (wake time.Time, err error) {
	decision := decide(f.state)
	for _, late := range decision.Overdue {
		if err := f.publishMissed(ctx, late.Execution, late.Time, 1, NotEnded,
			fmt.Sprintf("%s had not ended when its schedule was to fire again", late.Execution)); err != nil {
			return time.Time{}, err
		}
		f.markOverdue(late.Execution)
	}
	for _, result := range decision.Results {
		if err := f.apply(ctx, result); err != nil {
			return time.Time{}, err
		}
		f.firings.Until, f.changed = later(result.Time, result.Last), true
	}
	return decision.Wake, nil
}

// apply makes the run or the set of a firing, or reports that the firing has none.
func (f *reconciler) apply(ctx context.Context, result firingResult) error {
	if result.Reason != "" {
		return f.skipFirings(ctx, result)
	}
	for _, w := range result.Cancel {
		if err := f.runs.cancel(ctx, f.schedule.ID, w); err != nil {
			return err
		}
	}
	w, refused, err := f.submitAt(ctx, result.Time)
	if err != nil {
		return err
	}
	if refused != "" {
		result.Reason, result.Message = Refused, refused
		return f.skipFirings(ctx, result)
	}
	f.addRecord(record{Time: result.Time, Execution: w, Open: true})
	return nil
}

// submitAt makes the run or the set of a firing, or returns the reason why it is refused.
func (f *reconciler) submitAt(ctx context.Context, at time.Time) (w Execution, refused string, err error) {
	e, err := f.docs.edition(ctx, f.schedule)
	if err != nil {
		return Execution{}, "", err
	}
	w, _, err = f.runs.makeExecution(ctx, f.schedule, e.request(f.schedule, firingKey(at), at), false)
	var (
		invalid     *submit.InvalidError
		unsupported *submit.UnsupportedError
	)
	switch {
	case err == nil:
		return w, "", nil
	case errors.As(err, &invalid), errors.As(err, &unsupported):
		return Execution{}, err.Error(), nil
	}
	return Execution{}, "", fmt.Errorf("fire for %s: %w", at.Format(time.RFC3339), err)
}

// skipFirings reports and records firings without a run or a set.
func (f *reconciler) skipFirings(ctx context.Context, result firingResult) error {
	if err := f.publishMissed(ctx, Execution{}, result.Time, result.Count, result.Reason, result.Message); err != nil {
		return err
	}
	f.addRecord(record{Time: result.Time, Last: result.Last, Count: result.Count, Reason: result.Reason, Message: result.Message})
	return nil
}

// publishMissed publishes ScheduleMissed. A repeated event has the same ID.
func (f *reconciler) publishMissed(ctx context.Context, w Execution, at time.Time, count int, reason event.Reason, message string) error {
	s := f.schedule
	h := event.NewHeader(event.Derive("schedule-missed", s.ID, firingKey(at), string(reason)), s.ID, s.Namespace, s.Owner, at.UTC())
	h.Schedule, h.Firing = s.ID, &at
	if count > 1 {
		message = fmt.Sprintf("%d firings, the first for %s: %s", count, s.Rules.formatTime(at), message)
	}
	f.log.Warn("schedule missed", zap.String("schedule", s.ID), zap.Time("firing", at), zap.String("run", w.Run), zap.String("set", w.Set),
		zap.String("reason", string(reason)))
	return f.bus.Publish(ctx, event.Status{Header: h, Phase: event.PhaseSubmitted, Reason: event.ScheduleMissed, Message: message})
}

// advanceBackfill makes some of the runs or sets of a backfill, and records its progress.
func (f *reconciler) advanceBackfill(ctx context.Context, o Backfill) error {
	n := decideBackfill(f.schedule.Rules, f.countActive())
	if n == 0 {
		return nil
	}
	all, more := f.state.Times.Between(o.Next, o.To, backfillBatch)
	missing, err := f.runs.missing(ctx, f.schedule.ID, all, n+1)
	if err != nil {
		return err
	}
	now := missing[:min(n, len(missing))]
	for _, at := range now {
		w, refused, err := f.submitAt(ctx, at)
		if err != nil {
			return err
		}
		r := record{Time: at, Execution: w, Open: true, Reported: true}
		if refused != "" {
			r = record{Time: at, Count: 1, Reason: Refused, Message: refused}
		}
		f.addRecord(r)
	}
	next := o.To
	switch {
	case len(now) < len(missing):
		next = missing[len(now)]
	case more:
		next = all[len(all)-1].Add(time.Second)
	}
	return f.docs.saveProgress(ctx, o, next)
}

// countActive returns the number of active runs and sets, with those made in this pass.
func (f *reconciler) countActive() int {
	n := len(f.state.Active)
	for _, r := range f.firings.Records {
		if r.Open && !slices.ContainsFunc(f.state.Active, func(g activeExecution) bool { return g.Execution == r.Execution }) {
			n++
		}
	}
	return n
}
