package follow

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// leaseName is the name of the lease under which logs are followed.
const leaseName = "follow"

// leader follows while it holds the lease.
type leader struct {
	settings Settings
	deps     Deps
}

// run follows whenever nobody else does, until ctx is done.
func (l *leader) run(ctx context.Context) error {
	for tries := 0; ; {
		lease, err := l.acquire(ctx)
		switch {
		case err == nil:
			tries = 0
			l.lead(ctx, lease)
		case !errors.Is(err, store.ErrHeld) && ctx.Err() == nil:
			if tries++; tries == 1 {
				l.deps.Log.Warn("cannot take the lease of who follows logs, tries again", zap.Error(err))
			}
		}
		if !sleep(ctx, l.settings.Lease/3) {
			return nil
		}
	}
}

func (l *leader) acquire(ctx context.Context) (store.Lease, error) {
	return store.Acquire(ctx, l.deps.Store, leaseName, l.deps.Holder, l.deps.Clock(), l.settings.Lease)
}

// lead follows until ctx is done or the lease is lost, which it renews
// meanwhile. Whoever is told that it ended can be sure that nothing goes on.
func (l *leader) lead(ctx context.Context, lease store.Lease) {
	led, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	f := newFollower(l.settings, l.deps)
	go func() { defer close(done); f.run(led) }()
	for ends := lease.ExpiresAt; sleep(ctx, l.settings.Lease/3); {
		renewed, err := l.acquire(ctx)
		if err == nil {
			lease, ends = renewed, renewed.ExpiresAt
			continue
		}
		if errors.Is(err, store.ErrHeld) || l.deps.Clock().After(ends) {
			l.deps.Log.Warn("somebody else follows logs now", zap.Error(err))
			break
		}
	}
	stop()
	<-done
	if ctx.Err() != nil { // told to end: nobody need wait for the lease
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := store.Release(free, l.deps.Store, lease); err != nil {
			l.deps.Log.Debug("cannot give the lease back", zap.Error(err))
		}
	}
}

// sleep waits for d. It is false once ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
