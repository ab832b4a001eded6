//go:build linux

package local

import (
	"context"
	"sync"
	"time"
)

// background runs goroutines for its owner until it is closed.
type background struct {
	cancel context.CancelFunc
	run    func(f func(context.Context)) // in a goroutine, with a context that ends with close
	// onClose has f called in a goroutine once close was called, unless stop is first.
	onClose func(f func()) (stop func() bool)

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel}
	b.run = func(f func(context.Context)) { b.wg.Go(func() { f(ctx) }) }
	b.onClose = func(f func()) func() bool { return context.AfterFunc(ctx, f) }
	return b
}

// spawn runs f in a goroutine, unless close was called. Its context ends with close.
func (b *background) spawn(f func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.run(f)
	}
}

// after calls f with the job locked after a time, unless the job was removed by then.
func (b *background) after(j *job, d time.Duration, f func(*job)) {
	t := time.AfterFunc(d, func() {
		b.spawn(func(context.Context) {
			j.mu.Lock()
			defer j.mu.Unlock()
			if !j.removing {
				f(j)
			}
		})
	})
	j.timers = append(j.timers, t)
}

// close starts no more goroutines. The running ones end soon: see wait.
func (b *background) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.cancel()
}

// wait returns when all work has ended.
func (b *background) wait() { b.wg.Wait() }
