package source

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// minStallBytes is the number of bytes that must arrive within Settings.Stall.
const minStallBytes = 1 << 10

// body is the body of one response. It cancels its request if too little arrives.
type body struct {
	host       *host
	release    func()
	cancel     context.CancelFunc
	watch      *time.Timer
	stall      time.Duration
	stalled    atomic.Bool
	r          io.ReadCloser
	sinceReset int           // bytes since watch was last reset
	bytes      int64         // bytes read
	readTime   time.Duration // time spent in reads
}

// newBody returns a body, and the context for its request, once the host has a free
// slot. The stall time runs from then on, since the response itself may stall.
func newBody(ctx context.Context, h *host, stall time.Duration) (context.Context, *body, error) {
	release, err := h.acquire(ctx)
	if err != nil {
		return ctx, nil, err
	}
	b := &body{host: h, release: release, stall: stall}
	ctx, b.cancel = context.WithCancel(ctx)
	b.watch = time.AfterFunc(stall, func() {
		b.stalled.Store(true)
		b.cancel()
	})
	return ctx, b, nil
}

// attach sets the reader of the response.
func (b *body) attach(from io.ReadCloser) {
	b.r = from
	b.watch.Reset(b.stall)
}

// resetStall resets the stall time because something has arrived.
func (b *body) resetStall() { b.watch.Reset(b.stall) }

// read reads, and then waits if that was faster than the host's rate.
func (b *body) read(ctx context.Context, p []byte) (int, error) {
	start := time.Now()
	n, err := b.r.Read(p)
	b.readTime += time.Since(start)
	b.bytes += int64(n)
	if b.sinceReset += n; b.sinceReset >= minStallBytes {
		b.sinceReset = 0
		b.watch.Reset(b.stall)
	}
	if b.host.rate <= 0 || n == 0 {
		return n, err
	}
	b.watch.Stop() // the wait below is not a stall
	if throttleErr := b.host.throttle(ctx, n); throttleErr != nil && err == nil {
		err = throttleErr
	}
	b.watch.Reset(b.stall)
	return n, err
}

// slow reports whether the body arrived slower than rate bytes per second, so that
// parallel requests would help.
func (b *body) slow(rate int64) bool {
	return float64(b.bytes) < float64(rate)*b.readTime.Seconds()
}

func (b *body) close() {
	b.watch.Stop()
	b.cancel()
	if b.r != nil {
		_ = b.r.Close() // the body was only read
	}
	b.release()
}
