package set

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/gateway/set/results"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Rerun is a request for a set of the runs of another one.
type Rerun struct {
	Owner  string // of the new set
	Key    string // idempotency key; empty means that a repeated request is another set
	Failed bool   // only the runs that did not succeed
}

// Rerun creates a set of the runs of another one, or returns the one that the same request
// has made under its key. The runs that it makes are decided once, when its request is
// stored. The error is *MissingError, *StateError, or one of Put.
func (k *Sets) Rerun(ctx context.Context, owner, ref string, req Rerun) (Set, error) {
	old, err := k.docs.find(ctx, owner, ref)
	if err != nil {
		return Set{}, err
	}
	now := k.timestamp()
	id, err := k.newID(submit.Request{Owner: req.Owner, Key: req.Key}, now)
	if err != nil {
		return Set{}, err
	}
	s := old.rerun(req, id, now)
	if req.Key != "" {
		if _, err := k.deps.Submitter.ClaimKey(ctx, s.Owner, s.Key, s.ID, s.Digest); err != nil {
			return Set{}, err
		}
	}
	if made, found, err := k.docs.load(ctx, s.ID); err != nil || found {
		return made, cmp.Or(err, s.checkSame(made))
	}
	r, err := k.rerunRequest(ctx, old, s, req.Failed)
	if err != nil {
		return Set{}, err
	}
	if r.Selected != nil {
		s.Runs = len(bitsOf(r.Selected))
	}
	if s, _, err = k.create(ctx, s, r); err != nil {
		return Set{}, err
	}
	k.deps.Log.Info("set", zap.String("set", s.ID), zap.String("owner", s.Owner), zap.String("rerun_of", old.ID), zap.Int("runs", s.Runs))
	k.runner.Open(s.ID)
	return s, nil
}

// rerunRequest stores what the runs of a rerun are made of, unless an earlier try has, and
// returns it as it is stored.
func (k *Sets) rerunRequest(ctx context.Context, old, s Set, failed bool) (request, error) {
	r, err := k.docs.request(ctx, s)
	if !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	if r, err = k.docs.request(ctx, old); err != nil {
		return request{}, err
	}
	if failed {
		if r.Selected, err = k.unsuccessful(ctx, old); err != nil {
			return request{}, err
		}
	}
	if err := k.docs.createRequest(ctx, s.ID, s.Digest, r); err != nil {
		return request{}, &submit.UnavailableError{Err: err}
	}
	return k.docs.request(ctx, s)
}

// unsuccessful returns a bit for each run of the sweep that the set has not made, or that
// did not succeed. It lists the runs of the set, and reads one by one only those that the list
// leaves open, so that it is quick for the largest set. The error is *StateError for a set that
// has not finished, or without such a run.
func (k *Sets) unsuccessful(ctx context.Context, s Set) ([]byte, error) {
	if s.State != StateFinished {
		return nil, &StateError{Message: fmt.Sprintf("set %s has not finished: wait for that, or cancel it, then run again what did not succeed", s.ID)}
	}
	l, err := k.cellPlan(ctx, s)
	if err != nil {
		return nil, err
	}
	listed, err := k.listEnded(ctx, s, l.plan)
	if err != nil {
		return nil, err
	}
	again, unknown := decideRerun(s, l, listed, k.timestamp())
	var mu sync.Mutex
	err = results.ForEach(ctx, len(unknown), func(ctx context.Context, i int) error {
		wanted, err := k.isUnsuccessful(ctx, s, l, unknown[i])
		if err != nil || !wanted {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		again = append(again, unknown[i])
		return nil
	})
	if err == nil && len(again) == 0 {
		err = &StateError{Message: fmt.Sprintf("all runs of set %s succeeded: it has none to run again", s.ID)}
	}
	return l.selection(again), err
}

// listEnded lists the runs of a set that have ended.
func (k *Sets) listEnded(ctx context.Context, s Set, plan *sweep.Plan) (listedRuns, error) {
	cells := make(map[string]int, plan.Cells())
	for cell := range plan.Cells() {
		cells[plan.Cell(cell).Name] = cell
	}
	listed := make(listedRuns)
	for token := ""; ; {
		runs, next, err := k.results.Runs(ctx, s.ID, "", token, results.MaxPageRuns)
		if err != nil {
			return nil, fmt.Errorf("list the runs of set %s: %w", s.ID, err)
		}
		for _, r := range runs {
			if cell, found := cells[r.Cell]; found {
				listed.add(cell, r)
			}
		}
		if next == "" {
			return listed, nil
		}
		token = next
	}
}

// isUnsuccessful reports whether a run of a set did not succeed, as decideRerun does, by reading
// it.
func (k *Sets) isUnsuccessful(ctx context.Context, s Set, l loaded, ordinal int) (bool, error) {
	id, err := k.deps.Submitter.RunOfCell(ctx, s.ID, runKey(ordinal))
	if errors.Is(err, store.ErrNotFound) {
		return !s.skips(l.run(ordinal)), nil
	}
	if err != nil {
		return false, err
	}
	run, err := k.deps.Store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return run.Outcome != event.Succeeded, err
}

// rerunDigest returns a digest that is equal for requests for the same rerun.
func rerunDigest(set string, failed bool) string {
	return event.Derive("rerun", set, strconv.FormatBool(failed))
}
