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
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	lockTTL       = 10 * time.Second // time after which the lock of a crashed process expires
	lookupWorkers = 8                // goroutines that look up runs for one request
	maxOpenRuns   = 200              // maximum number of listed runs of a schedule
)

// runs finds and cancels the runs of schedules, and locks schedules.
type runs struct {
	store     Store
	submitter Submitter
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

// active returns the unfinished runs of a schedule, and the runs of the log that have
// finished.
func (r runs) active(ctx context.Context, id string, l firingLog) (active []activeRun, ended []string, err error) {
	for _, record := range l.Records {
		if !record.Open {
			continue
		}
		over, err := r.isOver(ctx, record.Run)
		if err != nil {
			return nil, nil, err
		}
		if over {
			ended = append(ended, record.Run)
			continue
		}
		active = append(active, activeRun{Run: record.Run, Time: record.Time, Reported: record.Reported})
	}
	phases := event.Phases()
	projected, _, err := r.store.Runs(ctx, store.RunFilter{Schedule: id, Phases: phases[:len(phases)-1], Oldest: true}, "", maxOpenRuns)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range projected {
		listed := slices.ContainsFunc(active, func(g activeRun) bool { return g.Run == run.ID }) || slices.Contains(ended, run.ID)
		if !listed && run.Firing != nil {
			active = append(active, activeRun{Run: run.ID, Time: *run.Firing, Reported: true})
		}
	}
	active, err = r.addTriggered(ctx, id, active)
	return active, ended, err
}

// isOver reports whether a run has finished. A run without a projection was just
// submitted.
func (r runs) isOver(ctx context.Context, id string) (bool, error) {
	run, err := r.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return run.Phase == event.PhaseFinished, err
}

// addTriggered adds the unfinished triggered runs to the active runs of a schedule, and
// marks those that the list already has.
func (r runs) addTriggered(ctx context.Context, id string, active []activeRun) ([]activeRun, error) {
	t, _, _, err := store.Find[triggerLog](ctx, r.store, store.KindFirings, triggersKey(id))
	if err != nil {
		return nil, err
	}
	open, err := r.openTriggers(ctx, id, t)
	for _, one := range open {
		if i := slices.IndexFunc(active, func(g activeRun) bool { return g.Run == one.run }); i >= 0 {
			active[i].Triggered = true
			continue
		}
		active = append(active, activeRun{Run: one.run, Time: one.At, Reported: true, Triggered: true})
	}
	return active, err
}

// openTrigger is a trigger whose run has not finished.
type openTrigger struct {
	triggerEntry

	run string
}

// openTriggers returns the triggers whose runs have not finished. It leaves out
// triggers whose run was never made.
func (r runs) openTriggers(ctx context.Context, id string, t triggerLog) (open []openTrigger, err error) {
	for _, one := range t.Keys {
		run, err := r.submitter.RunOfFiring(ctx, id, one.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		over, err := r.isOver(ctx, run)
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

// cancel cancels a run of a schedule in favour of another run.
func (r runs) cancel(ctx context.Context, schedule, id string) error {
	run, err := r.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		run, err = r.submitted(ctx, id)
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

// missing returns the first n of the given firing times that have no run.
func (r runs) missing(ctx context.Context, id string, all []time.Time, n int) (missing []time.Time, err error) {
	for _, at := range all {
		if len(missing) == n {
			return missing, nil
		}
		_, err := r.submitter.RunOfFiring(ctx, id, firingKey(at))
		if errors.Is(err, store.ErrNotFound) {
			missing = append(missing, at)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// allMissing returns all of the given firing times that have no run. It looks them up
// in parallel, because a request waits for the result.
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
