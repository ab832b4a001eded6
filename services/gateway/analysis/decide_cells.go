package analysis

import (
	"cmp"
	"fmt"
	"slices"
)

// cellPair is one cell of a comparison: what its sides call it, and its name in the answer.
type cellPair struct{ base, other, name string }

// cells returns the names of the cells of the runs that count. Runs of no cell have an empty one.
func (r results) cells() []string {
	names := make(map[string]bool)
	for _, m := range r.members {
		names[m.run.Cell] = true
	}
	return sortedKeys(names)
}

// isOneRun reports whether the operand is a run, or stands for one.
func (s side) isOneRun() bool { return s.set == "" && !s.ofTask && len(s.runs) == 1 }

// pairCells returns the cells that both sides have, and those that one of them has. Where each side
// has one cell, and a side is one run or of no cell, they are a pair whatever their names.
func pairCells(base, other results) (both []cellPair, onlyOld, onlyNew []string) {
	before, after := base.cells(), other.cells()
	if len(before) == 1 && len(after) == 1 {
		one := cellPair{base: before[0], other: after[0]}
		if base.set != "" && other.set != "" {
			one.name = cmp.Or(one.base, one.other)
		}
		if one.base == one.other || one.base == "" || one.other == "" || base.isOneRun() || other.isOneRun() {
			return []cellPair{one}, nil, nil
		}
	}
	for _, cell := range before {
		if slices.Contains(after, cell) {
			both = append(both, cellPair{cell, cell, cell})
		} else {
			onlyOld = append(onlyOld, cell)
		}
	}
	return both, onlyOld, slices.DeleteFunc(after, func(cell string) bool { return slices.Contains(before, cell) })
}

// checkCells returns *StateError if one side has several cells, and the other one is no set and has
// none of them.
func checkCells(base, other results) error {
	several, one := base, other
	if len(one.cells()) > 1 {
		several, one = other, base
	}
	n := len(several.cells())
	if n == 1 || len(one.cells()) > 1 || one.set != "" || slices.Contains(several.cells(), one.cells()[0]) {
		return nil
	}
	return &StateError{Message: fmt.Sprintf("%s has %d cells, and %s is no set (compare it with a set, or name runs of one cell)",
		several.operand, n, one.operand)}
}

// cellNotes returns the notes about cells that only one side has.
func cellNotes(operand string, names []string) []string {
	named := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	notes := aloneNotes("cell", operand, named)
	if len(named) < len(names) {
		notes = append(notes, fmt.Sprintf("only %s has runs of no cell", operand))
	}
	return notes
}
