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
	item    store.Item // that it belongs to, where it is one of a bucket
	at, end int64      // in it
	buf     []byte
	done    chan struct{} // closed when it is there
	err     error         // or why it is not
}

// cut returns the parts of what lies from at on and before end.
func cut(item store.Item, at, end int64) iter.Seq[*part] {
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

// inOrder has all parts brought, n of them at once, and hands each to use in
// their order. It ends at the first error: a partError where that was bring's.
func inOrder(ctx context.Context, n int, parts iter.Seq[*part], bring func(context.Context, *part) error, use func(*part) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	free, queue := make(chan []byte, n), make(chan *part, n)
	for range n {
		free <- nil
	}
	asking.Go(func() {
		defer close(queue)
		for p := range parts {
			select {
			case p.buf = <-free:
			case <-ctx.Done():
				return
			}
			p.size()
			queue <- p // it holds as many as there are buffers
			asking.Go(func() {
				defer close(p.done)
				p.err = bring(ctx, p)
			})
		}
	})
	for p := range queue {
		<-p.done
		if p.err != nil {
			return partError{p.err}
		}
		if err := use(p); err != nil {
			return err
		}
		free <- p.buf
	}
	return ctx.Err()
}

// size makes the part's buffer as large as the part.
func (p *part) size() {
	p.done = make(chan struct{})
	n := p.end - p.at
	if int64(cap(p.buf)) < n {
		p.buf = make([]byte, n)
	}
	p.buf = p.buf[:n]
}
