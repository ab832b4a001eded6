package control

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"
)

// Work does the due work, and returns the time until more is due. Zero leaves that to the loop, a negative duration means at once. It may
// be called when no work is due. After an error it is called again after next or, if that is zero, after the back-off of the loop.
type Work func(ctx context.Context) (next time.Duration, err error)

// LoopSettings is optional. The zero value waits as long after a failure as after
// a success.
type LoopSettings struct {
	// Backoff gives the waits after failures in a row.
	Backoff Backoff
	// Steady is for work that lasts: a call that fails after it lasted longer is the
	// first failure of a row. Zero means that a failing call never worked.
	Steady time.Duration
	// Eager has Wake end the wait after a failure too. Otherwise Wake is heard once
	// that wait is over.
	Eager bool
	// Failing and Working are the messages that are logged once for a row of
	// failures, at its begin and its end. Zero values name the loop.
	Failing, Working string
}

// Loop does its work when it is woken, and every so often.
type Loop struct {
	every    time.Duration
	work     Work
	settings LoopSettings
	wake     wake
	failure  failure
}

// NewLoop returns a loop that waits for every, zero meaning 30s, from the end of a
// call of work to the next.
func NewLoop(name string, every time.Duration, log *zap.Logger, work Work, s LoopSettings) *Loop {
	every = cmp.Or(every, 30*time.Second)
	s.Backoff.Reset()
	failing, working := cmp.Or(s.Failing, name+" failed, retrying"), cmp.Or(s.Working, name+" works again")
	return &Loop{every: every, work: work, settings: s, wake: newWake(), failure: failure{log: log, failing: failing, working: working}}
}

// Wake starts the work soon, once for all calls before it begins. It never blocks, and may be called before Run and by the work itself.
func (l *Loop) Wake() { l.wake.Signal() }

// Ready returns the error of the last call of work, nil if it succeeded or there was none.
func (l *Loop) Ready(context.Context) error { return l.failure.last() }

// Run does the work, at once and then again and again, and returns nil when ctx is
// done and the work has returned. Failures in a row are logged once, and once that
// they are over. One goroutine at a time may run a loop.
func (l *Loop) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		l.step(ctx)
	}
	return nil
}

// step does the work once and waits until the next time.
func (l *Loop) step(ctx context.Context) {
	l.wake.clear()
	began := time.Now()
	next, err := l.work(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil && l.settings.Steady > 0 && time.Since(began) > l.settings.Steady {
		l.failure.reset()
		l.settings.Backoff.Reset()
	}
	l.failure.note(err)
	l.wait(ctx, next, err)
}

// wait waits until the next time of the work.
func (l *Loop) wait(ctx context.Context, next time.Duration, err error) {
	woken := l.wake.C()
	switch {
	case err == nil:
		l.settings.Backoff.Reset()
	case next == 0:
		next = l.settings.Backoff.Next()
	}
	if err != nil && !l.settings.Eager {
		woken = nil
	}
	timer := time.NewTimer(cmp.Or(next, l.every))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-woken:
	}
}
