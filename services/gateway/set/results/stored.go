package results

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/gateway/set/results/rollup"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// RollUp stores the results of the cells of a block that do not change any more and are not
// stored yet; see SetState.BlockSize. It reports whether there is nothing left to store. Several
// processes may store results of one set: they store the same ones.
func (k *Reader) RollUp(ctx context.Context, s SetState, plan *sweep.Plan, n int) (done bool, err error) {
	b := s.block(n)
	stored, err := k.load(ctx, s, b)
	if err != nil || stored.whole() {
		return err == nil, err
	}
	before := len(stored.cells)
	for cells := range slices.Chunk(stored.missing(), s.cellsFor(s.Cells, batchRuns)) {
		more, oldest, err := k.settled(ctx, s, plan, cells)
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
	d := blockDoc{Block: rollup.Encode(stored.cells), Ended: s.EndedRuns, Oldest: stored.oldest}
	if len(d.Cells) > maxBlockSize {
		return true, nil
	}
	if stored.version == 0 {
		err = store.Create(ctx, k.store, store.KindSetRollup, b.key(s.ID), d)
	} else {
		_, err = store.Replace(ctx, k.store, store.KindSetRollup, b.key(s.ID), stored.version, d)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return false, nil // another process does the same
	}
	return err == nil && stored.whole(), err
}

// load reads the stored results of a block, as far as they are those of the set as it is now.
// A block whose oldest run is not stored any more has none.
func (k *Reader) load(ctx context.Context, s SetState, b block) (storedBlock, error) {
	stored := storedBlock{block: b}
	d, version, found, err := store.Find[blockDoc](ctx, k.store, store.KindSetRollup, b.key(s.ID))
	if err != nil || !found {
		return stored, err
	}
	stored.version = version
	if d.Oldest != nil {
		if _, err = k.store.Run(ctx, d.Oldest.Run); errors.Is(err, store.ErrNotFound) {
			return stored, nil
		}
	}
	if err != nil {
		return stored, fmt.Errorf("look for run %s: %w", d.Oldest.Run, err)
	}
	cells, err := d.Decode()
	if err != nil {
		k.log.Warn("stored results of a set are not used", zap.String("set", s.ID), zap.Int("cell", b.first), zap.Error(err))
		return stored, nil
	}
	stored.cells, stored.oldest = current(s, cells, d.Ended), d.Oldest
	return stored, nil
}

// settled reads cells from their runs, and returns the results of those that do not change any
// more, and the oldest of their runs.
func (k *Reader) settled(
	ctx context.Context, s SetState, plan *sweep.Plan, cells []int,
) (all []rollup.CellResults, oldest *runRef, err error) {
	readers := make([]*cellReader, len(cells))
	for i, cell := range cells {
		readers[i] = newCellReader(cell, plan.Cell(cell).Name, nil)
	}
	if err := k.read(ctx, s, readers); err != nil {
		return nil, nil, err
	}
	var ids []string
	for _, c := range readers {
		ids = append(ids, c.withoutSummary()...)
	}
	bare, err := k.bare(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range readers {
		if results, ok := settled(s, c, plan.Warmup(c.index)+plan.Repetitions(c.index), bare, k.now()); ok {
			all, oldest = append(all, results), older(oldest, c.oldest)
		}
	}
	return all, oldest, nil
}

// bare returns the runs that have points and no summary, of runs that had none when they were
// read: their samples were summarised, and there were none.
func (k *Reader) bare(ctx context.Context, runs []string) (map[string]bool, error) {
	all := make(map[string]bool)
	for ids := range slices.Chunk(runs, store.MaxPointRuns) {
		found, err := k.store.RunPoints(ctx, ids, []string{points.DurationMetric})
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
