package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// desk is where the executor's documents lie: queue, ledger and plans.
type desk struct {
	store    Store
	settings Settings
}

// facts returns what is known of an attempt before it is decided about.
func (d desk) facts(ctx context.Context, h Holder) (Facts, error) {
	run, err := d.run(ctx, h.Run)
	if err != nil {
		return Facts{}, err
	}
	plan, err := d.plan(ctx, h)
	if err != nil {
		return Facts{}, err
	}
	canceled, err := d.canceled(ctx, h.Run)
	return Facts{Over: run.Phase == event.PhaseFinished, Plan: plan, Canceled: canceled}, err
}

// run returns what is known of a run; nothing, where it is not recorded yet.
func (d desk) run(ctx context.Context, id string) (store.Run, error) {
	run, err := d.store.Run(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Run{}, fmt.Errorf("look up run %s: %w", id, err)
	}
	return run, nil
}

// since tells what is known to have become of a run in this attempt, where
// something was launched: News of the ledger's, 0 for none.
func (d desk) since(ctx context.Context, h Holder) (News, error) {
	r, err := d.run(ctx, h.Run)
	if err != nil {
		return 0, err
	}
	switch r.Phase {
	case event.PhaseFinished:
		return Ending, nil
	case event.PhasePending, event.PhaseRunning, event.PhaseCanceling:
		if r.Attempt == h.Attempt {
			return Launched, nil
		}
	case event.PhaseSubmitted, event.PhaseFetching, event.PhaseQueued, event.PhaseLaunching:
	}
	return 0, nil
}

// canceled reports whether a run has a cancel mark.
func (d desk) canceled(ctx context.Context, run string) (bool, error) {
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
func (d desk) plan(ctx context.Context, h Holder) (*Plan, error) {
	p, _, err := store.Get[Plan](ctx, d.store, store.KindPlan, h.key())
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the plan of %s: %w", h.key(), err)
	}
	return &p, nil
}

// settle makes p the plan of its attempt unless there is one already, and
// returns the one that is.
func (d desk) settle(ctx context.Context, p Plan) (Plan, error) {
	h := Holder{Run: p.Run.Run, Attempt: p.Run.Attempt}
	err := store.Create(ctx, d.store, store.KindPlan, h.key(), p)
	if err == nil {
		return p, nil
	}
	if !errors.Is(err, store.ErrExists) {
		return Plan{}, fmt.Errorf("keep the plan of %s: %w", h.key(), err)
	}
	was, err := d.plan(ctx, h)
	if err != nil {
		return Plan{}, err
	}
	if was == nil {
		return Plan{}, fmt.Errorf("keep the plan of %s: it was there and is not", h.key())
	}
	return *was, nil
}

// queueKey is the key under which a run waits.
func (d desk) queueKey(run event.Fetched) string {
	return queueKey(d.settings.priority(run.Labels), Holder{Run: run.Run, Attempt: run.Attempt})
}

// enqueue puts an attempt into the queue. One that is there stays as it is.
func (d desk) enqueue(ctx context.Context, w Waiting) error {
	err := store.Create(ctx, d.store, store.KindQueue, d.queueKey(w.Run), w)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("put run %s into the queue: %w", w.Run.Run, err)
	}
	return nil
}

// dequeue takes what has that key out of the queue, if it is there.
func (d desk) dequeue(ctx context.Context, key string) error {
	if err := d.store.DeleteDoc(ctx, store.Doc{Kind: store.KindQueue, Key: key}); err != nil {
		return fmt.Errorf("take %q out of the queue: %w", key, err)
	}
	return nil
}

// waiting returns what waits under key, nil where nothing does.
func (d desk) waiting(ctx context.Context, key string) (*Waiting, error) {
	w, _, err := store.Get[Waiting](ctx, d.store, store.KindQueue, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %q in the queue: %w", key, err)
	}
	return &w, nil
}

// head returns the first n of the queue.
func (d desk) head(ctx context.Context, n int) ([]Place, error) {
	docs, err := d.store.Docs(ctx, store.KindQueue, "", n)
	if err != nil {
		return nil, fmt.Errorf("look at the queue: %w", err)
	}
	places := make([]Place, 0, len(docs))
	for _, doc := range docs {
		p := Place{Key: doc.Key}
		if err := json.Unmarshal(doc.Value, &p.Waiting); err != nil {
			return nil, fmt.Errorf("read %q in the queue: %w", doc.Key, err)
		}
		places = append(places, p)
	}
	return places, nil
}

// ledger returns the ledger and its version, 0 where there is none yet.
func (d desk) ledger(ctx context.Context) (Ledger, int64, error) {
	l, version, err := store.Get[Ledger](ctx, d.store, store.KindLedger, ledgerKey)
	if errors.Is(err, store.ErrNotFound) {
		return Ledger{}, 0, nil
	}
	if err != nil {
		return Ledger{}, 0, fmt.Errorf("look at the ledger: %w", err)
	}
	return l, version, nil
}

// write puts l in place of the ledger of that version, or says
// store.ErrConflict.
func (d desk) write(ctx context.Context, l Ledger, version int64) error {
	var err error
	if version == 0 {
		err = store.Create(ctx, d.store, store.KindLedger, ledgerKey, l)
	} else {
		_, err = store.Replace(ctx, d.store, store.KindLedger, ledgerKey, version, l)
	}
	if errors.Is(err, store.ErrExists) {
		err = store.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}

// learn writes news of its holders into the ledger.
func (d desk) learn(ctx context.Context, news map[Holder]News) error {
	for {
		l, version, err := d.ledger(ctx)
		if err != nil {
			return err
		}
		next, changed := Learn(l, news)
		if !changed {
			return nil
		}
		if err := d.write(ctx, next, version); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
