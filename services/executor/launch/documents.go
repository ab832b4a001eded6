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
	"github.com/benchmark-ai/bai/services/plan/always"
)

// kindDeferred is the kind of documents of deferred attempts, by run and attempt. The
// gateway accepted the descriptor of such an attempt, but an executor could not read
// it.
const kindDeferred store.Kind = "unread"

// DeferredAttempt is an attempt that waits for an executor that can read its
// descriptor.
type DeferredAttempt struct {
	Run   event.Fetched `json:"run"`
	Since time.Time     `json:"since"`
}

// Documents are the documents of the executor in a store.
type Documents struct{ slots.Documents }

// Facts returns the input of a decision about an attempt, without Images.
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

// Plan returns an attempt's plan, or nil if there is none.
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

// PutPlanIfAbsent stores p as the plan of its attempt, unless the attempt has a plan,
// and returns the stored plan.
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

// Always returns the documents about steps at the end of attempts.
func (d Documents) Always() always.Documents { return always.Documents{Store: d.Store} }

// Deferred returns the queue of deferred attempts.
func (d Documents) Deferred() skew.Queue[DeferredAttempt] {
	return skew.NewQueue[DeferredAttempt](d.Store, kindDeferred, "")
}

// Defer defers an attempt whose descriptor this executor cannot read. If the attempt is
// deferred already, its first time stays, which limits how long it may wait.
func (d Documents) Defer(ctx context.Context, run event.Fetched, now time.Time) (DeferredAttempt, error) {
	h := slots.AttemptKey{Run: run.Run, Attempt: run.Attempt}
	return d.Deferred().PutIfAbsent(ctx, h.DocKey(), DeferredAttempt{Run: run, Since: now.UTC()})
}
