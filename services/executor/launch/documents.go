package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// kindDeferred are the documents of attempts whose descriptor an executor could not
// read, though the gateway accepted it: run and attempt → DeferredAttempt.
const kindDeferred store.Kind = "unread"

// DeferredAttempt is an attempt that waits for an executor that is as new as the gateway which
// accepted its descriptor.
type DeferredAttempt struct {
	Run   event.Fetched `json:"run"`
	Since time.Time     `json:"since"`
}

// Documents are the documents of the executor in a store.
type Documents struct{ slots.Documents }

// Facts returns what is known of an attempt before a decision about it.
func (d Documents) Facts(ctx context.Context, h slots.AttemptKey) (Facts, error) {
	run, err := d.Run(ctx, h.Run)
	if err != nil {
		return Facts{}, err
	}
	plan, err := d.Plan(ctx, h)
	if err != nil {
		return Facts{}, err
	}
	canceled, err := store.Canceled(ctx, d.Store, h.Run)
	return Facts{RunFinished: run.Phase == event.PhaseFinished, Plan: plan, Canceled: canceled}, err
}

// Plan returns an attempt's plan, nil where there is none.
func (d Documents) Plan(ctx context.Context, h slots.AttemptKey) (*Plan, error) {
	p, _, found, err := store.Find[Plan](ctx, d.Store, store.KindPlan, h.DocKey())
	if err != nil {
		return nil, fmt.Errorf("look for the plan of %s: %w", h.DocKey(), err)
	}
	if !found {
		return nil, nil
	}
	return &p, nil
}

// PutPlanIfAbsent makes p the plan of its attempt unless there is one already, and
// returns the plan that there is then.
func (d Documents) PutPlanIfAbsent(ctx context.Context, p Plan) (Plan, error) {
	h := slots.AttemptKey{Run: p.Run.Run, Attempt: p.Run.Attempt}
	err := store.Create(ctx, d.Store, store.KindPlan, h.DocKey(), p)
	if err == nil {
		return p, nil
	}
	if !errors.Is(err, store.ErrExists) {
		return Plan{}, fmt.Errorf("store the plan of %s: %w", h.DocKey(), err)
	}
	existing, err := d.Plan(ctx, h)
	if err != nil {
		return Plan{}, err
	}
	if existing == nil {
		return Plan{}, fmt.Errorf("store the plan of %s: it was there and is not", h.DocKey())
	}
	return *existing, nil
}

// Deferred are the attempts whose descriptor an executor could not read.
func (d Documents) Deferred() skew.Queue[DeferredAttempt] {
	return skew.NewQueue[DeferredAttempt](d.Store, kindDeferred, "")
}

// Defer puts an attempt aside whose descriptor this executor cannot read. The first
// time counts for how long it may wait.
func (d Documents) Defer(ctx context.Context, run event.Fetched, now time.Time) (DeferredAttempt, error) {
	h := slots.AttemptKey{Run: run.Run, Attempt: run.Attempt}
	return d.Deferred().PutIfAbsent(ctx, h.DocKey(), DeferredAttempt{Run: run, Since: now.UTC()})
}
