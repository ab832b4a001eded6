package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// waiter tries again what fails, and tells what is being waited for.
type waiter struct {
	bus  *Bus
	name string
	log  *zap.Logger

	aside bool // nobody need know that it waits
}

// persist calls do until it succeeds, with growing waits between. It logs the
// first failure and the end of the trouble, not what lies between, be it of
// several calls. Its only errors are event.ErrPoison, which no repetition heals,
// and ctx's, with the last of do's that says more than that ctx is done.
func (w waiter) persist(ctx context.Context, what string, do func() error) error {
	tries := 1
	var last error
	for wait := w.bus.settings.Retry; ; wait = min(2*wait, 32*w.bus.settings.Retry) {
		err := do()
		if err == nil || errors.Is(err, event.ErrPoison) {
			w.over(what, tries)
			return err
		}
		if last == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			last = err
		}
		if ctx.Err() != nil {
			w.givesUp(what)
			return stopped(ctx, what, last)
		}
		w.waits(what, err)
		tries++
		select {
		case <-ctx.Done():
			w.givesUp(what)
			return stopped(ctx, what, last)
		case <-time.After(wait):
		}
	}
}

// waits notes that what fails with err, and says so unless that was said before.
func (w waiter) waits(what string, err error) {
	key := w.name + " " + what
	w.bus.mu.Lock()
	_, again := w.bus.told[key]
	w.bus.told[key] = struct{}{}
	if !w.aside {
		w.bus.waiting[key] = err
	}
	w.bus.mu.Unlock()
	w.bus.settings.Meter.Waits(w.name, what)
	if !again {
		w.log.Warn("waits", zap.String("step", what), zap.Error(err))
	}
}

// over notes that what succeeds again.
func (w waiter) over(what string, tries int) {
	key := w.name + " " + what
	w.bus.mu.Lock()
	_, told := w.bus.told[key]
	delete(w.bus.waiting, key)
	delete(w.bus.told, key)
	w.bus.mu.Unlock()
	if told {
		w.log.Info("goes on", zap.String("step", what), zap.Int("tries", tries))
	}
}

// givesUp notes that nobody waits for what any more, though it does not succeed.
func (w waiter) givesUp(what string) {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	delete(w.bus.waiting, w.name+" "+what)
}

// stopped returns ctx's error, and err where it says more than that.
func stopped(ctx context.Context, what string, err error) error {
	if errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
}
