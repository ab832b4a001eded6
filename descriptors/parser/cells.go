package parser

import (
	"cmp"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/grid"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// DefaultMaxRuns is how many runs a sweep may make where the Parser says nothing else,
// those for warming up included.
const DefaultMaxRuns = 100_000

// mostRuns is how many runs a sweep may make that a platform has accepted, whatever its
// settings are now.
const mostRuns = 10 * DefaultMaxRuns

// A Budget bounds the work that readings take together. Only one goroutine may use it.
type Budget = grid.Budget

// NewBudget returns a budget for all entries of a suite: four times the text that is read for the
// largest sweep, and as many comparisons with rows of exclude as that needs.
func NewBudget() *Budget {
	const bytes, matches = 128 << 20, 1000 * DefaultMaxRuns
	return grid.NewBudget(bytes, matches)
}

// readCells is read for a text that may have the table sweep: then the descriptor is that of
// the first cell, with the description and labels that the file has for all of them, and the
// faults are those of the sweep and of its cells.
func (p Parser) readCells(text []byte, tree *syntax.Node, damaged bool) (*descriptors.Descriptor, *grid.Grid, []decode.Fault) {
	if tree.Get("sweep") == nil {
		d, found := p.read(tree, damaged)
		return d, nil, found
	}
	damageCells(tree)
	whole, all := p.read(tree, true)
	ofSweep := slices.DeleteFunc(slices.Clone(all), func(f decode.Fault) bool {
		return f.Path != "sweep" && !strings.HasPrefix(f.Path, "sweep.")
	})
	if damaged || decode.HasError(ofSweep) {
		return whole, nil, grid.Outside(text, tree, all)
	}
	g, found := grid.Read(grid.Source{
		Text: text, Tree: tree, Lists: lists(), RunsPerCell: whole.Sweep.Warmup + whole.Sweep.Repetitions, MostRuns: p.RunLimit(),
		Budget: p.Budget,
	})
	if g == nil {
		return whole, nil, append(grid.Outside(text, tree, all), found...)
	}
	first, ofCells := p.cells(g)
	first.Sweep, first.Info.Description, first.Info.Labels = whole.Sweep, whole.Info.Description, whole.Info.Labels
	return first, g, slices.Concat(ofSweep, found, ofCells)
}

// damageCells makes all tables damaged that cells can vary: the cells may have the keys that
// are missing there.
func damageCells(tree *syntax.Node) {
	stop := tree.Get("sweep").Get("stop_when")
	damaged := stop != nil && stop.Damaged
	tree.Damage()
	if stop != nil {
		stop.Damaged = damaged
	}
}

// RunLimit is how many runs a sweep may make, those for warming up included.
func (p Parser) RunLimit() int {
	most := cmp.Or(p.MaxRuns, DefaultMaxRuns)
	if p.Accepted {
		return max(most, mostRuns)
	}
	return most
}

// cells are the descriptor of the first cell, and the faults of all. Of a sweep that a
// platform has accepted only the first cell is looked at.
func (p Parser) cells(g *grid.Grid) (*descriptors.Descriptor, []decode.Fault) {
	var first *descriptors.Descriptor
	faults := g.Check(p.Accepted, func(text []byte) []decode.Fault {
		if f, bad := decode.Unreadable(text, MaxSize); bad {
			first = cmp.Or(first, &descriptors.Descriptor{})
			return []decode.Fault{f}
		}
		tree, broken := syntax.Parse(text)
		d, found := p.read(tree, len(broken) > 0)
		first = cmp.Or(first, d)
		return append(found, decode.Broken(broken)...)
	})
	return first, faults
}
