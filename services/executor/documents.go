package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// documents is where the executor's documents lie: queue, ledger and plans.
type documents struct {
	store    Store
	settings Settings
}

// facts returns what is known of an attempt before it is decided about.
func (d documents) facts(ctx context.Context, h AttemptKey) (Facts, error) {
	run, err := d.run(ctx, h.Run)
	if err != nil {
		return Facts{}, err
	}
	plan, err := d.plan(ctx, h)
	if err != nil {
		return Facts{}, err
	}
	canceled, err := d.hasCancelMark(ctx, h.Run)
	return Facts{RunFinished: run.Phase == event.PhaseFinished, Plan: plan, Canceled: canceled}, err
}

// run returns what is known of a run; nothing, where it is not recorded yet.
func (d documents) run(ctx context.Context, id string) (store.Run, error) {
	run, err := d.store.Run(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Run{}, fmt.Errorf("look up run %s: %w", id, err)
	}
	return run, nil
}

// lastTransition tells what is known to have become of a run in this attempt, where
// something was launched: News of the ledger's, 0 for none.
func (d documents) lastTransition(ctx context.Context, h AttemptKey) (Transition, error) {
	r, err := d.run(ctx, h.Run)
	if err != nil {
		return 0, err
	}
	switch r.Phase {
	case event.PhaseFinished:
		return Terminating, nil
	case event.PhasePending, event.PhaseRunning, event.PhaseCanceling:
		if r.Attempt == h.Attempt {
			return Launched, nil
		}
	case event.PhaseSubmitted, event.PhaseFetching, event.PhaseQueued, event.PhaseLaunching:
	}
	return 0, nil
}

// hasCancelMark reports whether a run has a cancel mark.
func (d documents) hasCancelMark(ctx context.Context, run string) (bool, error) {
	_, err := d.store.Doc(ctx, store.KindCancel, run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the cancel mark of %s: %w", run, err)
	}
	return true, nil
}

// plan returns an attempt's plan, nil where there is none.
func (d documents) plan(ctx context.Context, h AttemptKey) (*Plan, error) {
	p, _, err := store.Get[Plan](ctx, d.store, store.KindPlan, h.docKey())
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the plan of %s: %w", h.docKey(), err)
	}
	return &p, nil
}

// putPlanIfAbsent makes p the plan of its attempt unless there is one already, and
// returns the one that is.
func (d documents) putPlanIfAbsent(ctx context.Context, p Plan) (Plan, error) {
	h := AttemptKey{Run: p.Run.Run, Attempt: p.Run.Attempt}
	err := store.Create(ctx, d.store, store.KindPlan, h.docKey(), p)
	if err == nil {
		return p, nil
	}
	if !errors.Is(err, store.ErrExists) {
		return Plan{}, fmt.Errorf("keep the plan of %s: %w", h.docKey(), err)
	}
	existing, err := d.plan(ctx, h)
	if err != nil {
		return Plan{}, err
	}
	if existing == nil {
		return Plan{}, fmt.Errorf("keep the plan of %s: it was there and is not", h.docKey())
	}
	return *existing, nil
}

// queueKey is the key under which a run waits.
func (d documents) queueKey(run event.Fetched) string {
	return queueKey(d.settings.priority(run.Labels), AttemptKey{Run: run.Run, Attempt: run.Attempt})
}

// enqueue puts an attempt into the queue. One that is there stays as it is.
func (d documents) enqueue(ctx context.Context, w QueuedRun) error {
	err := store.Create(ctx, d.store, store.KindQueue, d.queueKey(w.Run), w)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("put run %s into the queue: %w", w.Run.Run, err)
	}
	return nil
}

// dequeue takes what has that key out of the queue, if it is there.
func (d documents) dequeue(ctx context.Context, key string) error {
	if err := d.store.DeleteDoc(ctx, store.Doc{Kind: store.KindQueue, Key: key}); err != nil {
		return fmt.Errorf("take %q out of the queue: %w", key, err)
	}
	return nil
}

// queuedRun returns what waits under key, nil where nothing does.
func (d documents) queuedRun(ctx context.Context, key string) (*QueuedRun, error) {
	w, _, err := store.Get[QueuedRun](ctx, d.store, store.KindQueue, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %q in the queue: %w", key, err)
	}
	return &w, nil
}

// queueHead returns the first n of the queue.
func (d documents) queueHead(ctx context.Context, n int) ([]Item, error) {
	docs, err := d.store.Docs(ctx, store.KindQueue, "", n)
	if err != nil {
		return nil, fmt.Errorf("look at the queue: %w", err)
	}
	items := make([]Item, 0, len(docs))
	for _, doc := range docs {
		p := Item{Key: doc.Key}
		if err := json.Unmarshal(doc.Value, &p.QueuedRun); err != nil {
			return nil, fmt.Errorf("read %q in the queue: %w", doc.Key, err)
		}
		items = append(items, p)
	}
	return items, nil
}

// slotTable returns the ledger and its version, 0 where there is none yet.
func (d documents) slotTable(ctx context.Context) (SlotTable, int64, error) {
	l, version, err := store.Get[SlotTable](ctx, d.store, store.KindSlotTable, slotTableKey)
	if errors.Is(err, store.ErrNotFound) {
		return SlotTable{}, 0, nil
	}
	if err != nil {
		return SlotTable{}, 0, fmt.Errorf("look at the ledger: %w", err)
	}
	return l, version, nil
}

// writeSlotTable puts l in place of the ledger of that version, or says
// store.ErrConflict.
func (d documents) writeSlotTable(ctx context.Context, l SlotTable, version int64) error {
	var err error
	if version == 0 {
		err = store.Create(ctx, d.store, store.KindSlotTable, slotTableKey, l)
	} else {
		_, err = store.Replace(ctx, d.store, store.KindSlotTable, slotTableKey, version, l)
	}
	if errors.Is(err, store.ErrExists) {
		err = store.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}

// applyTransitions writes news of its holders into the ledger.
func (d documents) applyTransitions(ctx context.Context, transitions map[AttemptKey]Transition) error {
	for {
		l, version, err := d.slotTable(ctx)
		if err != nil {
			return err
		}
		next, changed := Apply(l, transitions)
		if !changed {
			return nil
		}
		if err := d.writeSlotTable(ctx, next, version); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
