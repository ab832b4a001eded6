package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// lockTTL is how long whoever makes runs of a schedule and dies is waited for.
const lockTTL = 10 * time.Second

// lockSchedule lets one at a time make runs of a schedule of which runs may not go on
// side by side, whether its time has come or somebody triggers it: what one has
// made the next one sees. It says store.ErrHeld while another has it. What it
// returns gives it back.
func (k *Schedules) lockSchedule(ctx context.Context, s Schedule) (unlock func(), err error) {
	if s.Rules.Concurrency == descriptors.Allow {
		return func() {}, nil
	}
	lease, err := store.Acquire(ctx, k.store, "schedule/"+s.ID, k.holder+rand.Text(), k.now(), lockTTL)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: wait for its turn: %w", s.ID, err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = store.Release(ctx, k.store, lease) // else it ends by itself
	}, nil
}

// triggerLog are the runs of a schedule that somebody asked for beside its times,
// as far as they may go on: a document of KindFirings beside the ledger. A key is
// written before its run is made, so that no run is overlooked.
type triggerLog struct {
	Keys []triggerEntry `json:"keys"`
}

type triggerEntry struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
}

func triggersKey(id string) string { return id + "!triggers" }

// Trigger has a schedule fire now, once for each key, and reports whether it
// did so before. The error is *MissingError,
// *ActiveRunError, *UnrunnableError, or another of submit.Submitter.Submit.
func (k *Schedules) Trigger(ctx context.Context, owner, ref, key string) (run string, repeated bool, err error) {
	s, err := k.Find(ctx, owner, ref)
	if err != nil {
		return "", false, err
	}
	key = "trigger " + event.Derive(cmp.Or(key, rand.Text()))
	unlock, err := k.waitForLock(ctx, s)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	if run, err := k.submitter.RunOfFiring(ctx, s.ID, key); err == nil {
		return run, true, nil
	}
	if err := k.cancelActive(ctx, s); err != nil {
		return "", false, err
	}
	at := k.now().UTC().Truncate(time.Second)
	if s.Rules.Concurrency != descriptors.Allow {
		if err := k.recordTrigger(ctx, s.ID, triggerEntry{Key: key, At: at}); err != nil {
			return "", false, err
		}
	}
	e, err := k.loadEdition(ctx, s)
	if err != nil {
		return "", false, err
	}
	acc, err := k.submitter.Submit(ctx, e.request(s, key, at))
	if invalid := new(submit.InvalidError); errors.As(err, &invalid) {
		err = &UnrunnableError{Err: invalid}
	}
	return acc.Run, acc.Repeated, err
}

// waitForLock is turn for who can wait for a moment.
func (k *Schedules) waitForLock(ctx context.Context, s Schedule) (unlock func(), err error) {
	for end := time.Now().Add(2 * lockTTL); ; {
		unlock, err := k.lockSchedule(ctx, s)
		if !errors.Is(err, store.ErrHeld) || time.Now().After(end) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// cancelActive ends the runs in whose place another is triggered, or says *ActiveRunError.
func (k *Schedules) cancelActive(ctx context.Context, s Schedule) error {
	l, _, err := store.Get[FiringLog](ctx, k.store, store.KindFirings, s.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	active, _, err := k.activeRuns(ctx, s.ID, l)
	if err != nil {
		return err
	}
	blocking, ends := DecideTrigger(s.Rules, active)
	if blocking != "" {
		return &ActiveRunError{Run: blocking}
	}
	f := &reconciler{Schedules: k, schedule: s}
	for _, run := range ends {
		if err := f.cancelRun(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// recordTrigger remembers that a run is about to be made, and forgets those that
// are over.
func (k *Schedules) recordTrigger(ctx context.Context, id string, t triggerEntry) error {
	for {
		old, version, err := store.Get[triggerLog](ctx, k.store, store.KindFirings, triggersKey(id))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		unended, err := k.openTriggers(ctx, id, old)
		if err != nil {
			return err
		}
		var all triggerLog
		for _, one := range append(unended, openTrigger{triggerEntry: t}) {
			all.Keys = append(all.Keys, one.triggerEntry)
		}
		if version == 0 {
			err = store.Create(ctx, k.store, store.KindFirings, triggersKey(id), all)
		} else {
			_, err = store.Replace(ctx, k.store, store.KindFirings, triggersKey(id), version, all)
		}
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// openTrigger is a trigger whose run is not over.
type openTrigger struct {
	triggerEntry

	run string
}

// openTriggers returns the triggers whose runs are not over. One that came to
// nothing has none.
func (k *Schedules) openTriggers(ctx context.Context, id string, t triggerLog) (unended []openTrigger, err error) {
	for _, one := range t.Keys {
		run, err := k.submitter.RunOfFiring(ctx, id, one.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		projected, err := k.store.Run(ctx, run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if projected.Phase != event.PhaseFinished {
			unended = append(unended, openTrigger{one, run})
		}
	}
	return unended, nil
}

// withTriggers adds to the runs of a schedule that are known to go on those that
// somebody triggered, and says which these are.
func (k *Schedules) withTriggers(ctx context.Context, id string, active []ActiveRun) ([]ActiveRun, error) {
	t, _, err := store.Get[triggerLog](ctx, k.store, store.KindFirings, triggersKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return active, nil
	}
	if err != nil {
		return nil, err
	}
	unended, err := k.openTriggers(ctx, id, t)
	for _, one := range unended {
		if i := slices.IndexFunc(active, func(g ActiveRun) bool { return g.Run == one.run }); i >= 0 {
			active[i].Triggered = true
			continue
		}
		active = append(active, ActiveRun{Run: one.run, Time: one.At, Reported: true, Triggered: true})
	}
	return active, err
}
