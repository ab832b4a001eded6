package slots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Store has the documents of the executor, and the runs.
type Store interface {
	store.Docs
	store.Lister
	// Run returns a run, or store.ErrNotFound.
	Run(ctx context.Context, id string) (store.Run, error)
}

// Documents are the queue and the slot table in a store.
type Documents struct{ Store Store }

// Run returns the projection of a run, or the zero value if there is none yet.
func (d Documents) Run(ctx context.Context, id string) (store.Run, error) {
	run, err := d.Store.Run(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Run{}, fmt.Errorf("look up run %s: %w", id, err)
	}
	return run, nil
}

// Enqueue puts an attempt into the queue. It does not change an attempt that is in the
// queue already.
func (d Documents) Enqueue(ctx context.Context, key string, w QueuedRun) error {
	err := store.Create(ctx, d.Store, store.KindQueue, key, w)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("put run %s into the queue: %w", w.Run.Run, err)
	}
	return nil
}

// Dequeue removes the document with that key from the queue, if it is there.
func (d Documents) Dequeue(ctx context.Context, key string) error {
	if err := d.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindQueue, Key: key}); err != nil {
		return fmt.Errorf("take %q out of the queue: %w", key, err)
	}
	return nil
}

// QueuedRun returns the document with that key in the queue, if there is one.
func (d Documents) QueuedRun(ctx context.Context, key string) (w QueuedRun, found bool, err error) {
	w, _, found, err = store.Find[QueuedRun](ctx, d.Store, store.KindQueue, key)
	if err != nil {
		return w, false, fmt.Errorf("look for %q in the queue: %w", key, err)
	}
	return w, found, nil
}

// queueHead returns the first n items of the queue.
func (d Documents) queueHead(ctx context.Context, n int) ([]Item, error) {
	docs, err := d.Store.Docs(ctx, store.KindQueue, "", n)
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

// Table returns the slot table. It is empty if there is none yet.
func (d Documents) Table(ctx context.Context) (Table, error) {
	t, _, err := d.versionedTable(ctx)
	return t, err
}

// versionedTable returns the slot table and its version, which is 0 if there is none
// yet.
func (d Documents) versionedTable(ctx context.Context) (Table, int64, error) {
	t, version, _, err := store.Find[Table](ctx, d.Store, store.KindSlotTable, tableKey)
	if err != nil {
		return Table{}, 0, fmt.Errorf("look at the slot table: %w", err)
	}
	return t, version, nil
}

// writeTable replaces the table of that version with t. The error is store.ErrConflict
// if the stored table has another version.
func (d Documents) writeTable(ctx context.Context, t Table, version int64) error {
	var err error
	if version == 0 {
		err = store.Create(ctx, d.Store, store.KindSlotTable, tableKey, t)
	} else {
		_, err = store.Replace(ctx, d.Store, store.KindSlotTable, tableKey, version, t)
	}
	if errors.Is(err, store.ErrExists) {
		err = store.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("write the slot table: %w", err)
	}
	return nil
}

// Apply writes transitions into the table. It ignores transitions of attempts without a
// slot.
func (d Documents) Apply(ctx context.Context, transitions map[AttemptKey]Transition) error {
	_, err := store.Update(ctx, d.Store, store.KindSlotTable, tableKey, func(is Table, _ bool) (Table, bool, error) {
		next, changed := apply(is, transitions)
		return next, changed, nil
	})
	if err != nil {
		return fmt.Errorf("write the slot table: %w", err)
	}
	return nil
}
