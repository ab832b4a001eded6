package analyst

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Tick does what the clock of an analyst does once.
func Tick(ctx context.Context, d Deps) error {
	t := newTicker(Settings{Lease: time.Minute}, d, newAnalyst(d))
	defer t.leader.Release(ctx)
	_, err := t.tick(ctx)
	return err
}

// Summarised is the step of an analyst whose decisions are made by a function.
func Summarised(d Deps, decide func(rule.Input) rule.Output) func(context.Context, event.Summarised) ([]event.Event, error) {
	a := newAnalyst(d)
	a.decide = decide
	return a.summarised
}
