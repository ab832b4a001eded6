// Package control has the machinery that every service needs around its decisions: a loop with retries, a lease that one process holds at a
// time, growing pauses, and signals. It imports no driver and no client of a cluster; package queue below it does.
package control

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Sleep waits for d. It returns false at once when ctx is done.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// Await calls ready until it returns nil, and returns false when ctx is done. It pauses for 10 ms at first, and for a sixteenth of the wait
// so far later on, at most for 1 s: a server that starts is noticed at once, and one that is away for long is seldom asked.
func Await(ctx context.Context, ready func(context.Context) error) bool {
	const least, most, part = 10 * time.Millisecond, time.Second, 16
	for start := time.Now(); ctx.Err() == nil; Sleep(ctx, min(max(time.Since(start)/part, least), most)) {
		if ready(ctx) == nil {
			return ctx.Err() == nil
		}
	}
	return false
}

// wake is a signal without a value. Signals that are not received yet count as one. Copies of a wake are the same signal.
type wake struct{ c chan struct{} }

// newWake returns a signal that is not set.
func newWake() wake { return wake{make(chan struct{}, 1)} }

// Signal sets the signal. It never blocks.
func (w wake) Signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// C returns the channel to receive the signal from, by one goroutine each time.
func (w wake) C() <-chan struct{} { return w.c }

// clear resets a signal that is not received yet.
func (w wake) clear() {
	select {
	case <-w.c:
	default:
	}
}

// failure is the state of repeated work. It logs the first failure in a row and the success after it.
type failure struct {
	log              *zap.Logger
	failing, working string // messages

	mu  sync.Mutex
	err error
}

// note records the result of one try.
func (f *failure) note(err error) {
	f.mu.Lock()
	was := f.err
	f.err = err
	f.mu.Unlock()
	switch {
	case err != nil && was == nil:
		f.log.Warn(f.failing, zap.Error(err))
	case err == nil && was != nil:
		f.log.Info(f.working)
	}
}

// reset clears a failure without logging.
func (f *failure) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = nil
}

// last returns the error of the last try.
func (f *failure) last() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
