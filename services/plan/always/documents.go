package always

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Documents are the pending ends and the results in a store. They are created once; the results stay.
type Documents struct{ Store store.Docs }

// Prefixes of the keys: only pending ends are listed.
const (
	pendingPrefix = "pending/"
	resultsPrefix = "results/"
)

// PutIfAbsent stores the end of an attempt, unless one is stored already, and returns the stored one.
func (d Documents) PutIfAbsent(ctx context.Context, p PendingEnd) (PendingEnd, error) {
	err := store.Create(ctx, d.Store, store.KindPendingEnd, pendingPrefix+store.AttemptKey(p.Run, p.Attempt), p)
	if errors.Is(err, store.ErrExists) {
		existing, found, err := d.Pending(ctx, p.Run, p.Attempt)
		if err == nil && !found {
			err = store.ErrConflict // it has just been removed
		}
		return existing, err
	}
	if err != nil {
		return p, fmt.Errorf("keep how %s/%d ends: %w", p.Run, p.Attempt, err)
	}
	return p, nil
}

// Pending returns the end of an attempt that waits for steps, if there is one.
func (d Documents) Pending(ctx context.Context, run string, attempt int) (PendingEnd, bool, error) {
	p, _, found, err := store.Find[PendingEnd](ctx, d.Store, store.KindPendingEnd, pendingPrefix+store.AttemptKey(run, attempt))
	if err != nil {
		return p, false, fmt.Errorf("look how %s/%d ends: %w", run, attempt, err)
	}
	return p, found, nil
}

// All returns the ends that wait for steps, and those whose steps have run a short while ago.
func (d Documents) All(ctx context.Context, list store.Lister) ([]PendingEnd, error) {
	var all []PendingEnd
	for doc, err := range store.All[PendingEnd](ctx, list, store.KindPendingEnd, pendingPrefix) {
		if err != nil {
			return nil, fmt.Errorf("look which ends wait for steps: %w", err)
		}
		all = append(all, doc.Value)
	}
	return all, nil
}

// Remove removes the end of an attempt, which is published.
func (d Documents) Remove(ctx context.Context, p PendingEnd) error {
	err := d.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindPendingEnd, Key: pendingPrefix + store.AttemptKey(p.Run, p.Attempt)})
	if err != nil {
		return fmt.Errorf("forget how %s/%d ended: %w", p.Run, p.Attempt, err)
	}
	return nil
}

// PutResults stores what became of the steps of an attempt, unless it is stored already.
func (d Documents) PutResults(ctx context.Context, p PendingEnd, r Results) error {
	err := store.Create(ctx, d.Store, store.KindPendingEnd, resultsPrefix+store.AttemptKey(p.Run, p.Attempt), r)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("keep what became of the steps of %s/%d: %w", p.Run, p.Attempt, err)
	}
	return nil
}

// Results returns what became of the steps of an attempt, if that is known.
func (d Documents) Results(ctx context.Context, run string, attempt int) (Results, bool, error) {
	r, _, found, err := store.Find[Results](ctx, d.Store, store.KindPendingEnd, resultsPrefix+store.AttemptKey(run, attempt))
	if err != nil {
		return r, false, fmt.Errorf("look what became of the steps of %s/%d: %w", run, attempt, err)
	}
	return r, found, nil
}
