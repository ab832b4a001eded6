package index

import (
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// indexer stores the events that it gets.
type indexer struct{ store Store }

// metrics returns when all samples of events are stored.
func (i *indexer) metrics(ctx context.Context, events []event.Metrics) ([]event.Event, error) {
	batches := samplesOf(events)
	if err := i.store.AppendSamples(ctx, batches); err != nil {
		return nil, refused(fmt.Errorf("store samples of %d batches: %w", len(batches), err))
	}
	return nil, nil
}

// logs returns when all lines of events are stored, and where their pods run: the environment first, so that it is there once the ends of
// all streams are, and a run is summarised.
func (i *indexer) logs(ctx context.Context, events []event.Logs) ([]event.Event, error) {
	if err := i.environments(ctx, events); err != nil {
		return nil, refused(err)
	}
	batches := linesOf(events)
	if err := i.store.AppendLines(ctx, batches); err != nil {
		return nil, refused(fmt.Errorf("store lines of %d batches: %w", len(batches), err))
	}
	return nil, nil
}
