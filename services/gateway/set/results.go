package set

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// resultReaders is the number of reads of the store that one request makes at a time.
const resultReaders = 16

// CellResults are the results of one cell.
type CellResults struct {
	sweep.Cell

	Index        int            // place in the sweep, from 0
	Succeeded    int            // repetitions that succeeded
	Unsummarised int            // of these, those whose samples are not summarised yet, or that have none
	Incomplete   int            // of these, those whose summary lacks samples that never came
	Skipped      int            // repetitions that were not made because the cell has enough
	Metrics      []MetricResult // by metric, unit and labels

	size int // estimate of the bytes of their message
}

// Token returns the token of the page of results that begins with the cell.
func (c CellResults) Token() string { return formatToken(c.Index, "") }

// Results returns the results of up to n cells of a set, of all metrics or of those with the
// given names, and the token of the next page, empty after the last one. Token "" is the
// first page. A page takes one read for the runs of each cell and one for each run that
// counts, of maxPageRuns runs at most, or of one cell. A page ends early once its results are large.
//
// The error is *TokenError, *StateError as that of Cells, or *SizeError.
func (k *Sets) Results(ctx context.Context, s Set, token string, n int, metrics []string) (cells []CellResults, next string, err error) {
	plan, err := k.cellPlan(ctx, s)
	if err != nil {
		return nil, "", err
	}
	begin, inner, err := parseToken(token, s.Cells)
	if err == nil && inner != "" {
		err = &TokenError{}
	}
	if err != nil {
		return nil, "", err
	}
	at, end, size := begin, min(s.Cells, begin+cellsFor(s, n, maxPageRuns)), 0
	for at < end && size < maxPageSize {
		batch := make([]CellResults, min(end-at, cellsFor(s, n, batchRuns)))
		for i := range batch {
			batch[i] = CellResults{Cell: plan.Cell(at + i), Index: at + i}
		}
		if err := k.readResults(ctx, s, batch, metrics); err != nil {
			return nil, "", err
		}
		for i := range batch {
			size += batch[i].size
		}
		cells, at = append(cells, batch...), at+len(batch)
	}
	if at < s.Cells {
		next = formatToken(at, "")
	}
	return cells, next, nil
}

// readResults reads the results of cells.
func (k *Sets) readResults(ctx context.Context, s Set, cells []CellResults, metrics []string) error {
	j, err := judge.New(judge.Settings{})
	if err != nil {
		return fmt.Errorf("compute results: %w", err)
	}
	runs := make([][]store.Run, len(cells))
	err = forEach(ctx, len(cells), func(ctx context.Context, i int) (err error) {
		if runs[i], err = k.countedRuns(ctx, s, cells[i].Name); err == nil {
			cells[i].Skipped, err = k.skipped(ctx, s, cells[i].Index, cells[i].Name)
		}
		return err
	})
	if err != nil {
		return err
	}
	values := make([]cellReader, len(cells))
	var reads []func(ctx context.Context) error
	for i := range cells {
		values[i] = cellReader{docs: k.deps.Store, cell: cells[i].Name, Builder: series.Builder{Metrics: metrics, System: true}}
		for _, r := range runs[i] {
			reads = append(reads, func(ctx context.Context) error { return values[i].read(ctx, r) })
		}
	}
	if err := forEach(ctx, len(reads), func(ctx context.Context, i int) error { return reads[i](ctx) }); err != nil {
		return err
	}
	for i := range cells {
		c, v := &cells[i], &values[i]
		c.Succeeded, c.Unsummarised, c.Incomplete, c.Metrics, c.size = v.Runs, v.Unsummarised, v.Incomplete, resultsOf(v.Series(), j), v.Size
	}
	return nil
}

// forEach calls a function for the numbers from 0 to n-1, several at a time, and stops at
// the first error.
func forEach(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(resultReaders)
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

// countedRuns returns the runs of a cell that count.
func (k *Sets) countedRuns(ctx context.Context, s Set, cell string) (counted []store.Run, err error) {
	for token := ""; ; {
		var runs []store.Run
		if runs, token, err = k.cellRuns(ctx, s, cell, token, maxPageRuns); err != nil {
			return nil, err
		}
		for _, r := range runs {
			if points.Counts(r) {
				counted = append(counted, r)
			}
		}
		if token == "" {
			return counted, nil
		}
	}
}

// cellReader reads the values of one cell. Several goroutines may use it.
type cellReader struct {
	docs store.Getter
	cell string

	mu sync.Mutex
	series.Builder
}

// read adds a run with its summary. The error is *SizeError once the values are too many.
func (c *cellReader) read(ctx context.Context, r store.Run) error {
	found, _, err := store.Get[store.Summaries](ctx, c.docs, store.KindSummary, r.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read the summary of run %s: %w", r.ID, err)
	}
	all := &found
	if err != nil {
		all = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Add(r.Repetition, r, all); c.Size > maxCellSize {
		return &SizeError{Cell: c.cell}
	}
	return nil
}
