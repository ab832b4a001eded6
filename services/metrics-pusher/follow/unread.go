package follow

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// unread are the logs whose run's descriptor a follower could not read.
func (f *follower) unread() skew.Queue[Unread] {
	return skew.NewQueue[Unread](f.deps.Store, store.KindFollowed, unreadLogs)
}

// followed reports whether a log that was put aside is shipped to its end.
func (f *follower) followed(ctx context.Context, u Unread) (bool, error) {
	_, err := f.deps.Store.Doc(ctx, store.KindFollowed, store.Followed(u.Target.UID))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// errWaits says that a log is not followed yet.
var errWaits = errors.New("its run's descriptor cannot be read by this release: it waits for a newer one")

// aside puts a log aside whose run's descriptor cannot be read, and says errWaits, until
// its time is over: then it is followed without what only the descriptor says.
func (f *follower) aside(ctx context.Context, t *trail, h event.Header, descriptor string, faults descriptors.Faults) error {
	now := f.deps.Clock()
	u, err := f.unread().Put(ctx, t.target.UID, Unread{Target: t.target, Since: now.UTC()})
	if err != nil {
		return err
	}
	if !Waits(u, descriptor, t.endedAt(), now) {
		return f.say(ctx, unsearched(h, faults))
	}
	if !t.announced {
		if err := f.say(ctx, awaitsNewer(h, descriptor, faults)); err != nil {
			return err
		}
		t.announced = true
	}
	return errWaits
}

func (f *follower) say(ctx context.Context, s event.Status) error {
	if err := f.deps.Bus.Publish(ctx, s); err != nil {
		return fmt.Errorf("say what becomes of the log of run %s: %w", s.Run, err)
	}
	return nil
}
