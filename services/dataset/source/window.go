package source

import (
	"context"
	"iter"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// partSize is the most that is asked for at once, and kept in memory until its
// turn comes.
const partSize = 1 << 20

// part is a piece of content that is asked for by itself.
type part struct {
	item    store.BucketObject // that it belongs to, where it is one of a bucket
	at, end int64              // in it
	buf     []byte
	done    chan struct{} // closed when it is there
	err     error         // or why it is not
}

// splitParts returns the parts of what lies from at on and before end.
func splitParts(item store.BucketObject, at, end int64) iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for ; at < end; at += partSize {
			if !yield(&part{item: item, at: at, end: min(at+partSize, end)}) {
				return
			}
		}
	}
}

// partError says that a part could not be brought.
type partError struct{ error }

// Unwrap returns why.
func (e partError) Unwrap() error { return e.error }

// fetchInOrder has all parts brought, and hands each to use in their order. What is on
// its way, and what waits for its turn, has the memory of n parts of partSize: of
// smaller ones there are more, so that one that is slow holds up few others. It
// ends at the first error: a partError where that was bring's.
func fetchInOrder(ctx context.Context, n int, parts iter.Seq[*part], bring func(context.Context, *part) error, use func(*part) error) error {
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
			w.queue <- p // it holds as many as there is room for
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

// unit is what room for parts is counted in: the least that one takes.
const unit = partSize / 16

// window is the room for parts, and their order.
type window struct {
	units   chan struct{} // holds one for each unit that is taken
	queue   chan *part
	buffers chan []byte // buffers of partSize that are free
}

func newWindow(n int) *window {
	room := n * (partSize / unit)
	return &window{units: make(chan struct{}, room), queue: make(chan *part, room), buffers: make(chan []byte, n)}
}

// take takes room for a part, once there is some, and reports whether it has. One
// goroutine at a time may call it.
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

// give gives the room of a part back.
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

// units is how much room a part takes.
func (p *part) units() int64 { return max(1, (p.end-p.at+unit-1)/unit) }
