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

// timerKind is what a job waits for. A job has at most one pending timer of each kind.
type timerKind int

const (
	launchTimer   timerKind = iota // its launch is tried again
	deadlineTimer                  // its deadline passes
	killTimer                      // its shim is killed
	frozenTimer                    // its shim is checked for having been stopped by a signal
	removalTimer                   // it was kept long enough
	checkTimer                     // its state and its shim are checked again
)

// after calls f with the locked job locked again after a time, unless the job was removed or a later call of after for the same job and
// kind came by then.
func (b *background) after(j *job, kind timerKind, d time.Duration, f func(*job)) {
	if t := j.timers[kind]; t != nil {
		t.Stop()
	}
	j.timers[kind] = time.AfterFunc(d, func() {
		b.spawn(func(context.Context) {
			j.mu.Lock()
			defer j.mu.Unlock()
			if !j.removing {
				f(j)
			}
		})
	})
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
