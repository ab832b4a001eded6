package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Details is a schedule with its descriptor and its history.
type Details struct {
	Schedule

	Descriptor string       // text with the overrides applied
	Firings    []PastFiring // latest first
	Backfills  []Backfill   // unfinished, oldest span first
}

// PastFiring is the outcome of a firing, or of several consecutive firings without a run
// or a set.
type PastFiring struct {
	Time    time.Time
	Last    time.Time // last of several firings
	Count   int       // number of several firings
	Phase   event.Phase
	Outcome event.Outcome
	Reason  event.Reason
	Message string
	Missed  bool // there is no run or set, or it had not ended in time

	Execution
}

// Get returns a schedule with its descriptor and its history. The error is
// *MissingError if there is no such schedule.
func (k *Schedules) Get(ctx context.Context, owner, ref string) (Details, error) {
	s, err := k.docs.find(ctx, owner, ref)
	if err != nil {
		return Details{}, err
	}
	e, err := k.docs.edition(ctx, s)
	if err != nil {
		return Details{}, err
	}
	firings, err := k.history(ctx, s)
	if err != nil {
		return Details{}, err
	}
	backfills, err := k.docs.backfills(ctx, s.ID+"!")
	return Details{Schedule: s, Descriptor: e.Descriptor, Firings: firings, Backfills: backfills}, err
}

// Upcoming returns the next n firing times of a schedule, or none while the schedule is
// paused.
func (k *Schedules) Upcoming(s Schedule, n int) []time.Time {
	times, err := s.Rules.times()
	if s.Paused || err != nil {
		return nil
	}
	return times.Next(later(s.From, k.runs.now()), n)
}

// history returns the last firings of a schedule, and all whose runs or sets have not
// finished, latest first.
func (k *Schedules) history(ctx context.Context, s Schedule) ([]PastFiring, error) {
	l, _, _, err := store.Find[firingLog](ctx, k.docs.store, store.KindFirings, s.ID)
	if err != nil {
		return nil, err
	}
	all, err := k.projectedRuns(ctx, s)
	if err != nil {
		return nil, err
	}
	sets, err := k.runs.setsOf(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	for _, one := range sets {
		if !one.set.Created.Before(s.Created) {
			all = append(all, firingOfSet(one.set))
		}
	}
	all = k.addRecords(ctx, s, all, l.Records)
	slices.SortStableFunc(all, func(a, b PastFiring) int { return b.Time.Compare(a.Time) })
	return trimHistory(all, s.Rules.History), nil
}

// projectedRuns returns the firings whose runs have a projection: the last ones that have
// finished, and those that have not.
func (k *Schedules) projectedRuns(ctx context.Context, s Schedule) (all []PastFiring, err error) {
	phases := event.Phases()
	last := len(phases) - 1
	for _, page := range []struct {
		phases []event.Phase
		limit  int
	}{{phases[:last], maxOpenRuns}, {phases[last:], s.Rules.History}} {
		runs, _, err := k.docs.store.Runs(ctx, store.RunFilter{Schedule: s.ID, Since: s.Created, Phases: page.phases}, "", page.limit)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if !slices.ContainsFunc(all, func(f PastFiring) bool { return f.Run == r.ID }) { // it has ended in between
				all = append(all, firingOf(r))
			}
		}
	}
	return all, nil
}

// addRecords adds what the log of a schedule has beside its runs and sets.
func (k *Schedules) addRecords(ctx context.Context, s Schedule, all []PastFiring, records []record) []PastFiring {
	for _, r := range records {
		none := r.Execution == Execution{}
		i := slices.IndexFunc(all, func(f PastFiring) bool { return !none && f.Execution == r.Execution })
		switch {
		case i >= 0:
			all[i].Missed = r.Overdue
		case none && (r.Time.After(s.Created) || r.Last.After(s.Created)):
			all = append(all, PastFiring{Time: r.Time, Last: r.Last, Count: r.Count, Reason: r.Reason, Message: r.Message, Missed: true})
		case r.Run != "" && r.Open && k.isUnrecorded(ctx, r.Run):
			all = append(all, PastFiring{Time: r.Time, Execution: r.Execution, Phase: event.PhaseSubmitted, Missed: r.Overdue})
		}
	}
	return all
}

func firingOfSet(s set.Set) PastFiring {
	return PastFiring{Execution: Execution{Set: s.ID}, Time: s.Firing, Phase: phaseOfSet(s), Outcome: s.Outcome, Message: s.Message}
}

func firingOf(r store.Run) PastFiring {
	f := PastFiring{Execution: Execution{Run: r.ID}, Phase: r.Phase, Outcome: r.Outcome, Reason: r.Reason, Message: r.Message}
	if r.Firing != nil {
		f.Time = *r.Firing
	}
	return f
}

// isUnrecorded reports whether a run was submitted so recently that it has no
// projection yet.
func (k *Schedules) isUnrecorded(ctx context.Context, run string) bool {
	_, err := k.docs.store.Run(ctx, run)
	return errors.Is(err, store.ErrNotFound)
}
