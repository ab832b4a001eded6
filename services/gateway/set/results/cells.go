package results

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/gateway/set/results/rollup"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// MaxPageRuns is the number of runs in one page of cells.
const MaxPageRuns = 1000

// readers is the number of reads of the store that one request makes at a time.
const readers = 16

// Runs returns up to n runs of a cell of a set, or of all cells for the name "", oldest first, and the token of the next ones. The
// error is *TokenError for a token that Runs did not return.
func (k *Reader) Runs(ctx context.Context, set, cell, token string, n int) ([]store.Run, string, error) {
	runs, next, err := k.store.Runs(ctx, store.RunFilter{Set: set, Cell: cell, Oldest: true}, token, n)
	if errors.Is(err, store.ErrCursor) {
		return nil, "", &TokenError{}
	}
	return runs, next, err
}

// Skipped returns the number of repetitions that a cell lacks because it has enough: those
// after its last run.
func (k *Reader) Skipped(ctx context.Context, s SetState, cell int, name string) (int, error) {
	if !s.IsStopped(cell) {
		return 0, nil
	}
	last, _, err := k.store.Runs(ctx, store.RunFilter{Set: s.ID, Cell: name}, "", 1)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return s.Repetitions - last[0].Repetition, nil
}

// read reads cells from their runs. The error is *SizeError once the values of one are too many.
func (k *Reader) read(ctx context.Context, s SetState, cells []*cellReader) error {
	err := ForEach(ctx, len(cells), func(ctx context.Context, i int) (err error) {
		c := cells[i]
		if err = k.readRuns(ctx, s, c); err == nil {
			c.skipped, err = k.Skipped(ctx, s, c.index, c.name)
		}
		return err
	})
	if err != nil {
		return err
	}
	var reads []func(ctx context.Context) error
	for _, c := range cells {
		for _, r := range c.counted {
			reads = append(reads, func(ctx context.Context) error { return c.readSummary(ctx, k.store, r) })
		}
	}
	return ForEach(ctx, len(reads), func(ctx context.Context, i int) error { return reads[i](ctx) })
}

// readRuns reads the runs of a cell.
func (k *Reader) readRuns(ctx context.Context, s SetState, c *cellReader) (err error) {
	for token := ""; ; {
		var runs []store.Run
		if runs, token, err = k.Runs(ctx, s.ID, c.name, token, MaxPageRuns); err != nil {
			return err
		}
		for _, r := range runs {
			c.addRun(r)
		}
		if token == "" {
			return nil
		}
	}
}

// ForEach calls a function for the numbers from 0 to n-1, several at a time, and stops at
// the first error.
func ForEach(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i := range n {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error { return f(gctx, i) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// cellReader reads the results of one cell. Several goroutines may call readSummary.
type cellReader struct {
	index int
	name  string

	counted []store.Run // runs that count, without descriptors
	skipped int
	made    int             // runs of the cell, with those that do not count
	oldest  *runRef         // of these; nil: there are none
	goesOn  bool            // a run has not ended, or was projected without its submission
	summary map[string]bool // runs that count, by ID: whether the summary is complete; missing if there is none

	mu sync.Mutex
	series.Builder
}

func newCellReader(index int, name string, metrics []string) *cellReader {
	return &cellReader{index: index, name: name, summary: make(map[string]bool), Builder: series.Builder{Metrics: metrics, System: true}}
}

// addRun adds a run of the cell.
func (c *cellReader) addRun(r store.Run) {
	c.made++
	if c.oldest == nil || r.Created.Before(c.oldest.Created) {
		c.oldest = &runRef{Run: r.ID, Created: r.Created}
	}
	c.goesOn = c.goesOn || r.Phase != event.PhaseFinished || r.Descriptor == ""
	if r.Descriptor = ""; points.Counts(r) {
		c.counted = append(c.counted, r)
	}
}

// readSummary adds a run that counts with its summary. The error is *SizeError once the
// values are too many.
func (c *cellReader) readSummary(ctx context.Context, docs store.Getter, r store.Run) error {
	found, _, err := store.Get[store.Summaries](ctx, docs, store.KindSummary, r.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read the summary of run %s: %w", r.ID, err)
	}
	all := &found
	if err != nil {
		all = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if all != nil {
		c.summary[r.ID] = all.Complete
	}
	if c.Add(r.Repetition, r, all); c.Size > maxCellSize {
		return &SizeError{Cell: c.name}
	}
	return nil
}

// results returns the results of the cell, once everything is read.
func (c *cellReader) results() rollup.CellResults {
	return rollup.CellResults{
		Index: c.index, Succeeded: c.Runs, Unsummarised: c.Unsummarised, Incomplete: c.Incomplete, Skipped: c.skipped, Series: c.Series(),
	}
}
