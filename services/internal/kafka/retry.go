package kafka

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// retrier retries failing steps, and reports them.
type retrier struct {
	bus  *Bus
	name string
	log  *zap.Logger

	optional bool // its failures do not make the bus unready
}

// retry calls do until it succeeds, with growing pauses. It logs the first failure in a row and the recovery, even if the row spans several
// calls. It returns only event.ErrPoison, which no retry can cure, and the error of ctx, with the last other error of do.
func (w retrier) retry(ctx context.Context, step string, do func() error) error {
	tries := 1
	var last error
	for wait := (control.Backoff{First: w.bus.settings.Retry}); ; {
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
		if !control.Sleep(ctx, wait.Next()) {
			w.stopWaiting(step)
			return stopped(ctx, step, last)
		}
	}
}

// recordFailure records that a step fails, and logs it unless it was failing before.
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

// recordRecovery records that a step succeeds again.
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

// stopWaiting records that a step is given up without success.
func (w retrier) stopWaiting(step string) {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	delete(w.bus.failing, w.name+" "+step)
}

// stopped returns the error of ctx, with err if that is another error.
func stopped(ctx context.Context, step string, err error) error {
	if errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%s: %w", step, ctx.Err())
	}
	return fmt.Errorf("%s: %w: %w", step, ctx.Err(), err)
}
