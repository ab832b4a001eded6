package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// ErrLost means that the lease of some work is not held any more.
var ErrLost = errors.New("lost the lease")

// handBack is how long Release tries.
const handBack = 2 * time.Second

// LeaderSettings is optional.
type LeaderSettings struct {
	Now func() time.Time // the clock by which leases end; nil means time.Now
	Log *zap.Logger      // nil means none
}

// Leader contends for one lease. Contenders for one lease have different holders, in one process too. Use it either by Hold and Release,
// for work in rounds, or by Do or Lead, for work that lasts. Only one goroutine may use it at a time.
//
// Clocks of contenders may differ, and a process may sleep: two may work at once for a while. So a holder writes the fence beside each
// effect, and gives up if it finds a higher one.
type Leader struct {
	docs         store.Docs
	name, holder string
	ttl          time.Duration
	now          func() time.Time
	log          *zap.Logger
	failure      failure

	lease store.Lease // its fence is 0 if it is not held
	at    time.Time   // of the last renewal, by now
	until time.Time   // by the clock of the process: end of the work without a renewal
}

// NewLeader returns a contender for the lease called name, of ttl at a time.
func NewLeader(docs store.Docs, name, holder string, ttl time.Duration, s LeaderSettings) *Leader {
	log := cmp.Or(s.Log, zap.NewNop()).With(zap.String("lease", name))
	l := &Leader{docs: docs, name: name, holder: holder, ttl: ttl, now: s.Now, log: log}
	if l.now == nil {
		l.now = time.Now
	}
	l.failure = failure{log: l.log, failing: "cannot lead, retrying", working: "can lead again"}
	return l
}

// Hold takes the lease, or renews it after a third of its time or if the clock went back, and returns it. The error is store.ErrHeld while
// another contender holds it; after any error no work may be done under the lease. A fence that differs from that of the last call means
// that another contender held the lease in between.
func (l *Leader) Hold(ctx context.Context) (store.Lease, error) {
	if since := l.now().Sub(l.at); l.lease.Fence > 0 && since >= 0 && since < l.ttl/3 {
		return l.lease, nil
	}
	err := l.acquire(ctx)
	return l.lease, err
}

// Invalidate makes the next Hold read the store. A holder that found a higher fence calls it.
func (l *Leader) Invalidate() { l.at = time.Time{} }

// Release gives the lease back, if it is held, so that the next holder need not wait for its end; it does so even after the end of ctx, for
// two seconds. A lease that could not be given back ends by itself.
func (l *Leader) Release(ctx context.Context) {
	held := l.lease
	if l.lease = (store.Lease{}); held.Fence == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handBack)
	defer cancel()
	_, err := store.Update(ctx, l.docs, store.KindLease, l.name, func(is store.Lease, _ bool) (store.Lease, bool, error) {
		mine := is.Holder == held.Holder && is.Fence == held.Fence
		is.ExpiresAt = time.Time{}
		return is, mine, nil
	})
	if err != nil {
		l.log.Info("the lease was not handed back and ends by itself", zap.Error(err))
	}
}

// Do takes the lease, calls do with its fence, renews it meanwhile at a third of its time, and gives it back when do has returned. While
// another contender holds the lease, Do returns store.ErrHeld and does not call do. Otherwise it returns the error of do, with ErrLost if
// the lease was lost before: the context of do ends then, with ErrLost as its cause. A lease that cannot be renewed is lost after five
// sixths of its time, before another contender can take it.
func (l *Leader) Do(ctx context.Context, do func(ctx context.Context, fence int64) error) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer l.Release(ctx)
	led, cancel := context.WithCancelCause(ctx)
	var renewal sync.WaitGroup
	defer renewal.Wait()
	defer cancel(nil)
	fence := l.lease.Fence
	renewal.Go(func() { l.renew(led, cancel, fence) })
	err := do(led, fence)
	if err != nil && errors.Is(context.Cause(led), ErrLost) {
		return fmt.Errorf("%q: %w: %w", l.name, ErrLost, err)
	}
	return err
}

// Lead does the work of Do whenever no other contender does, and tries to take the lease every third of its time. It returns nil when ctx
// is done and do has returned. Failures in a row are logged once.
func (l *Leader) Lead(ctx context.Context, do func(ctx context.Context, fence int64) error) error {
	for away := false; ctx.Err() == nil; Sleep(ctx, l.ttl/3) {
		away = l.campaign(ctx, away, do)
	}
	return nil
}

// campaign does the work once if no other contender does. It reports whether the store could not be read for the lease.
func (l *Leader) campaign(ctx context.Context, away bool, do func(ctx context.Context, fence int64) error) bool {
	led := false
	err := l.Do(ctx, func(ctx context.Context, fence int64) error {
		if led = true; away {
			l.failure.note(nil)
		}
		l.log.Info("leads", zap.Int64("fence", fence))
		return do(ctx, fence)
	})
	if errors.Is(err, store.ErrHeld) || errors.Is(err, ErrLost) {
		err = nil // another leads
	}
	if ctx.Err() == nil {
		l.failure.note(err)
	}
	return err != nil && !led
}

// Ready returns why this process can neither lead nor let another lead, nil if it can.
func (l *Leader) Ready(context.Context) error { return l.failure.last() }

// acquire takes or renews the lease.
func (l *Leader) acquire(ctx context.Context) error {
	began, now := time.Now(), l.now()
	lease, err := store.Acquire(ctx, l.docs, l.name, l.holder, now, l.ttl)
	if errors.Is(err, store.ErrHeld) {
		l.lease = store.Lease{}
	}
	if err != nil {
		return err
	}
	l.lease, l.at, l.until = lease, now, began.Add(l.ttl*5/6)
	return nil
}

// renew renews the lease until ctx is done, and cancels the work if the lease is lost.
func (l *Leader) renew(ctx context.Context, cancel context.CancelCauseFunc, fence int64) {
	for wait := l.ttl / 3; Sleep(ctx, wait); {
		try, done := context.WithDeadline(ctx, l.until)
		err := l.acquire(try)
		done()
		switch {
		case err == nil && l.lease.Fence == fence:
			wait = l.ttl / 3
		case err != nil && l.lease.Fence == fence && time.Now().Before(l.until) && l.now().Before(l.lease.ExpiresAt):
			wait = min(l.ttl/12, time.Until(l.until))
		case ctx.Err() == nil:
			l.log.Warn("lost the lease", zap.Int64("fence", fence), zap.Error(err))
			cancel(ErrLost)
			return
		}
	}
}
