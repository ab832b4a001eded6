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
	cancel  context.CancelFunc
	watch   *time.Timer
	stall   time.Duration
	stalled atomic.Bool
	from    io.ReadCloser
	come    int // bytes since watch was last set
}

// newBody returns a body, and the context to ask for it with. Its time runs
// already: the answer may stall too.
func newBody(ctx context.Context, stall time.Duration) (context.Context, *body) {
	b := &body{stall: stall}
	ctx, b.cancel = context.WithCancel(ctx)
	b.watch = time.AfterFunc(stall, func() {
		b.stalled.Store(true)
		b.cancel()
	})
	return ctx, b
}

// begin says that the answer is there.
func (b *body) begin(from io.ReadCloser) {
	b.from = from
	b.watch.Reset(b.stall)
}

func (b *body) read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.come += n; b.come >= trickle {
		b.come = 0
		b.watch.Reset(b.stall)
	}
	return n, err
}

func (b *body) close() {
	b.watch.Stop()
	b.cancel()
	if b.from != nil {
		_ = b.from.Close() // what was wanted of it was read
	}
}
