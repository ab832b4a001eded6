package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// leaseName is the lease of who fires.
const leaseName = "schedules"

// Run fires schedules while this process holds the lease, and waits for it while
// another does. It blocks until ctx is done. What it cannot do now it says once,
// and tries again.
func (k *Schedules) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		wake, err := k.Reconcile(ctx)
		failed := err != nil && !errors.Is(err, store.ErrHeld)
		if failed && !failing && ctx.Err() == nil {
			k.log.Warn("schedules wait", zap.Error(err))
		}
		if !failed && failing {
			k.log.Info("schedules go on")
		}
		failing = failed
		k.sleep(ctx, wake, err)
	}
	if k.lease.Holder == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := store.Release(ctx, k.store, k.lease); err != nil {
		k.log.Warn("lease not given back", zap.Error(err)) // it ends by itself
	}
	return nil
}

// sleep waits until there is something to do.
func (k *Schedules) sleep(ctx context.Context, wake time.Time, err error) {
	pause := k.settings.Interval
	if errors.Is(err, store.ErrHeld) {
		pause = max(pause, k.settings.Lease/3)
	}
	if until := wake.Sub(k.now()); !wake.IsZero() && err == nil {
		pause = max(min(pause, until), 0)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.wakeups:
	}
}

// Reconcile does all that there is to do about schedules now, and returns when there
// is more, zero where there is nothing by itself. It says store.ErrHeld where
// another process does it. One goroutine at a time may call it.
func (k *Schedules) Reconcile(ctx context.Context) (wake time.Time, err error) {
	if err := k.acquireLease(ctx); err != nil {
		return time.Time{}, err
	}
	backfills, err := k.backfills(ctx, "")
	if err != nil {
		return time.Time{}, err
	}
	var errs []error
	for d, err := range k.documents(ctx, "") {
		if err != nil {
			return time.Time{}, errors.Join(append(errs, err)...)
		}
		next, err := k.reconcileSchedule(ctx, d, backfills)
		if ctx.Err() != nil || errors.Is(err, errFenced) {
			return time.Time{}, err
		}
		errs = append(errs, err)
		wake = earlier(wake, next)
	}
	return wake, errors.Join(errs...)
}

// earlier returns the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// documents are those of all schedules after a key, in the order of their IDs.
// After an error there is none.
func (k *Schedules) documents(ctx context.Context, after string) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		for {
			docs, err := k.store.Docs(ctx, store.KindSchedule, after, page)
			if err != nil {
				yield(store.Doc{}, fmt.Errorf("list schedules: %w", err))
				return
			}
			for _, d := range docs {
				after = d.Key
				if !yield(d, nil) {
					return
				}
			}
			if len(docs) < page {
				return
			}
		}
	}
}

// acquireLease takes the lease, or renews it where half of it is over.
func (k *Schedules) acquireLease(ctx context.Context) error {
	now := k.now()
	if k.lease.Holder != "" && k.lease.ExpiresAt.Sub(now) > k.settings.Lease/2 {
		return nil
	}
	lease, err := store.Acquire(ctx, k.store, leaseName, k.holder, now, k.settings.Lease)
	if err != nil {
		k.lease = store.Lease{}
		return err
	}
	if lease.Fence != k.lease.Fence {
		clear(k.firingLogs)
		k.log.Info("fires schedules", zap.Int64("fence", lease.Fence))
	}
	k.lease = lease
	return nil
}

// reconcileSchedule does what there is to do about one schedule, and returns when there is more.
func (k *Schedules) reconcileSchedule(ctx context.Context, d store.Doc, backfills []Backfill) (wake time.Time, err error) {
	var s Schedule
	if err := json.Unmarshal(d.Value, &s); err != nil {
		return time.Time{}, fmt.Errorf("read schedule %q: %w", d.Key, err)
	}
	backfills = slices.DeleteFunc(slices.Clone(backfills), func(o Backfill) bool { return o.Schedule != s.ID })
	if !s.Deleted.IsZero() || s.Paused && len(backfills) == 0 {
		return time.Time{}, nil
	}
	f, err := k.newReconciler(ctx, s)
	if err == nil {
		wake, err = f.reconcile(ctx, backfills)
	}
	if err != nil && !errors.Is(err, errFenced) {
		err = fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	return wake, err
}

// open returns a schedule with what is known of its firings.
func (k *Schedules) newReconciler(ctx context.Context, s Schedule) (*reconciler, error) {
	times, err := s.Rules.Times()
	if err != nil {
		return nil, err
	}
	firings, err := k.loadFirings(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	state := State{Rules: s.Rules, Times: times, Since: later(s.From, firings.Until), Now: k.now().UTC()}
	return &reconciler{Schedules: k, schedule: s, firings: firings, state: state}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
