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
	waiting := false
	for ctx.Err() == nil {
		wake, err := k.Look(ctx)
		away := err != nil && !errors.Is(err, store.ErrHeld)
		if away && !waiting && ctx.Err() == nil {
			k.log.Warn("schedules wait", zap.Error(err))
		}
		if !away && waiting {
			k.log.Info("schedules go on")
		}
		waiting = away
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
	case <-k.news:
	}
}

// Look does all that there is to do about schedules now, and returns when there
// is more, zero where there is nothing by itself. It says store.ErrHeld where
// another process does it. One goroutine at a time may call it.
func (k *Schedules) Look(ctx context.Context) (wake time.Time, err error) {
	if err := k.hold(ctx); err != nil {
		return time.Time{}, err
	}
	orders, err := k.orders(ctx, "")
	if err != nil {
		return time.Time{}, err
	}
	var errs []error
	for d, err := range k.documents(ctx, "") {
		if err != nil {
			return time.Time{}, errors.Join(append(errs, err)...)
		}
		next, err := k.one(ctx, d, orders)
		if ctx.Err() != nil || errors.Is(err, errFence) {
			return time.Time{}, err
		}
		errs = append(errs, err)
		wake = sooner(wake, next)
	}
	return wake, errors.Join(errs...)
}

// sooner returns the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
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

// hold takes the lease, or renews it where half of it is over.
func (k *Schedules) hold(ctx context.Context) error {
	now := k.now()
	if k.lease.Holder != "" && k.lease.Ends.Sub(now) > k.settings.Lease/2 {
		return nil
	}
	lease, err := store.Acquire(ctx, k.store, leaseName, k.holder, now, k.settings.Lease)
	if err != nil {
		k.lease = store.Lease{}
		return err
	}
	if lease.Fence != k.lease.Fence {
		clear(k.known)
		k.log.Info("fires schedules", zap.Int64("fence", lease.Fence))
	}
	k.lease = lease
	return nil
}

// one does what there is to do about one schedule, and returns when there is more.
func (k *Schedules) one(ctx context.Context, d store.Doc, orders []order) (wake time.Time, err error) {
	var s Schedule
	if err := json.Unmarshal(d.Value, &s); err != nil {
		return time.Time{}, fmt.Errorf("read schedule %q: %w", d.Key, err)
	}
	orders = slices.DeleteFunc(slices.Clone(orders), func(o order) bool { return o.Schedule != s.ID })
	if !s.Deleted.IsZero() || s.Paused && len(orders) == 0 {
		return time.Time{}, nil
	}
	f, err := k.firing(ctx, s)
	if err == nil {
		wake, err = f.work(ctx, orders)
	}
	if err != nil && !errors.Is(err, errFence) {
		err = fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	return wake, err
}

// open returns a schedule with what is known of its firings.
func (k *Schedules) firing(ctx context.Context, s Schedule) (*firing, error) {
	times, err := s.Rules.Times()
	if err != nil {
		return nil, err
	}
	ledger, err := k.ledger(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	look := Look{Rules: s.Rules, Times: times, Since: later(s.From, ledger.Until), Now: k.now().UTC()}
	return &firing{Schedules: k, schedule: s, ledger: ledger, look: look}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
