// Package results reads what the cells of a set measured: from their runs, or from documents
// with the results of cells that do not change any more (see RollUp), to the same end.
package results

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/set/results/rollup"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// SetState is what the results of a set depend on, beside its plan and its runs.
type SetState struct {
	ID          string
	Cells       int
	Repetitions int                 // of a cell, at most
	Warmup      int                 // runs of a cell before them
	IsStopped   func(cell int) bool // reports whether a cell has enough repetitions
	Finished    bool
	Ended       time.Time // when it finished
	EndedRuns   int       // runs that have ended or were refused
}

// Store stores runs and results.
type Store interface {
	store.Docs

	// Run and Runs do the same as those of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
	// RunPoints does the same as that of store.PointReader.
	RunPoints(ctx context.Context, runs, metrics []string) ([]store.RunPoints, error)
}

// Reader reads the results of sets, and stores those that do not change any more. Several
// goroutines may use it, and so may several processes on one store.
type Reader struct {
	store Store
	now   func() time.Time
	log   *zap.Logger
}

// New returns a Reader.
func New(s Store, now func() time.Time, log *zap.Logger) *Reader {
	return &Reader{store: s, now: now, log: log}
}

// CellResults are one cell with its results.
type CellResults struct {
	sweep.Cell

	Index        int            // place in the sweep, from 0
	Succeeded    int            // repetitions that succeeded
	Unsummarised int            // of these, those whose samples are not summarised yet, or that have none
	Incomplete   int            // of these, those whose summary lacks samples that never came
	Skipped      int            // repetitions that were not made because the cell has enough
	Metrics      []MetricResult // by metric, unit and labels
	NotSelected  bool           // the set makes no runs of the cell; Page does not know

	size int // estimate of the bytes of their message
}

// Token returns the token of the page of results that begins with the cell.
func (c CellResults) Token() string { return FormatToken(c.Index, "") }

// Page is a page of results.
type Page struct {
	Cells []CellResults
	Next  string // token of the next page, empty after the last one
	Live  bool   // results were read from runs, because they are not stored
}

// Page returns the results of up to n cells of a set, of all metrics or of those with the given
// names, from a token on; token "" is the first page. It takes two reads for each block of cells
// whose results are stored, and for each other cell one for its runs and one for each run that
// counts, of MaxPageRuns runs at most, or of one cell. A page ends early once its results are
// large. The error is *TokenError or *SizeError.
func (k *Reader) Page(ctx context.Context, s SetState, plan *sweep.Plan, token string, n int, metrics []string) (Page, error) {
	begin, inner, err := ParseToken(token, s.Cells)
	if err == nil && inner != "" {
		err = &TokenError{}
	}
	if err != nil {
		return Page{}, err
	}
	p, err := k.page(ctx, s, begin, min(s.Cells, begin+s.cellsFor(n, MaxPageRuns)), metrics)
	if err != nil {
		return Page{}, err
	}
	at, size := begin, 0
	for at < p.end && size < maxPageSize {
		batch := make([]CellResults, min(p.end-at, s.cellsFor(n, batchRuns)))
		for i := range batch {
			batch[i] = CellResults{Cell: plan.Cell(at + i), Index: at + i}
		}
		if err := p.read(ctx, batch); err != nil {
			return Page{Live: p.Live}, err
		}
		for i := range batch {
			size += batch[i].size
		}
		p.Cells, at = append(p.Cells, batch...), at+len(batch)
	}
	if at < s.Cells {
		p.Next = FormatToken(at, "")
	}
	return p.Page, nil
}

// pageReader reads the results of some cells of a set.
type pageReader struct {
	Page

	reader  *Reader
	judge   judge.Judge
	set     SetState
	end     int // the cell after the last one
	metrics []string
	stored  map[int]rollup.CellResults // of the cells whose results are stored
}

// page returns the page of the cells from one on and before another, with their stored results.
func (k *Reader) page(ctx context.Context, s SetState, begin, end int, metrics []string) (*pageReader, error) {
	j, err := judge.New(judge.Settings{})
	if err != nil {
		return nil, fmt.Errorf("compute results: %w", err)
	}
	p := &pageReader{reader: k, judge: j, set: s, end: end, metrics: metrics, stored: make(map[int]rollup.CellResults)}
	blocks := s.blocks(begin, end)
	found := make([]storedBlock, len(blocks))
	err = ForEach(ctx, len(blocks), func(ctx context.Context, i int) (err error) {
		found[i], err = k.load(ctx, s, blocks[i])
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
func (p *pageReader) read(ctx context.Context, cells []CellResults) error {
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
	p.Live = true
	readers := make([]*cellReader, len(live))
	for i, c := range live {
		readers[i] = newCellReader(c.Index, c.Name, p.metrics)
	}
	if err := p.reader.read(ctx, p.set, readers); err != nil {
		return err
	}
	for i, c := range live {
		c.set(readers[i].results(), p.judge)
	}
	return nil
}

// set sets the results of a cell.
func (c *CellResults) set(r rollup.CellResults, j judge.Judge) {
	c.Succeeded, c.Unsummarised, c.Incomplete, c.Skipped, c.Metrics = r.Succeeded, r.Unsummarised, r.Incomplete,
		r.Skipped, resultsOf(r.Series, j)
	for i := range r.Series {
		c.size += r.Series[i].Size()
	}
}
