package dataset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// RunEnded reports whether a run has finished, and so needs no data.
func (c *Cache) RunEnded(ctx context.Context, run string) (bool, error) {
	r, err := c.store.Run(ctx, run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at run %s: %w", run, err)
	}
	return r.Phase == event.PhaseFinished, nil
}

// Ending returns the outcome of a run's order, or nil if there is none yet.
func (c *Cache) Ending(ctx context.Context, run string) (*Ending, error) {
	e, _, found, err := store.Find[Ending](ctx, c.store, store.KindOrder, DoneOrderPrefix+run)
	if err != nil {
		return nil, fmt.Errorf("look for the end of the order of run %s: %w", run, err)
	}
	if !found {
		return nil, nil //nolint:nilnil // not ended is not an error
	}
	return &e, nil
}

// State returns the state of a source for a request at that time.
func (c *Cache) State(ctx context.Context, s Source, requestedAt time.Time) (SourceState, error) {
	if s.Uploaded {
		o, err := c.Object(ctx, s.SHA256)
		if o == nil && err == nil {
			return SourceState{Failure: s.codeLost()}, nil
		}
		return SourceState{Object: o}, err
	}
	d, _, _, err := store.Find[Download](ctx, c.store, store.KindDownload, s.Key())
	if err != nil {
		return SourceState{}, err
	}
	if d.Tree == nil && !source.IsFolder(s.URL) {
		if o, err := c.Object(ctx, s.SHA256); o != nil || err != nil {
			return SourceState{Object: o}, err
		}
	}
	if !d.satisfies(s, requestedAt) {
		return SourceState{}, nil
	}
	if d.Failure != nil {
		return SourceState{Failure: d.Failure}, nil
	}
	o, err := c.Object(ctx, d.SHA256)
	return SourceState{Object: o, Tree: d.Tree, Revision: d.Revision}, err
}

// Object returns the object with that digest, or nil if it is missing or incomplete.
func (c *Cache) Object(ctx context.Context, sha256 string) (*store.Object, error) {
	if sha256 == "" {
		return nil, nil //nolint:nilnil // no object is not an error
	}
	o, _, found, err := store.Find[store.Object](ctx, c.store, store.KindObject, sha256)
	if !found || err != nil {
		return nil, err
	}
	size, err := c.objects.Size(ctx, o.Key)
	if errors.Is(err, store.ErrNotFound) || err == nil && size != o.Size {
		return nil, nil //nolint:nilnil // likewise
	}
	return &o, err
}

// Claim records that objects are used, so that none is evicted before the run that gets
// them is stored. It reports whether all of them are still stored.
func (c *Cache) Claim(ctx context.Context, states map[string]SourceState) (present bool, err error) {
	for _, s := range states {
		if present, err := store.Claim(ctx, c.store, *s.Object, time.Now()); !present || err != nil {
			return false, err
		}
	}
	return true, nil
}
