package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// turnPause is how long whoever has a schedule's turn is waited for at a time.
const turnPause = 100 * time.Millisecond

// firing is one schedule while it fires.
type firing struct {
	*Schedules

	schedule Schedule
	ledger   kept
	look     Look
	changed  bool
}

// work fires what is due, and goes on with the first of the backfills.
func (f *firing) work(ctx context.Context, orders []order) (wake time.Time, err error) {
	due := false
	if !f.schedule.Paused {
		due, wake = Due(f.look)
	}
	if !due && len(orders) == 0 {
		return wake, nil
	}
	done, err := f.turn(ctx, f.schedule)
	if errors.Is(err, store.ErrHeld) {
		return f.look.Now.Add(turnPause), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	defer done()
	err = f.gather(ctx)
	if err == nil && due {
		wake, err = f.fire(ctx)
	}
	if err == nil && len(orders) > 0 {
		err = f.backfill(ctx, orders[0])
	}
	if wrote := f.keep(ctx); err == nil {
		err = wrote
	}
	return wake, err
}

// gather finds the runs that go on: those that the ledger has, and those that
// were asked for beside it.
func (f *firing) gather(ctx context.Context) error {
	going, settled, err := f.going(ctx, f.schedule.ID, f.ledger.Ledger)
	if err != nil {
		return err
	}
	f.look.Going = going
	records := slices.Clone(f.ledger.Records)
	for i, r := range records {
		if r.Open && slices.Contains(settled, r.Run) {
			records[i].Open, f.changed = false, true
		}
	}
	f.ledger.Records = records
	return nil
}

// going returns the runs of a schedule that are not over, oldest firing first,
// and those of the ledger that are.
func (k *Schedules) going(ctx context.Context, id string, l Ledger) (going []Going, settled []string, err error) {
	for _, r := range l.Records {
		if !r.Open {
			continue
		}
		run, err := k.store.Run(ctx, r.Run)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // not known yet: it was just submitted
			return nil, nil, err
		}
		if run.Phase == event.PhaseFinished {
			settled = append(settled, r.Run)
			continue
		}
		going = append(going, Going{Run: r.Run, Time: r.Time, Told: r.Told})
	}
	phases := event.Phases()
	runs, _, err := k.store.Runs(ctx, store.RunFilter{Schedule: id, Phases: phases[:len(phases)-1], Oldest: true}, "", page)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range runs {
		known := slices.ContainsFunc(going, func(g Going) bool { return g.Run == run.ID }) || slices.Contains(settled, run.ID)
		if !known && run.Firing != nil {
			going = append(going, Going{Run: run.ID, Time: *run.Firing, Told: true})
		}
	}
	going, err = k.withTriggers(ctx, id, going)
	return going, settled, err
}

// fire carries out what is decided, as far as that goes.
func (f *firing) fire(ctx context.Context) (wake time.Time, err error) {
	plan := Decide(f.look)
	for _, late := range plan.Late {
		if err := f.tell(ctx, late.Run, late.Time, 1, NotEnded, fmt.Sprintf("run %s had not ended when its schedule was to fire again", late.Run)); err != nil {
			return time.Time{}, err
		}
		f.late(late.Run)
	}
	for _, fate := range plan.Fates {
		if err := f.meet(ctx, fate); err != nil {
			return time.Time{}, err
		}
		f.ledger.Until, f.changed = later(fate.Time, fate.Last), true
	}
	return plan.Wake, nil
}

// meet carries out the fate of a firing.
func (f *firing) meet(ctx context.Context, fate Fate) error {
	if fate.Reason != "" {
		return f.lose(ctx, fate)
	}
	for _, run := range fate.Cancel {
		if err := f.end(ctx, run); err != nil {
			return err
		}
	}
	run, refused, err := f.submit(ctx, fate.Time)
	if err != nil {
		return err
	}
	if refused != "" {
		fate.Reason, fate.Why = Refused, refused
		return f.lose(ctx, fate)
	}
	f.note(Record{Time: fate.Time, Run: run, Open: true})
	return nil
}

// end cancels a run that another takes the place of.
func (f *firing) end(ctx context.Context, id string) error {
	run, err := f.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		run, err = f.submitted(ctx, id)
	}
	if err != nil || run.Phase == event.PhaseFinished {
		return err
	}
	return f.intake.Cancel(ctx, run, "schedule "+f.schedule.ID)
}

// submitted returns what is known of a run that was just submitted.
func (k *Schedules) submitted(ctx context.Context, id string) (store.Run, error) {
	sub, _, err := store.Get[event.Submitted](ctx, k.store, store.KindSubmission, id)
	if err != nil {
		return store.Run{}, fmt.Errorf("look for run %s: %w", id, err)
	}
	return store.Run{ID: sub.Run, Namespace: sub.Namespace, Owner: sub.Owner, Lineage: sub.Lineage}, nil
}

// submit makes the run of a firing, or says why there can be none.
func (f *firing) submit(ctx context.Context, at time.Time) (run, refused string, err error) {
	e, err := f.edition(ctx, f.schedule)
	if err != nil {
		return "", "", err
	}
	return f.Schedules.submit(ctx, e.request(f.schedule, KeyOf(at), at))
}

func (k *Schedules) submit(ctx context.Context, req intake.Request) (run, refused string, err error) {
	acc, err := k.intake.Submit(ctx, req)
	var (
		invalid     *intake.InvalidError
		unsupported *intake.UnsupportedError
	)
	switch {
	case err == nil:
		return acc.Run, "", nil
	case errors.As(err, &invalid), errors.As(err, &unsupported):
		return "", err.Error(), nil
	}
	return "", "", fmt.Errorf("fire for %s: %w", req.Firing.Time.Format(time.RFC3339), err)
}

func (k *Schedules) edition(ctx context.Context, s Schedule) (edition, error) {
	e, _, err := store.Get[edition](ctx, k.store, store.KindEdition, editionKey(s.ID, s.Version, s.Digest))
	if err != nil {
		return edition{}, fmt.Errorf("read version %d of the descriptor: %w", s.Version, err)
	}
	return e, nil
}

// lose says of firings that they have no run.
func (f *firing) lose(ctx context.Context, fate Fate) error {
	if err := f.tell(ctx, "", fate.Time, fate.Count, fate.Reason, fate.Why); err != nil {
		return err
	}
	f.note(Record{Time: fate.Time, Last: fate.Last, Count: fate.Count, Reason: fate.Reason, Why: fate.Why})
	return nil
}

// tell says ScheduleMissed. What is said again has the same ID.
func (f *firing) tell(ctx context.Context, run string, at time.Time, count int, reason event.Reason, why string) error {
	s := f.schedule
	h := event.NewHeader(event.Derive("schedule-missed", s.ID, KeyOf(at), string(reason)), s.ID, s.Namespace, s.Owner, at.UTC())
	h.Schedule, h.Firing = s.ID, &at
	if count > 1 {
		why = fmt.Sprintf("%d firings, the first for %s: %s", count, s.Rules.clock(at), why)
	}
	f.log.Warn("schedule missed", zap.String("schedule", s.ID), zap.Time("firing", at), zap.String("run", run), zap.String("reason", string(reason)))
	return f.bus.Publish(ctx, event.Status{Header: h, Phase: event.PhaseSubmitted, Reason: event.ScheduleMissed, Message: why})
}
