package index

import (
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// environments stores the environments in events.
func (i *indexer) environments(ctx context.Context, events []event.Logs) error {
	for _, ev := range events {
		if ev.Environment == nil {
			continue
		}
		p := store.PodEnvironment{Origin: origin(ev.Header, ev.Stream), Environment: *ev.Environment}
		_, err := store.Update(ctx, i.store, store.KindEnvironment, ev.Run,
			func(is store.RunEnvironment, _ bool) (store.RunEnvironment, bool, error) {
				next, changed := is.With(p)
				return next, changed, nil
			})
		if err != nil {
			return fmt.Errorf("store where run %s runs: %w", ev.Run, err)
		}
	}
	return nil
}
