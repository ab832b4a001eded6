package watcher

import (
	"context"
	"sync"
	"time"
)

// workQueue is what to look at, each attempt once, however often it came up, and
// none by two at a time.
type workQueue struct {
	mu         sync.Mutex
	ready      []attempt
	queued     map[attempt]bool // in ready, or to be once it is done
	processing map[attempt]bool
	timers     map[attempt]*time.Timer
	notEmpty   chan struct{} // has one in it while ready may not be empty
}

func newWorkQueue() *workQueue {
	return &workQueue{
		queued: make(map[attempt]bool), processing: make(map[attempt]bool), timers: make(map[attempt]*time.Timer), notEmpty: make(chan struct{}, 1),
	}
}

// enqueue puts an attempt onto the agenda.
func (g *workQueue) enqueue(a attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.enqueueLocked(a)
}

func (g *workQueue) enqueueLocked(a attempt) {
	if g.queued[a] {
		return
	}
	g.queued[a] = true
	if !g.processing[a] {
		g.ready = append(g.ready, a)
		g.signal()
	}
}

func (g *workQueue) signal() {
	select {
	case g.notEmpty <- struct{}{}:
	default: // somebody will look
	}
}

// get waits for an attempt, and gives it to the caller until done. It is false
// once ctx is done.
func (g *workQueue) get(ctx context.Context) (attempt, bool) {
	for {
		if a, ok := g.tryGet(); ok && ctx.Err() == nil {
			return a, true
		}
		select {
		case <-ctx.Done():
			return attempt{}, false
		case <-g.notEmpty:
		}
	}
}

func (g *workQueue) tryGet() (attempt, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.ready) == 0 {
		return attempt{}, false
	}
	a := g.ready[0]
	g.ready = g.ready[1:]
	delete(g.queued, a)
	g.processing[a] = true
	if t, ok := g.timers[a]; ok {
		t.Stop()
		delete(g.timers, a)
	}
	if len(g.ready) > 0 {
		g.signal()
	}
	return a, true
}

// done gives an attempt back, which comes up again at a time, unless that is
// zero.
func (g *workQueue) done(a attempt, requeueAt, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.processing, a)
	switch {
	case g.queued[a]:
		g.ready = append(g.ready, a)
		g.signal()
	case !requeueAt.IsZero():
		g.timers[a] = time.AfterFunc(requeueAt.Sub(now), func() { g.enqueue(a) })
	}
}
