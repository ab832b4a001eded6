// Package crashtest kills the process of a test before or after each of its effects.
package crashtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// ErrDead is the error of every call of a process that was killed.
var ErrDead = errors.New("the process is dead")

// Process is one process of a test. Store, Bus and Cluster return wrappers for the things that outlive the process: each write is an
// effect, and after the process was killed, every call fails. Several goroutines may use a Process: an effect that began before the kill
// may still happen.
type Process struct {
	// BeforeEffect is called before each effect with its number, which counts from 1; nil calls nothing. It is set before the first effect.
	BeforeEffect func(effect int)

	dieAt       int // the number of the last effect; 0 for none
	after       bool
	overtakenAt int // the number of the effect before which another is faster; 0 for none

	mu      sync.Mutex
	dead    bool
	effects int
	stops   []context.CancelFunc // end the goroutines of the process
}

// New returns a process that is killed at the effect with that number, before the effect or right after it. With 0 only Kill ends it.
func New(effect int, after bool) *Process {
	return &Process{dieAt: effect, after: after}
}

// Points yields a process that is killed before its first effect, then one that is killed after it, and so on, one at a time, until both
// processes for an effect have survived.
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

// Overtaken yields a process that is overtaken before its first effect, then one before its second, and so on, until one has ended before
// that effect. None of them is killed. OvertakeWith says by what they are overtaken.
func Overtaken() iter.Seq[*Process] {
	return func(yield func(*Process) bool) {
		for at := 1; ; at++ {
			p := &Process{overtakenAt: at}
			if !yield(p) || p.Effects() < at {
				return
			}
		}
	}
}

// OvertakeWith has other be called right before the effect of a process of Overtaken, once. It is set before the first effect.
func (p *Process) OvertakeWith(other func()) {
	p.BeforeEffect = func(effect int) {
		if effect == p.overtakenAt {
			other()
		}
	}
}

// String returns the effect at which the process is killed, or overtaken, for the messages of a test.
func (p *Process) String() string {
	switch {
	case p.overtakenAt > 0:
		return fmt.Sprintf("is overtaken before effect %d", p.overtakenAt)
	case p.dieAt == 0:
		return "never dies"
	case p.after:
		return fmt.Sprintf("dies after effect %d", p.dieAt)
	}
	return fmt.Sprintf("dies before effect %d", p.dieAt)
}

// Do performs an effect, unless the process was killed or is killed before it. If the process is killed after the effect, Do returns
// ErrDead.
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
		_ = effect() // the result is lost
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

// Alive returns ErrDead if the process was killed.
func (p *Process) Alive() error {
	if p.Dead() {
		return ErrDead
	}
	return nil
}

// Dead reports whether the process was killed.
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

// Context returns a context for the goroutines of the process. It is done when the process is killed, and when stop is called, which the
// caller must do at the end.
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
