package summarise

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// storePoints stores the points of a run that has ended, made of its summary as it is stored now. It may be repeated.
func (s pointStorer) storePoints(ctx context.Context, r store.Run, imported bool) error {
	results := points.Results{Imported: imported}
	all, revision, found, err := store.Find[store.Summaries](ctx, s.store, store.KindSummary, r.ID)
	if err != nil {
		return fmt.Errorf("read the summary of run %s: %w", r.ID, err)
	}
	if found {
		results.Summaries, results.Revision = &all, revision
	}
	environment, _, _, err := store.Find[store.RunEnvironment](ctx, s.store, store.KindEnvironment, r.ID)
	if err != nil {
		return fmt.Errorf("read the environment of run %s: %w", r.ID, err)
	}
	results.Environment = environment.Attempt(r.Attempt)
	err = s.store.PutPoints(ctx, points.Of(r, results))
	if errors.Is(err, store.ErrRefused) { // the same points are refused again: nothing waits for them
		s.log.Error("the points of a run are refused", zap.String("run", r.ID), zap.Error(err))
		return nil
	}
	return err
}

// pointStorer stores points.
type pointStorer struct {
	store Store
	log   *zap.Logger
}

// ended reports whether the record of a run has its end, which the points of the run need.
func ended(r store.Run) bool { return r.Phase == event.PhaseFinished }
