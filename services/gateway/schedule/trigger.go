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
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// BusyError says that a schedule does not fire while a run of it goes on.
type BusyError struct{ Run string }

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s of the schedule goes on, and schedule.concurrency is forbid: wait for its end, or cancel it", e.Run)
}

// turnLease is how long whoever makes runs of a schedule and dies is waited for.
const turnLease = 10 * time.Second

// turn lets one at a time make runs of a schedule of which runs may not go on
// side by side, whether its time has come or somebody triggers it: what one has
// made the next one sees. It says store.ErrHeld while another has it. What it
// returns gives it back.
func (k *Schedules) turn(ctx context.Context, s Schedule) (done func(), err error) {
	if s.Rules.Concurrency == descriptors.Allow {
		return func() {}, nil
	}
	lease, err := store.Acquire(ctx, k.store, "schedule/"+s.ID, k.holder+rand.Text(), k.now(), turnLease)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: wait for its turn: %w", s.ID, err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = store.Release(ctx, k.store, lease) // else it ends by itself
	}, nil
}

// triggers are the runs of a schedule that somebody asked for beside its times,
// as far as they may go on: a document of KindFirings beside the ledger. A key is
// written before its run is made, so that no run is overlooked.
type triggers struct {
	Keys []triggered `json:"keys"`
}

type triggered struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
}

func triggersKey(id string) string { return id + "!triggers" }

// Trigger has a schedule fire now, once for each key, and reports whether it
// did so before. It says *MissingError and *BusyError, and what intake.Submit does.
func (k *Schedules) Trigger(ctx context.Context, owner, ref, key string) (run string, repeated bool, err error) {
	s, err := k.Find(ctx, owner, ref)
	if err != nil {
		return "", false, err
	}
	key = "trigger " + event.Derive(cmp.Or(key, rand.Text()))
	done, err := k.awaitTurn(ctx, s)
	if err != nil {
		return "", false, err
	}
	defer done()
	if run, err := k.intake.Fired(ctx, s.ID, key); err == nil {
		return run, true, nil
	}
	if err := k.clearWay(ctx, s); err != nil {
		return "", false, err
	}
	at := k.now().UTC().Truncate(time.Second)
	if s.Rules.Concurrency != descriptors.Allow {
		if err := k.noteTrigger(ctx, s.ID, triggered{Key: key, At: at}); err != nil {
			return "", false, err
		}
	}
	e, err := k.edition(ctx, s)
	if err != nil {
		return "", false, err
	}
	acc, err := k.intake.Submit(ctx, e.request(s, key, at))
	return acc.Run, acc.Repeated, err
}

// awaitTurn is turn for who can wait for a moment.
func (k *Schedules) awaitTurn(ctx context.Context, s Schedule) (done func(), err error) {
	for end := time.Now().Add(2 * turnLease); ; {
		done, err := k.turn(ctx, s)
		if !errors.Is(err, store.ErrHeld) || time.Now().After(end) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// clearWay ends the runs in whose place another is triggered, or says *BusyError.
func (k *Schedules) clearWay(ctx context.Context, s Schedule) error {
	l, _, err := store.Get[Ledger](ctx, k.store, store.KindFirings, s.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	going, _, err := k.going(ctx, s.ID, l)
	if err != nil {
		return err
	}
	busy, ends := DecideTrigger(s.Rules, going)
	if busy != "" {
		return &BusyError{Run: busy}
	}
	f := &firing{Schedules: k, schedule: s}
	for _, run := range ends {
		if err := f.end(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// noteTrigger remembers that a run is about to be made, and forgets those that
// are over.
func (k *Schedules) noteTrigger(ctx context.Context, id string, t triggered) error {
	for {
		old, version, err := store.Get[triggers](ctx, k.store, store.KindFirings, triggersKey(id))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		left, err := k.unfinished(ctx, id, old)
		if err != nil {
			return err
		}
		var all triggers
		for _, one := range append(left, open{triggered: t}) {
			all.Keys = append(all.Keys, one.triggered)
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

// open is a trigger whose run is not over.
type open struct {
	triggered

	run string
}

// unfinished returns the triggers whose runs are not over. One that came to
// nothing has none.
func (k *Schedules) unfinished(ctx context.Context, id string, t triggers) (left []open, err error) {
	for _, one := range t.Keys {
		run, err := k.intake.Fired(ctx, id, one.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		known, err := k.store.Run(ctx, run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if known.Phase != event.PhaseFinished {
			left = append(left, open{one, run})
		}
	}
	return left, nil
}

// withTriggers adds to the runs of a schedule that are known to go on those that
// somebody triggered, and says which these are.
func (k *Schedules) withTriggers(ctx context.Context, id string, going []Going) ([]Going, error) {
	t, _, err := store.Get[triggers](ctx, k.store, store.KindFirings, triggersKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return going, nil
	}
	if err != nil {
		return nil, err
	}
	left, err := k.unfinished(ctx, id, t)
	for _, one := range left {
		if i := slices.IndexFunc(going, func(g Going) bool { return g.Run == one.run }); i >= 0 {
			going[i].Beside = true
			continue
		}
		going = append(going, Going{Run: one.run, Time: one.At, Told: true, Beside: true})
	}
	return going, err
}
