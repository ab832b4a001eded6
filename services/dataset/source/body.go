package source

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// minStallBytes is how much must come within Settings.Stall.
const minStallBytes = 1 << 10

// body is one answer on its way. It ends what it was asked for with when too
// little comes.
type body struct {
	host       *host
	release    func()
	cancel     context.CancelFunc
	watch      *time.Timer
	stall      time.Duration
	stalled    atomic.Bool
	r          io.ReadCloser
	sinceReset int           // bytes since watch was last set
	bytes      int64         // in all
	readTime   time.Duration // for them
}

// newBody returns a body, and the context to ask for it with, once its host may
// be asked. Its time runs from then: the answer may stall too.
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

// attach says that the answer is there.
func (b *body) attach(from io.ReadCloser) {
	b.r = from
	b.watch.Reset(b.stall)
}

// resetStall says that something came.
func (b *body) resetStall() { b.watch.Reset(b.stall) }

// read reads, and then waits where that was faster than the host's limit.
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
	b.watch.Stop() // it is we who wait
	if throttleErr := b.host.throttle(ctx, n); throttleErr != nil && err == nil {
		err = throttleErr
	}
	b.watch.Reset(b.stall)
	return n, err
}

// slow reports whether its bytes came slower than that many a second, and so
// that it pays to ask for several parts at once.
func (b *body) slow(rate int64) bool {
	return float64(b.bytes) < float64(rate)*b.readTime.Seconds()
}

func (b *body) close() {
	b.watch.Stop()
	b.cancel()
	if b.r != nil {
		_ = b.r.Close() // what was wanted of it was read
	}
	b.release()
}
