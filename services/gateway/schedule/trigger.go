package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Trigger fires a schedule now, once for each key, and reports whether the key was used
// before. The error is *MissingError, *ActiveRunError, *UnrunnableError, or another
// error of submit.Submitter.Submit or set.Sets.Put.
func (k *Schedules) Trigger(ctx context.Context, owner, ref, key string) (w Execution, repeated bool, err error) {
	s, err := k.docs.find(ctx, owner, ref)
	if err != nil {
		return Execution{}, false, err
	}
	key = "trigger " + event.Derive(cmp.Or(key, rand.Text()))
	for end := time.Now().Add(2 * lockTTL); ; {
		err = k.runs.alone(ctx, s, func(ctx context.Context) (err error) {
			w, repeated, err = k.fireNow(ctx, s, key)
			return err
		})
		if !errors.Is(err, store.ErrHeld) || time.Now().After(end) {
			return w, repeated, err
		}
		if !control.Sleep(ctx, 20*time.Millisecond) {
			return Execution{}, false, ctx.Err()
		}
	}
}

// fireNow makes the run or the set of a trigger, unless the trigger has one.
func (k *Schedules) fireNow(ctx context.Context, s Schedule, key string) (w Execution, repeated bool, err error) {
	if w, found, err := k.runs.executionOf(ctx, s.ID, key); err != nil || found {
		return w, found, err
	}
	if err := k.cancelActive(ctx, s); err != nil {
		return Execution{}, false, err
	}
	at := k.runs.now().UTC().Truncate(time.Second)
	if s.Rules.Concurrency != descriptors.Allow {
		if err := k.runs.recordTrigger(ctx, s.ID, triggerEntry{Key: key, At: at}); err != nil {
			return Execution{}, false, err
		}
	}
	e, err := k.docs.edition(ctx, s)
	if err != nil {
		return Execution{}, false, err
	}
	w, repeated, err = k.runs.makeExecution(ctx, s, e.request(s, key, at), true)
	if invalid := new(submit.InvalidError); errors.As(err, &invalid) {
		err = &UnrunnableError{Err: invalid}
	}
	return w, repeated, err
}

// cancelActive cancels the runs and sets that the triggered one replaces, or returns
// *ActiveRunError.
func (k *Schedules) cancelActive(ctx context.Context, s Schedule) error {
	l, _, _, err := store.Find[firingLog](ctx, k.docs.store, store.KindFirings, s.ID)
	if err != nil {
		return err
	}
	active, _, err := k.runs.active(ctx, s.ID, l)
	if err != nil {
		return err
	}
	blocking, ends := decideTrigger(s.Rules, active)
	if blocking != (Execution{}) {
		return &ActiveRunError{Execution: blocking}
	}
	for _, w := range ends {
		if err := k.runs.cancel(ctx, s.ID, w); err != nil {
			return err
		}
	}
	return nil
}

// Backfill orders the runs, or the sets, of past firings without one, from from on and
// before to. A zero or later to means now. It returns the times of these firings, and the
// number of firings that have a run or a set. It can be repeated. The error is *MissingError, or
// *SpanError if the span is empty or has too many firings.
func (k *Schedules) Backfill(
	ctx context.Context, owner, ref string, from, to time.Time, by string,
) (missing []time.Time, present int, err error) {
	now := k.timestamp()
	if to.IsZero() || to.After(now) {
		to = now
	}
	s, err := k.docs.find(ctx, owner, ref)
	if err != nil {
		return nil, 0, err
	}
	all, err := s.Rules.firings(from, to)
	if err != nil {
		return nil, 0, err
	}
	missing, err = k.runs.allMissing(ctx, s.ID, all)
	if err != nil || len(missing) == 0 {
		return nil, len(all), err
	}
	err = k.docs.createBackfill(ctx, Backfill{Schedule: s.ID, From: from, To: to, Next: missing[0], By: by, At: now})
	k.wake()
	return missing, len(all) - len(missing), err
}
