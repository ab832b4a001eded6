package set

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/gateway/set/rollup"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// rollups stores the results of cells that do not change any more, so that they are read at
// once. Results that are not stored are read from their runs, to the same end.
//
// Several processes may store results of one set: they store the same ones. Only one goroutine
// at a time may call step.
type rollups struct {
	docs  documents
	cells cellStore
	plans *planCache
	now   func() time.Time
	log   *zap.Logger
	queue *queue.Queue[string] // of sets

	progress map[string]*rollupProgress // by set
}

// rollupProgress is how much of a set is stored. It can be found out again at any time.
type rollupProgress struct {
	last []int  // ordinal of the last run of each block
	done []bool // by block: there is nothing left to store
	next int    // block to look at next
}

func newRollups(d Deps, plans *planCache) *rollups {
	fields := func(id string) []zap.Field { return []zap.Field{zap.String("results of set", id)} }
	return &rollups{
		docs: documents{d.Store}, cells: cellStore{d.Store}, plans: plans, now: d.Now, log: d.Log,
		queue: queue.New(d.Log, queue.Settings[string]{Fields: fields}), progress: make(map[string]*rollupProgress),
	}
}

// run stores results of the sets in the queue until ctx is done.
func (r *rollups) run(ctx context.Context) error {
	return r.queue.Run(ctx, 1, func(ctx context.Context, id string) (queue.Result, error) {
		began := time.Now()
		s, more, err := r.step(ctx, id)
		switch {
		case err != nil:
			return queue.Result{}, err
		case more:
			return queue.Result{RequeueAfter: max(time.Millisecond, time.Since(began))}, nil // runs go first
		case r.progress[id] == nil:
			return queue.Result{}, nil
		}
		wait, again := rollupWait(s, r.now())
		if !again {
			if s.State == StateFinished {
				delete(r.progress, id)
			}
			return queue.Result{Rest: wait}, nil
		}
		return queue.Result{RequeueAfter: wait, Rest: wait}, nil
	})
}

// RollUp stores the results of some cells of a set that do not change any more, and reports
// whether another call has more to do now. Runner does it by itself for the sets that it runs,
// and for those whose results were read from runs. Only one goroutine at a time may call it,
// and not while Run runs.
func (r *Runner) RollUp(ctx context.Context, id string) (more bool, err error) {
	_, more, err = r.rollups.step(ctx, id)
	return more, err
}

// step looks at the next block of a set whose runs were all made. It reports whether there are
// further ones. A set without progress after that has nothing left to store.
func (r *rollups) step(ctx context.Context, id string) (s Set, more bool, err error) {
	s, found, err := r.docs.load(ctx, id)
	if err != nil {
		return s, false, err
	}
	l := loaded{invalid: "there is no such set"}
	if found {
		if l, err = r.plans.get(ctx, s); err != nil {
			return s, false, err
		}
	}
	if l.invalid != "" {
		delete(r.progress, id)
		return s, false, nil
	}
	p, ok := r.progress[id]
	if !ok {
		p = &rollupProgress{last: lastOrdinals(s, l)}
		p.done = make([]bool, len(p.last))
		r.progress[id] = p
	}
	blocks, made := blocksOf(s, 0, s.Cells), madeBlocks(s, l, p.last)
	for p.next < len(blocks) {
		i := p.next
		p.next++
		if !made[i] || p.done[i] {
			continue
		}
		if p.done[i], err = r.rollUp(ctx, s, l.plan, blocks[i]); err != nil {
			p.next = i
		}
		return s, true, err
	}
	p.next = 0
	if !slices.Contains(p.done, false) {
		delete(r.progress, id)
	}
	return s, false, nil
}

// load reads the stored results of a block, as far as they are those of the set as it is now.
// A block whose oldest run is not stored any more has none.
func (r *rollups) load(ctx context.Context, s Set, b block) (storedBlock, error) {
	stored := storedBlock{block: b}
	d, version, found, err := store.Find[blockDoc](ctx, r.docs.store, store.KindSetRollup, b.key(s.ID))
	if err != nil || !found {
		return stored, err
	}
	stored.version = version
	if d.Oldest != nil {
		if _, err = r.docs.store.Run(ctx, d.Oldest.Run); errors.Is(err, store.ErrNotFound) {
			return stored, nil
		}
	}
	if err != nil {
		return stored, fmt.Errorf("look for run %s: %w", d.Oldest.Run, err)
	}
	cells, err := d.Decode()
	if err != nil {
		r.log.Warn("stored results of a set are not used", zap.String("set", s.ID), zap.Int("cell", b.first), zap.Error(err))
		return stored, nil
	}
	stored.cells, stored.oldest = current(s, cells, d.Ended), d.Oldest
	return stored, nil
}

// rollUp stores the results of the cells of a block that do not change any more and are not
// stored yet. It reports whether there is nothing left to store.
func (r *rollups) rollUp(ctx context.Context, s Set, plan *sweep.Plan, b block) (done bool, err error) {
	stored, err := r.load(ctx, s, b)
	if err != nil || stored.whole() {
		return err == nil, err
	}
	before := len(stored.cells)
	for cells := range slices.Chunk(stored.missing(), cellsFor(s, s.Cells, batchRuns)) {
		more, oldest, err := r.read(ctx, s, plan, cells)
		if _, large := errors.AsType[*SizeError](err); large {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		stored = stored.with(more, oldest)
	}
	if len(stored.cells) == before {
		return false, nil
	}
	d := blockDoc{Block: rollup.Encode(stored.cells), Ended: s.ended(), Oldest: stored.oldest}
	if len(d.Cells) > maxBlockSize {
		return true, nil
	}
	if stored.version == 0 {
		err = store.Create(ctx, r.docs.store, store.KindSetRollup, b.key(s.ID), d)
	} else {
		_, err = store.Replace(ctx, r.docs.store, store.KindSetRollup, b.key(s.ID), stored.version, d)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return false, nil // another process does the same
	}
	return err == nil && stored.whole(), err
}

// read reads cells from their runs, and returns the results of those that do not change any
// more, and the oldest of their runs.
func (r *rollups) read(ctx context.Context, s Set, plan *sweep.Plan, cells []int) (all []rollup.CellResults, oldest *runRef, err error) {
	readers := make([]*cellReader, len(cells))
	for i, cell := range cells {
		readers[i] = newCellReader(cell, plan.Cell(cell).Name, nil)
	}
	if err := r.cells.read(ctx, s, readers); err != nil {
		return nil, nil, err
	}
	var ids []string
	for _, c := range readers {
		ids = append(ids, c.withoutSummary()...)
	}
	bare, err := r.bare(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range readers {
		if results, ok := settled(s, c, plan.Warmup(c.index)+plan.Repetitions(c.index), bare, r.now()); ok {
			all, oldest = append(all, results), older(oldest, c.oldest)
		}
	}
	return all, oldest, nil
}

// bare returns the runs that have points and no summary, of runs that had none when they were
// read: their samples were summarised, and there were none.
func (r *rollups) bare(ctx context.Context, runs []string) (map[string]bool, error) {
	all := make(map[string]bool)
	for ids := range slices.Chunk(runs, store.MaxPointRuns) {
		found, err := r.docs.store.RunPoints(ctx, ids, []string{points.DurationMetric})
		if err != nil {
			return nil, fmt.Errorf("read the points of runs: %w", err)
		}
		for _, p := range found {
			if p.Revision == 0 {
				all[p.Run] = true
			}
		}
	}
	return all, nil
}
