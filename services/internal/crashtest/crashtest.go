// Package crashtest kills the process of a test before or after each of its effects.
package crashtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// ErrDead is the answer to every call of a process that has died.
var ErrDead = errors.New("the process is dead")

// Process stands for one process of a test. Store, Bus and Cluster give what outlives the
// process as the process reaches it: each write is an effect, and once the process
// has died, nothing is reached any more. A Process may be used by several goroutines:
// an effect that began before the death of the process may still happen.
type Process struct {
	// BeforeEffect is called before each effect with its number, which counts from 1;
	// nil calls nothing. It is set before the first effect.
	BeforeEffect func(effect int)

	dieAt int // the number of the last effect; 0: none is
	after bool

	mu      sync.Mutex
	dead    bool
	effects int
	stops   []context.CancelFunc // end what the process runs
}

// New returns a process that dies at its effect of that number, before the effect
// happens or right after it. With 0 only Kill ends it.
func New(effect int, after bool) *Process {
	return &Process{dieAt: effect, after: after}
}

// Points yields a process that dies before its first effect, then one that dies after
// it, and so on, one at a time, until both processes for an effect have survived.
func Points() iter.Seq[*Process] {
	return func(yield func(*Process) bool) {
		for effect, deaths := 1, 1; deaths > 0; effect++ {
			deaths = 0
			for _, after := range []bool{false, true} {
				p := New(effect, after)
				if !yield(p) {
					return
				}
				if p.Dead() {
					deaths++
				}
			}
		}
	}
}

// String says at which effect the process dies, for the messages of a test.
func (p *Process) String() string {
	switch {
	case p.dieAt == 0:
		return "never dies"
	case p.after:
		return fmt.Sprintf("dies after effect %d", p.dieAt)
	}
	return fmt.Sprintf("dies before effect %d", p.dieAt)
}

// Do performs an effect, unless the process is dead or dies before it. The process
// gets ErrDead for the effect after which it dies.
func (p *Process) Do(effect func() error) error {
	n, err := p.next()
	if err != nil {
		return err
	}
	if p.BeforeEffect != nil {
		p.BeforeEffect(n)
	}
	if n != p.dieAt {
		return effect()
	}
	if p.after {
		_ = effect() // the answer reaches nobody
	}
	p.Kill()
	return ErrDead
}

// next counts an effect.
func (p *Process) next() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return 0, ErrDead
	}
	p.effects++
	p.dead = p.effects == p.dieAt
	return p.effects, nil
}

// Kill ends the process now.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for _, stop := range p.stops {
		stop()
	}
}

// Alive returns ErrDead if the process has died.
func (p *Process) Alive() error {
	if p.Dead() {
		return ErrDead
	}
	return nil
}

// Dead reports whether the process has died.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Effects returns the number of effects so far.
func (p *Process) Effects() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.effects
}

// Context returns a context for all that the process runs. It is done when the process
// dies, and when stop is called, which is to be called in the end.
func (p *Process) Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(parent)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		stop()
	}
	p.stops = append(p.stops, stop)
	return ctx, stop
}
