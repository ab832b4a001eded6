package summarise

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// storePoints stores the points of a run that has ended, made of its summary as it is stored now, and returns the event
// that follows. It may be repeated. Without points there is no event: it has no ID.
func (s pointStorer) storePoints(ctx context.Context, r store.Run, imported bool) (event.Summarised, error) {
	results := points.Results{Imported: imported}
	all, revision, found, err := store.Find[store.Summaries](ctx, s.store, store.KindSummary, r.ID)
	if err != nil {
		return event.Summarised{}, fmt.Errorf("read the summary of run %s: %w", r.ID, err)
	}
	if found {
		results.Summaries, results.Revision = &all, revision
	}
	environment, _, _, err := store.Find[store.RunEnvironment](ctx, s.store, store.KindEnvironment, r.ID)
	if err != nil {
		return event.Summarised{}, fmt.Errorf("read the environment of run %s: %w", r.ID, err)
	}
	results.Environment = environment.Attempt(r.Attempt)
	p := points.Of(r, results)
	err = s.store.PutPoints(ctx, p)
	if errors.Is(err, store.ErrRefused) { // the same points are refused again: nothing waits for them
		s.log.Error("the points of a run are refused", zap.String("run", r.ID), zap.Error(err))
		return event.Summarised{}, nil
	}
	return summarised(r, p), err
}

// summarised returns the event that points of a run are stored. It is the same whoever stores these points, and however often.
func summarised(r store.Run, p store.RunPoints) event.Summarised {
	h := event.NewHeader(event.Derive("summarised", r.ID, strconv.FormatInt(p.Revision, 10)), r.ID, r.Namespace, r.Owner, r.Created.UTC())
	h.Attempt, h.Lineage = max(r.Attempt, 1), r.Lineage
	if r.Ended != nil {
		h.Time = r.Ended.UTC()
	}
	return event.Summarised{Header: h, Revision: p.Revision, Complete: p.Complete}
}

// pointStorer stores points.
type pointStorer struct {
	store Store
	log   *zap.Logger
}

// ended reports whether the record of a run has its end, which the points of the run need.
func ended(r store.Run) bool { return r.Phase == event.PhaseFinished }
