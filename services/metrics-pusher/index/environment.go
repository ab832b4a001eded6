package index

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// environments stores where pods run, as far as events say so.
func (i *indexer) environments(ctx context.Context, events []event.Logs) error {
	for _, ev := range events {
		if ev.Environment == nil {
			continue
		}
		p := store.PodEnvironment{Origin: origin(ev.Header, ev.Stream), Environment: *ev.Environment}
		if err := i.environment(ctx, p); err != nil {
			return fmt.Errorf("store where run %s runs: %w", ev.Run, err)
		}
	}
	return nil
}

// environment adds what a pod says to what is known of its run, again and again
// while others do the same.
func (i *indexer) environment(ctx context.Context, p store.PodEnvironment) error {
	for {
		known, version, err := store.Get[store.RunEnvironment](ctx, i.store, store.KindEnvironment, p.Origin.Run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		all, changed := known.With(p)
		if !changed {
			return nil
		}
		if version == 0 {
			err = store.Create(ctx, i.store, store.KindEnvironment, p.Origin.Run, all)
		} else {
			_, err = store.Replace(ctx, i.store, store.KindEnvironment, p.Origin.Run, version, all)
		}
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrExists) || ctx.Err() != nil {
			return err
		}
	}
}
