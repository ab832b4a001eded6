package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	lockTTL       = 10 * time.Second // time after which the lock of a crashed process expires
	lookupWorkers = 8                // goroutines that look up runs for one request
	maxOpenRuns   = 200              // maximum number of listed runs of a schedule
)

// runs makes, finds and cancels the runs and sets of schedules, and locks schedules.
type runs struct {
	store     Store
	submitter Submitter
	sets      Sets
	now       func() time.Time
}

// alone calls do while no other process or request makes runs of the schedule, so that
// the next caller sees these runs. The error is store.ErrHeld while another caller
// holds the lock. A schedule with concurrency "allow" needs no lock.
func (r runs) alone(ctx context.Context, s Schedule, do func(ctx context.Context) error) error {
	if s.Rules.Concurrency == descriptors.Allow {
		return do(ctx)
	}
	lock := control.NewLeader(r.store, "schedule/"+s.ID, rand.Text(), lockTTL, control.LeaderSettings{Now: r.now})
	err := lock.Do(ctx, func(ctx context.Context, _ int64) error { return do(ctx) })
	switch {
	case errors.Is(err, store.ErrHeld):
		return fmt.Errorf("schedule %s: wait for its turn: %w", s.ID, err)
	case errors.Is(err, control.ErrLost):
		return fmt.Errorf("schedule %s: %w", s.ID, control.ErrLost)
	}
	return err
}

// active returns the unfinished runs and sets of a schedule, and those of the log that
// have finished.
func (r runs) active(ctx context.Context, id string, l firingLog) (active []activeExecution, ended []Execution, err error) {
	for _, record := range l.Records {
		if !record.Open {
			continue
		}
		over, err := r.isOver(ctx, record.Execution)
		if err != nil {
			return nil, nil, err
		}
		if over {
			ended = append(ended, record.Execution)
			continue
		}
		active = append(active, activeExecution{Execution: record.Execution, Time: record.Time, Reported: record.Reported})
	}
	phases := event.Phases()
	projected, _, err := r.store.Runs(ctx, store.RunFilter{Schedule: id, Phases: phases[:len(phases)-1], Oldest: true}, "", maxOpenRuns)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range projected {
		w := Execution{Run: run.ID}
		listed := slices.ContainsFunc(active, func(g activeExecution) bool { return g.Execution == w }) || slices.Contains(ended, w)
		if !listed && run.Firing != nil {
			active = append(active, activeExecution{Execution: w, Time: *run.Firing, Reported: true})
		}
	}
	if active, err = r.addTriggered(ctx, id, active); err != nil {
		return nil, nil, err
	}
	active, err = r.addSets(ctx, id, active)
	return active, ended, err
}

// isOver reports whether a run or a set has finished. A run without a projection was just
// submitted, unless its records were removed: only those of finished runs are.
func (r runs) isOver(ctx context.Context, w Execution) (bool, error) {
	if w.Set != "" {
		s, found, err := r.findSet(ctx, w.Set)
		return !found || s.State == set.StateFinished, err
	}
	run, err := r.store.Run(ctx, w.Run)
	if errors.Is(err, store.ErrNotFound) {
		return store.RunForgotten(ctx, r.store, w.Run)
	}
	return run.Phase == event.PhaseFinished, err
}

// addTriggered adds the unfinished triggered runs to the active ones of a schedule, and
// marks those that the list already has.
func (r runs) addTriggered(ctx context.Context, id string, active []activeExecution) ([]activeExecution, error) {
	t, _, _, err := store.Find[triggerLog](ctx, r.store, store.KindFirings, triggersKey(id))
	if err != nil {
		return nil, err
	}
	open, err := r.openTriggers(ctx, id, t)
	for _, one := range open {
		if i := slices.IndexFunc(active, func(g activeExecution) bool { return g.Run == one.run }); i >= 0 {
			active[i].Triggered = true
			continue
		}
		active = append(active, activeExecution{Execution: Execution{Run: one.run}, Time: one.At, Reported: true, Triggered: true})
	}
	return active, err
}

// openTrigger is a trigger whose run has not finished.
type openTrigger struct {
	triggerEntry

	run string
}

// openTriggers returns the triggers whose runs have not finished. It leaves out
// triggers whose run was never made, and those that made a set: the setLog has it.
func (r runs) openTriggers(ctx context.Context, id string, t triggerLog) (open []openTrigger, err error) {
	for _, one := range t.Keys {
		run, err := r.submitter.RunOfFiring(ctx, id, one.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		over, err := r.isOver(ctx, Execution{Run: run})
		if err != nil {
			return nil, err
		}
		if !over {
			open = append(open, openTrigger{one, run})
		}
	}
	return open, nil
}

// recordTrigger adds a trigger to the log of a schedule, and removes triggers whose
// runs have finished.
func (r runs) recordTrigger(ctx context.Context, id string, t triggerEntry) error {
	_, err := store.Update(ctx, r.store, store.KindFirings, triggersKey(id), func(is triggerLog, _ bool) (triggerLog, bool, error) {
		open, err := r.openTriggers(ctx, id, is)
		var next triggerLog
		for _, one := range open {
			next.Keys = append(next.Keys, one.triggerEntry)
		}
		next.Keys = append(next.Keys, t)
		return next, true, err
	})
	return err
}

// cancel cancels a run or a set of a schedule in favour of another one.
func (r runs) cancel(ctx context.Context, schedule string, w Execution) error {
	if w.Set != "" {
		_, err := r.sets.Cancel(ctx, "", w.Set, "schedule "+schedule)
		return err
	}
	run, err := r.store.Run(ctx, w.Run)
	if errors.Is(err, store.ErrNotFound) {
		run, err = r.submitted(ctx, w.Run)
	}
	if err != nil || run.Phase == event.PhaseFinished {
		return err
	}
	return r.submitter.Cancel(ctx, run, "schedule "+schedule)
}

// submitted returns a run that was just submitted and has no projection yet.
func (r runs) submitted(ctx context.Context, id string) (store.Run, error) {
	sub, _, err := store.Get[event.Submitted](ctx, r.store, store.KindSubmission, id)
	if err != nil {
		return store.Run{}, fmt.Errorf("look for run %s: %w", id, err)
	}
	return store.Run{ID: sub.Run, Namespace: sub.Namespace, Owner: sub.Owner, Lineage: sub.Lineage}, nil
}

// missing returns the first n of the given firing times that have no run and no set.
func (r runs) missing(ctx context.Context, id string, all []time.Time, n int) (missing []time.Time, err error) {
	for _, at := range all {
		if len(missing) == n {
			return missing, nil
		}
		_, found, err := r.executionOf(ctx, id, firingKey(at))
		if err != nil {
			return nil, err
		}
		if !found {
			missing = append(missing, at)
		}
	}
	return missing, nil
}

// allMissing returns all of the given firing times that have no run and no set. It looks
// them up in parallel, because a request waits for the result.
func (r runs) allMissing(ctx context.Context, id string, all []time.Time) ([]time.Time, error) {
	parts := slices.Collect(slices.Chunk(all, backfillBatch))
	missing := make([][]time.Time, len(parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookupWorkers)
	for i, part := range parts {
		g.Go(func() (err error) {
			missing[i], err = r.missing(gctx, id, part, len(part))
			return err
		})
	}
	err := g.Wait()
	return slices.Concat(missing...), err
}
