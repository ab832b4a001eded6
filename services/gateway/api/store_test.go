package api_test

import (
	"context"
	"slices"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// faults are what may be wrong with a store.
type faults struct {
	panics, hangs bool
	err           error
	unseen        int64 // lines of this sequence and later are counted and cannot be read, as where one copy lags; 0 means none
}

// watched is a store that says when it was written to, unless it is deaf, and
// that can be broken.
type watched struct {
	*storetest.Memory

	mu      sync.Mutex
	tells   bool
	changed chan struct{}
	faults  faults
}

func newWatched(tells bool) *watched {
	return &watched{Memory: storetest.NewMemory(), tells: tells, changed: make(chan struct{})}
}

func (w *watched) set(change func(*faults)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.faults)
}

// tell wakes who waits, if the write succeeded.
func (w *watched) tell(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.tells {
		close(w.changed)
		w.changed = make(chan struct{})
	}
	return err
}

// Changed implements store.Notifier.
func (w *watched) Changed(string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Run implements store.Runs, with faults.
func (w *watched) Run(ctx context.Context, id string) (store.Run, error) {
	w.mu.Lock()
	f := w.faults
	w.mu.Unlock()
	if f.panics {
		panic("broken") //nolint:forbidigo // what the server must survive
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
func (w *watched) Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) ([]store.Line, string, error) {
	w.mu.Lock()
	unseen := w.faults.unseen
	w.mu.Unlock()
	page, next, err := w.Memory.Lines(ctx, q, cursor, limit)
	n := slices.IndexFunc(page, func(l store.Line) bool { return unseen > 0 && l.Seq >= unseen })
	switch {
	case err != nil || n < 0:
		return page, next, err
	case n == 0:
		return nil, cursor, nil
	}
	return w.Memory.Lines(ctx, q, cursor, n)
}

// PutRun implements store.Runs.
func (w *watched) PutRun(ctx context.Context, r store.Run, c store.Change) error {
	return w.tell(w.Memory.PutRun(ctx, r, c))
}

// AppendLines implements store.Appender.
func (w *watched) AppendLines(ctx context.Context, batches []store.Lines) error {
	return w.tell(w.Memory.AppendLines(ctx, batches))
}

// AppendSamples implements store.Appender.
func (w *watched) AppendSamples(ctx context.Context, batches []store.Samples) error {
	return w.tell(w.Memory.AppendSamples(ctx, batches))
}
