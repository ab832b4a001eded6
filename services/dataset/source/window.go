package source

import (
	"context"
	"iter"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// partSize is the maximum number of bytes in one request, which stay in memory until
// their turn.
const partSize = 1 << 20

// part is a piece of content that is requested separately.
type part struct {
	item    store.BucketObject // object that the part is of; zero outside buckets
	at, end int64              // range in the content
	buf     []byte
	done    chan struct{} // closed when the part has arrived or failed
	err     error         // reason if the part failed
}

// splitParts returns the parts from at on and before end.
func splitParts(item store.BucketObject, at, end int64) iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for ; at < end; at += partSize {
			if !yield(&part{item: item, at: at, end: min(at+partSize, end)}) {
				return
			}
		}
	}
}

// partError is the reason why a part could not be fetched.
type partError struct{ error }

// Unwrap returns the reason.
func (e partError) Unwrap() error { return e.error }

// fetchInOrder fetches all parts in parallel, and passes each to use in order. The
// parts in progress, or waiting for their turn, have the memory of n parts of partSize.
// There are more of smaller parts, so that a slow one delays few others. It ends at the
// first error, which is a partError if bring returned it.
func fetchInOrder(
	ctx context.Context, n int, parts iter.Seq[*part], bring func(context.Context, *part) error, use func(*part) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	w := newWindow(n)
	asking.Go(func() {
		defer close(w.queue)
		for p := range parts {
			if !w.take(ctx, p) {
				return
			}
			w.queue <- p // the channel has room for all parts in memory
			asking.Go(func() {
				defer close(p.done)
				p.err = bring(ctx, p)
			})
		}
	})
	for p := range w.queue {
		<-p.done
		if p.err != nil {
			return partError{p.err}
		}
		if err := use(p); err != nil {
			return err
		}
		w.give(p)
	}
	return ctx.Err()
}

// unit is the unit of memory for parts, and the least that a part takes.
const unit = partSize / 16

// window is the memory for parts, and their order.
type window struct {
	units   chan struct{} // one element for each unit taken
	queue   chan *part
	buffers chan []byte // free buffers of partSize
}

func newWindow(n int) *window {
	room := n * (partSize / unit)
	return &window{units: make(chan struct{}, room), queue: make(chan *part, room), buffers: make(chan []byte, n)}
}

// take waits for memory for a part, and reports whether it got some. Only one goroutine
// at a time may call it.
func (w *window) take(ctx context.Context, p *part) bool {
	for range p.units() {
		select {
		case w.units <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	p.done = make(chan struct{})
	n := p.end - p.at
	if n > partSize/2 {
		select {
		case p.buf = <-w.buffers:
		default:
			p.buf = make([]byte, partSize)
		}
	} else {
		p.buf = make([]byte, n)
	}
	p.buf = p.buf[:n]
	return true
}

// give releases the memory of a part.
func (w *window) give(p *part) {
	if cap(p.buf) == partSize {
		select {
		case w.buffers <- p.buf[:partSize]:
		default:
		}
	}
	p.buf = nil
	for range p.units() {
		<-w.units
	}
}

// units returns the memory that a part takes.
func (p *part) units() int64 { return max(1, (p.end-p.at+unit-1)/unit) }
