package api_test

import (
	"context"
	"slices"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// faults are the faults that a store can have.
type faults struct {
	panics, hangs bool
	err           error
	hiddenFrom    int64 // lines from this sequence number on are counted but cannot be read, as with a replica that lags; 0 means none
}

// flakyStore is a store that notifies of writes, unless notifications are off, and that
// can have faults.
type flakyStore struct {
	*storetest.Memory

	mu       sync.Mutex
	notifies bool
	changed  chan struct{}
	faults   faults
}

func newFlakyStore(notifies bool) *flakyStore {
	return &flakyStore{Memory: storetest.NewMemory(), notifies: notifies, changed: make(chan struct{})}
}

func (w *flakyStore) setFaults(change func(*faults)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.faults)
}

// notify wakes the waiting callers, if the write succeeded.
func (w *flakyStore) notify(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.notifies {
		close(w.changed)
		w.changed = make(chan struct{})
	}
	return err
}

// Changed implements store.Notifier.
func (w *flakyStore) Changed(string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Run implements store.Runs, with faults.
func (w *flakyStore) Run(ctx context.Context, id string) (store.Run, error) {
	w.mu.Lock()
	f := w.faults
	w.mu.Unlock()
	if f.panics {
		panic("broken") //nolint:forbidigo // the server must survive this
	}
	if f.hangs {
		<-ctx.Done()
		return store.Run{}, ctx.Err()
	}
	if f.err != nil {
		return store.Run{}, f.err
	}
	return w.Memory.Run(ctx, id)
}

// Lines implements store.Reader, with faults.
func (w *flakyStore) Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) ([]store.Line, string, error) {
	w.mu.Lock()
	hiddenFrom := w.faults.hiddenFrom
	w.mu.Unlock()
	page, next, err := w.Memory.Lines(ctx, q, cursor, limit)
	n := slices.IndexFunc(page, func(l store.Line) bool { return hiddenFrom > 0 && l.Seq >= hiddenFrom })
	switch {
	case err != nil || n < 0:
		return page, next, err
	case n == 0:
		return nil, cursor, nil
	}
	return w.Memory.Lines(ctx, q, cursor, n)
}

// PutRun implements store.Runs.
func (w *flakyStore) PutRun(ctx context.Context, r store.Run, c store.Change) error {
	return w.notify(w.Memory.PutRun(ctx, r, c))
}

// AppendLines implements store.Appender.
func (w *flakyStore) AppendLines(ctx context.Context, batches []store.Lines) error {
	return w.notify(w.Memory.AppendLines(ctx, batches))
}

// AppendSamples implements store.Appender.
func (w *flakyStore) AppendSamples(ctx context.Context, batches []store.Samples) error {
	return w.notify(w.Memory.AppendSamples(ctx, batches))
}
