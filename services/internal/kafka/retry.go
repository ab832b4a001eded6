package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// retrier tries again what fails, and tells what is being waited for.
type retrier struct {
	bus  *Bus
	name string
	log  *zap.Logger

	optional bool // nobody need know that it waits
}

// retry calls do until it succeeds, with growing waits between. It logs the
// first failure and the end of the trouble, not what lies between, be it of
// several calls. Its only errors are event.ErrPoison, which no repetition heals,
// and ctx's, with the last of do's that says more than that ctx is done.
func (w retrier) retry(ctx context.Context, step string, do func() error) error {
	tries := 1
	var last error
	for wait := w.bus.settings.Retry; ; wait = min(2*wait, 32*w.bus.settings.Retry) {
		err := do()
		if err == nil || errors.Is(err, event.ErrPoison) {
			w.recordRecovery(step, tries)
			return err
		}
		if last == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			last = err
		}
		if ctx.Err() != nil {
			w.stopWaiting(step)
			return stopped(ctx, step, last)
		}
		w.recordFailure(step, err)
		tries++
		select {
		case <-ctx.Done():
			w.stopWaiting(step)
			return stopped(ctx, step, last)
		case <-time.After(wait):
		}
	}
}

// recordFailure notes that what fails with err, and says so unless that was said before.
func (w retrier) recordFailure(step string, err error) {
	key := w.name + " " + step
	w.bus.mu.Lock()
	_, logged := w.bus.loggedFailures[key]
	w.bus.loggedFailures[key] = struct{}{}
	if !w.optional {
		w.bus.failing[key] = err
	}
	w.bus.mu.Unlock()
	w.bus.settings.Meter.RecordRetry(w.name, step)
	if !logged {
		w.log.Warn("waits", zap.String("step", step), zap.Error(err))
	}
}

// recordRecovery notes that what succeeds again.
func (w retrier) recordRecovery(step string, tries int) {
	key := w.name + " " + step
	w.bus.mu.Lock()
	_, logged := w.bus.loggedFailures[key]
	delete(w.bus.failing, key)
	delete(w.bus.loggedFailures, key)
	w.bus.mu.Unlock()
	if logged {
		w.log.Info("goes on", zap.String("step", step), zap.Int("tries", tries))
	}
}

// stopWaiting notes that nobody waits for what any more, though it does not succeed.
func (w retrier) stopWaiting(step string) {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	delete(w.bus.failing, w.name+" "+step)
}

// stopped returns ctx's error, and err where it says more than that.
func stopped(ctx context.Context, step string, err error) error {
	if errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%s: %w", step, ctx.Err())
	}
	return fmt.Errorf("%s: %w: %w", step, ctx.Err(), err)
}
