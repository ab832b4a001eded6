package collect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// room watches the disk that the pod's volume lies on. Where that is full it tells
// the user so, once, and again when there is room; what is shipped waits, because it
// takes more of the disk than it gives back.
type room struct {
	floor    int64 // bytes that stay free of output; zero: nobody watches
	free     func() (int64, error)
	say      func(ctx context.Context, subject string, s event.Status) error
	patience time.Duration // how long a pod that was told to end waits
	ending   func() bool   // whether it was told to end
	log      *zap.Logger

	state  roomState
	looked time.Time
	gave   bool // nothing is shipped any more
}

// errNoRoom says that nothing more is shipped: the disk is full, and the pod has to end.
var errNoRoom = errors.New("the platform's disk is full")

// roomPoll is how often is looked whether there is room.
const roomPoll = 100 * time.Millisecond

// wait waits until there is room to ship. It says errNoRoom where the pod has to end
// before.
func (r *room) wait(ctx context.Context) error {
	if r == nil || r.floor <= 0 {
		return nil
	}
	var ends time.Time
	for !r.gave {
		free, err := r.look(ctx, 0)
		if err != nil || free >= pod.ResultsFloor(r.floor) {
			return err
		}
		if ends.IsZero() && r.ending() {
			ends = time.Now().Add(r.patience)
		}
		if !ends.IsZero() && time.Now().After(ends) {
			r.gave = true
			r.log.Warn("the disk is full, and the pod has to end: the rest of its output is not shipped")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(roomPoll):
		}
	}
	return errNoRoom
}

// full says syscall.ENOSPC where the disk takes no more of what the benchmark gives. It
// may be called by several goroutines.
func (r *room) full() error {
	if r == nil || r.floor <= 0 {
		return nil
	}
	if free, err := r.free(); err != nil || free >= r.floor {
		return nil //nolint:nilerr // who cannot look does not wait
	}
	return fmt.Errorf("the platform's disk is full: %w", syscall.ENOSPC)
}

// watch looks at the disk from time to time.
func (r *room) watch(ctx context.Context) error {
	if r.floor <= 0 {
		return nil
	}
	_, err := r.look(ctx, time.Second)
	return err
}

// look returns how much of the disk is free, and tells the user where that has
// changed. It looks no more often than every, and returns what was free then.
func (r *room) look(ctx context.Context, every time.Duration) (int64, error) {
	now := time.Now()
	if now.Sub(r.looked) < every {
		return r.state.Free, nil
	}
	r.looked = now
	free, err := r.free()
	if err != nil {
		return r.floor, nil //nolint:nilerr // who cannot look does not wait
	}
	next, said := r.state.next(free, r.floor, now)
	if said != nil {
		if err := r.say(ctx, strconv.FormatInt(now.UnixNano(), 10), *said); err != nil {
			return free, err
		}
	}
	r.state = next
	return free, nil
}

// watchRoom has the collector watch the disk, for a benchmark that is told to end with
// ctx or by the wrapper.
func (c *Collector) watchRoom(ctx context.Context) {
	head := c.output()
	c.room = &room{
		floor: c.settings.Reserve, free: c.volume.free, patience: min(fullDisk, c.settings.Drain/2), log: c.log,
		say: func(ctx context.Context, subject string, s event.Status) error {
			s.Header = head.head("status/disk", subject)
			return c.bus.Publish(ctx, s)
		},
		ending: func() bool {
			exit, known := c.end()
			return exit.Stopped || ctx.Err() != nil && !known
		},
	}
	for _, s := range c.sources {
		s.room = c.room
	}
}
