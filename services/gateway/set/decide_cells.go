package set

import (
	"iter"
	"slices"
)

// RunNumbers are runs of a cell by their numbers, from 1, in order.
type RunNumbers struct {
	Repetitions []int // runs that count
	Warmups     []int // runs before them
}

// numbersByCell has some runs of a set, by cell. Cells without any are missing.
type numbersByCell map[int]*RunNumbers

// byCell returns the runs of a set with some ordinals, by cell.
func (l loaded) byCell(ordinals iter.Seq[int]) numbersByCell {
	all := make(numbersByCell)
	for ordinal := range ordinals {
		r := l.run(ordinal)
		if all[r.Cell] == nil {
			all[r.Cell] = new(RunNumbers)
		}
		into := &all[r.Cell].Repetitions
		if r.Warmup {
			into = &all[r.Cell].Warmups
		}
		*into = append(*into, r.Repetition)
	}
	for _, one := range all {
		slices.Sort(one.Repetitions)
		slices.Sort(one.Warmups)
	}
	return all
}

// of returns the runs of a cell, which may have none; nil if all runs of all cells are meant.
func (n numbersByCell) of(cell int) *RunNumbers {
	if one := n[cell]; one != nil || n == nil {
		return one
	}
	return new(RunNumbers)
}

// selectedRuns returns the runs of the sweep that the set makes; nil if it makes all.
func (l loaded) selectedRuns() numbersByCell {
	if l.selected == nil {
		return nil
	}
	return l.byCell(func(yield func(int) bool) {
		for ordinal := range l.runs() {
			if !yield(ordinal) {
				return
			}
		}
	})
}

// refusedRuns returns the runs of a set that were refused.
func (l loaded) refusedRuns(s Set) numbersByCell { return l.byCell(slices.Values(bitsOf(s.Refused))) }
