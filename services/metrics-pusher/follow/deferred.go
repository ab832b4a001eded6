package follow

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// deferred returns the queue of logs whose run's descriptor this release could not read.
func (f *follower) deferred() skew.Queue[deferredLog] {
	return skew.NewQueue[deferredLog](f.deps.Store, store.KindLogProgress, deferredPrefix)
}

// isShipped reports whether a log that was put aside is shipped to its end.
func (f *follower) isShipped(ctx context.Context, u deferredLog) (bool, error) {
	_, err := f.deps.Store.Doc(ctx, store.KindLogProgress, store.LogShippedKey(u.Target.UID))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// errDeferred means that a log is not followed yet.
var errDeferred = errors.New("its run's descriptor cannot be read by this release: it waits for a newer one")

// deferLog defers a log whose run's descriptor cannot be read, and returns errDeferred. After the waiting time it returns nil: the log is
// then followed without the settings that only the descriptor has.
func (f *follower) deferLog(ctx context.Context, t *followedLog, h event.Header, descriptor string, faults parser.Faults) error {
	now := f.deps.Clock()
	u, err := f.deferred().PutIfAbsent(ctx, t.target.UID, deferredLog{Target: t.target, Since: now.UTC()})
	if err != nil {
		return err
	}
	if !keepsWaiting(u, descriptor, t.endedAt(), now) {
		return f.publishStatus(ctx, unsearchedStatus(h, faults))
	}
	if !t.announced {
		if err := f.publishStatus(ctx, deferredStatus(h, descriptor, faults)); err != nil {
			return err
		}
		t.announced = true
	}
	return errDeferred
}

func (f *follower) publishStatus(ctx context.Context, s event.Status) error {
	if err := f.deps.Bus.Publish(ctx, s); err != nil {
		return fmt.Errorf("say what becomes of the log of run %s: %w", s.Run, err)
	}
	return nil
}
