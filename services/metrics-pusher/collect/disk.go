package collect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// diskMonitor watches the disk of the pod's volume. It publishes a status once when the disk is full, and once when there is room again.
// While the disk is full the collector ships nothing: what is shipped takes more of the disk than the recorded output that it frees, and it
// stays there when the pod has ended.
type diskMonitor struct {
	floor        int64 // bytes that stay free of output; zero turns the monitor off
	free         func() (int64, error)
	publish      func(ctx context.Context, subject string, s event.Status) error
	drainTimeout time.Duration // how long a stopping pod waits for room
	stopping     func() bool   // whether the pod has to stop
	log          *zap.Logger

	state     diskState
	checkedAt time.Time
	gaveUp    bool // nothing is shipped any more
}

// errDiskFull means that nothing more is shipped: the disk is full, and the pod has to end.
var errDiskFull = errors.New("the platform's disk is full")

// diskPoll is how often wait checks whether there is room.
const diskPoll = 100 * time.Millisecond

// wait waits until there is room to ship. It returns errDiskFull if the pod has to end before that.
func (r *diskMonitor) wait(ctx context.Context) error {
	if r == nil || r.floor <= 0 {
		return nil
	}
	var ends time.Time
	for !r.gaveUp {
		free, err := r.check(ctx, 0)
		if err != nil || free >= r.floor {
			return err
		}
		if ends.IsZero() && r.stopping() {
			ends = time.Now().Add(r.drainTimeout)
		}
		if !ends.IsZero() && time.Now().After(ends) {
			r.gaveUp = true
			r.log.Warn("the disk is full, and the pod has to end: the rest of its output is not shipped")
		}
		if !control.Sleep(ctx, diskPoll) {
			return ctx.Err()
		}
	}
	return errDiskFull
}

// checkFull returns syscall.ENOSPC if the disk has no room to record more data of the benchmark. Several goroutines may call it.
func (r *diskMonitor) checkFull() error {
	if r == nil || r.floor <= 0 {
		return nil
	}
	if free, err := r.free(); err != nil || free >= pod.RecordingFloor(r.floor) {
		return nil //nolint:nilerr // who cannot look does not wait
	}
	return fmt.Errorf("the platform's disk is full: %w", syscall.ENOSPC)
}

// watch checks the disk at most once a second.
func (r *diskMonitor) watch(ctx context.Context) error {
	if r.floor <= 0 {
		return nil
	}
	_, err := r.check(ctx, time.Second)
	return err
}

// check returns how many bytes of the disk are free, and publishes a status if the disk has become full or has room again. Within every of
// the last check it returns the number of that check. If the free bytes cannot be read, it returns the floor.
func (r *diskMonitor) check(ctx context.Context, every time.Duration) (int64, error) {
	now := time.Now()
	if now.Sub(r.checkedAt) < every {
		return r.state.Free, nil
	}
	r.checkedAt = now
	free, err := r.free()
	if err != nil {
		return r.floor, nil //nolint:nilerr // who cannot look does not wait
	}
	next, status := r.state.next(free, r.floor, now)
	if status != nil {
		if err := r.publish(ctx, strconv.FormatInt(now.UnixNano(), 10), *status); err != nil {
			return free, err
		}
	}
	r.state = next
	return free, nil
}

// watchDisk starts the disk monitor. The pod counts as stopping once ctx is done or the entrypoint has stopped the benchmark.
func (c *Collector) watchDisk(ctx context.Context) {
	head := c.outputShipper()
	c.disk = &diskMonitor{
		floor: c.settings.Reserve, free: c.volume.Free, drainTimeout: min(diskFullTimeout, c.settings.Drain/2), log: c.log,
		publish: func(ctx context.Context, subject string, s event.Status) error {
			s.Header = head.eventHeader("status/disk", subject)
			return c.bus.Publish(ctx, s)
		},
		stopping: func() bool {
			exit, ok := c.exitStatus(pod.ExitFile)
			return exit.Stopped || ctx.Err() != nil && !ok
		},
	}
	for _, s := range c.shippers {
		s.disk = c.disk
	}
}
