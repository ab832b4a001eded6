package source

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// trickle is how much must come within Settings.Stall.
const trickle = 1 << 10

// body is one answer on its way. It ends what it was asked for with when too
// little comes.
type body struct {
	host    *host
	leave   func()
	cancel  context.CancelFunc
	watch   *time.Timer
	stall   time.Duration
	stalled atomic.Bool
	from    io.ReadCloser
	come    int           // bytes since watch was last set
	bytes   int64         // in all
	waited  time.Duration // for them
}

// newBody returns a body, and the context to ask for it with, once its host may
// be asked. Its time runs from then: the answer may stall too.
func newBody(ctx context.Context, h *host, stall time.Duration) (context.Context, *body, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return ctx, nil, err
	}
	b := &body{host: h, leave: leave, stall: stall}
	ctx, b.cancel = context.WithCancel(ctx)
	b.watch = time.AfterFunc(stall, func() {
		b.stalled.Store(true)
		b.cancel()
	})
	return ctx, b, nil
}

// begin says that the answer is there.
func (b *body) begin(from io.ReadCloser) {
	b.from = from
	b.watch.Reset(b.stall)
}

// alive says that something came.
func (b *body) alive() { b.watch.Reset(b.stall) }

// read reads, and then waits where that was faster than the host's limit.
func (b *body) read(ctx context.Context, p []byte) (int, error) {
	begun := time.Now()
	n, err := b.from.Read(p)
	b.waited += time.Since(begun)
	b.bytes += int64(n)
	if b.come += n; b.come >= trickle {
		b.come = 0
		b.watch.Reset(b.stall)
	}
	if b.host.rate <= 0 || n == 0 {
		return n, err
	}
	b.watch.Stop() // it is we who wait
	if late := b.host.came(ctx, n); late != nil && err == nil {
		err = late
	}
	b.watch.Reset(b.stall)
	return n, err
}

// slow reports whether its bytes came slower than that many a second, and so
// that it pays to ask for several parts at once.
func (b *body) slow(rate int64) bool {
	return float64(b.bytes) < float64(rate)*b.waited.Seconds()
}

func (b *body) close() {
	b.watch.Stop()
	b.cancel()
	if b.from != nil {
		_ = b.from.Close() // what was wanted of it was read
	}
	b.leave()
}
