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
	"github.com/benchmark-ai/bai/services/gateway/set/rollup"
	"github.com/benchmark-ai/bai/services/internal/event"
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
// first page. A page takes two reads for each block of cells whose results are stored, and for
// each other cell one for its runs and one for each run that counts, of maxPageRuns runs at
// most, or of one cell. A page ends early once its results are large.
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
	p, err := k.page(ctx, s, begin, min(s.Cells, begin+cellsFor(s, n, maxPageRuns)), metrics)
	if err != nil {
		return nil, "", err
	}
	at, size := begin, 0
	for at < p.end && size < maxPageSize {
		batch := make([]CellResults, min(p.end-at, cellsFor(s, n, batchRuns)))
		for i := range batch {
			batch[i] = CellResults{Cell: plan.Cell(at + i), Index: at + i}
		}
		if err := p.read(ctx, batch); err != nil {
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

// resultPage reads the results of some cells of a set.
type resultPage struct {
	cells   cellStore
	judge   judge.Judge
	set     Set
	end     int // the cell after the last one
	metrics []string
	stored  map[int]rollup.CellResults // of the cells whose results are stored
	live    func()                     // is called if results are read from runs that may be stored
}

// page returns the page of the cells from one on and before another, with their stored results.
func (k *Sets) page(ctx context.Context, s Set, begin, end int, metrics []string) (*resultPage, error) {
	j, err := judge.New(judge.Settings{})
	if err != nil {
		return nil, fmt.Errorf("compute results: %w", err)
	}
	p := &resultPage{cells: k.cells, judge: j, set: s, end: end, metrics: metrics, stored: make(map[int]rollup.CellResults), live: func() {}}
	if s.State == StateFinished {
		p.live = func() { k.runner.rollups.queue.Add(s.ID) }
	}
	blocks := blocksOf(s, begin, end)
	found := make([]storedBlock, len(blocks))
	err = forEach(ctx, len(blocks), func(ctx context.Context, i int) (err error) {
		found[i], err = k.runner.rollups.load(ctx, s, blocks[i])
		return err
	})
	for _, b := range found {
		for _, c := range b.cells {
			p.stored[c.Index] = c
		}
	}
	return p, err
}

// read reads the results of cells of the page.
func (p *resultPage) read(ctx context.Context, cells []CellResults) error {
	var live []*CellResults
	for i := range cells {
		if c, ok := p.stored[cells[i].Index]; ok {
			c.Series = selectMetrics(c.Series, p.metrics)
			cells[i].set(c, p.judge)
			continue
		}
		live = append(live, &cells[i])
	}
	if len(live) == 0 {
		return nil
	}
	p.live()
	readers := make([]*cellReader, len(live))
	for i, c := range live {
		readers[i] = newCellReader(c.Index, c.Name, p.metrics)
	}
	if err := p.cells.read(ctx, p.set, readers); err != nil {
		return err
	}
	for i, c := range live {
		c.set(readers[i].results(), p.judge)
	}
	return nil
}

// set sets the results of a cell.
func (c *CellResults) set(r rollup.CellResults, j judge.Judge) {
	c.Succeeded, c.Unsummarised, c.Incomplete, c.Skipped, c.Metrics = r.Succeeded, r.Unsummarised, r.Incomplete, r.Skipped, resultsOf(r.Series, j)
	for i := range r.Series {
		c.size += r.Series[i].Size()
	}
}

// read reads cells from their runs. The error is *SizeError once the values of one are too many.
func (k cellStore) read(ctx context.Context, s Set, cells []*cellReader) error {
	err := forEach(ctx, len(cells), func(ctx context.Context, i int) (err error) {
		c := cells[i]
		if err = k.readRuns(ctx, s, c); err == nil {
			c.skipped, err = k.skipped(ctx, s, c.index, c.name)
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
	return forEach(ctx, len(reads), func(ctx context.Context, i int) error { return reads[i](ctx) })
}

// readRuns reads the runs of a cell.
func (k cellStore) readRuns(ctx context.Context, s Set, c *cellReader) (err error) {
	for token := ""; ; {
		var runs []store.Run
		if runs, token, err = k.runs(ctx, s, c.name, token, maxPageRuns); err != nil {
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
