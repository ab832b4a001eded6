package watcher

import (
	"context"
	"sync"
	"time"
)

// agenda is what to look at, each attempt once, however often it came up, and
// none by two at a time.
type agenda struct {
	mu     sync.Mutex
	ready  []attempt
	listed map[attempt]bool // in ready, or to be once it is done
	busy   map[attempt]bool
	timers map[attempt]*time.Timer
	more   chan struct{} // has one in it while ready may not be empty
}

func newAgenda() *agenda {
	return &agenda{
		listed: make(map[attempt]bool), busy: make(map[attempt]bool), timers: make(map[attempt]*time.Timer), more: make(chan struct{}, 1),
	}
}

// now puts an attempt onto the agenda.
func (g *agenda) now(a attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(a)
}

func (g *agenda) add(a attempt) {
	if g.listed[a] {
		return
	}
	g.listed[a] = true
	if !g.busy[a] {
		g.ready = append(g.ready, a)
		g.signal()
	}
}

func (g *agenda) signal() {
	select {
	case g.more <- struct{}{}:
	default: // somebody will look
	}
}

// next waits for an attempt, and gives it to the caller until done. It is false
// once ctx is done.
func (g *agenda) next(ctx context.Context) (attempt, bool) {
	for {
		if a, ok := g.take(); ok && ctx.Err() == nil {
			return a, true
		}
		select {
		case <-ctx.Done():
			return attempt{}, false
		case <-g.more:
		}
	}
}

func (g *agenda) take() (attempt, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.ready) == 0 {
		return attempt{}, false
	}
	a := g.ready[0]
	g.ready = g.ready[1:]
	delete(g.listed, a)
	g.busy[a] = true
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
func (g *agenda) done(a attempt, again, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.busy, a)
	switch {
	case g.listed[a]:
		g.ready = append(g.ready, a)
		g.signal()
	case !again.IsZero():
		g.timers[a] = time.AfterFunc(again.Sub(now), func() { g.now(a) })
	}
}
