package set

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// measuredCell is the values of an open cell, of the repetitions that were read. It can be
// read again from the store at any time.
type measuredCell struct {
	series.Builder

	read    int  // repetitions that were read: the first ones
	waiting bool // the next one had no summary yet
}

// observeCells decides about the open cells whose repetitions have ended and are summarised.
// It looks at a cell that waits for a summary whenever all active runs are read.
func (o *observer) observeCells(ctx context.Context) error {
	if o.set.StopWhen == nil || o.set.State != StateRunning || o.invalid != "" {
		return nil
	}
	active := make(map[int]bool, len(o.set.Active))
	for _, a := range o.set.Active {
		active[o.plan.Run(a.Ordinal).Cell] = true
	}
	for _, ordinal := range o.set.Withdrawn {
		active[o.plan.Run(ordinal).Cell] = true // it is made before any other
	}
	before, cells := o.values[o.set.ID], make(map[int]*measuredCell, len(o.set.Open))
	o.values[o.set.ID] = cells // without the cells that are not open any more
	for _, c := range o.set.Open {
		m, ok := before[c.Cell]
		if !ok {
			m = &measuredCell{Builder: series.Builder{Metrics: []string{o.set.StopWhen.Metric}}}
		}
		cells[c.Cell] = m
		if active[c.Cell] || m.waiting && !o.all {
			continue
		}
		if err := o.measure(ctx, m, c); err != nil {
			return err
		}
		if !m.waiting {
			o.Cells[c.Cell] = decideCell(&m.Builder, o.plan.Cell(c.Cell).Name, *o.set.StopWhen, o.stopping)
		}
	}
	return nil
}

// measure reads the repetitions of a cell that were not read yet, up to one that waits for its
// summary.
func (o *observer) measure(ctx context.Context, m *measuredCell, c OpenCell) error {
	for m.waiting = false; m.read < c.Next-1; m.read++ {
		known, err := o.readRepetition(ctx, m, sweep.Run{Cell: c.Cell, Repetition: m.read + 1})
		if err != nil {
			return fmt.Errorf("read repetition %d of cell %d: %w", m.read+1, c.Cell, err)
		}
		if !known {
			m.waiting = true
			return nil
		}
	}
	return nil
}

// readRepetition adds the value of a repetition that has ended, and reports whether it is
// known. A run that was refused or deleted, or did not succeed, has none.
func (o *observer) readRepetition(ctx context.Context, m *measuredCell, repetition sweep.Run) (known bool, err error) {
	id, err := o.submitter.RunOfCell(ctx, o.set.ID, runKey(o.plan.Ordinal(repetition)))
	var run store.Run
	if err == nil {
		run, err = o.store.Run(ctx, id)
	}
	if errors.Is(err, store.ErrNotFound) || err == nil && !points.Counts(run) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	all, _, found, err := store.Find[store.Summaries](ctx, o.store, store.KindSummary, run.ID)
	switch {
	case err != nil:
		return false, err
	case found:
		m.Add(run.Repetition, run, &all)
		return true, nil
	}
	streams, err := o.store.Streams(ctx, run.ID)
	if err != nil || awaitsSummary(run, streams, o.now) {
		return false, err
	}
	m.Add(run.Repetition, run, nil)
	return true, nil
}
