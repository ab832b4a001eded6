package descriptors

import (
	"cmp"
	"slices"
	"strings"

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

// sweep returns the function that reads the tree of a text with the table sweep: the
// descriptor of the first cell, and the faults of the sweep and of its cells.
func (p Parser) sweep(text []byte) func(tree *syntax.Node, damaged bool) (*Descriptor, []decode.Fault) {
	return func(tree *syntax.Node, damaged bool) (*Descriptor, []decode.Fault) {
		tree.Damage() // the cells may have the keys that are missing
		whole, all := p.read(tree, true)
		ofSweep := slices.DeleteFunc(slices.Clone(all), func(f decode.Fault) bool {
			return f.Path != "sweep" && !strings.HasPrefix(f.Path, "sweep.")
		})
		if damaged || hasError(ofSweep) {
			return whole, grid.Outside(text, tree, all)
		}
		g, found := grid.Read(p.source(text, tree, whole.Sweep))
		if g == nil {
			return whole, append(grid.Outside(text, tree, all), found...)
		}
		first, ofCells := p.cells(g)
		first.Sweep = whole.Sweep
		return first, slices.Concat(ofSweep, found, ofCells)
	}
}

func hasError(faults []decode.Fault) bool {
	return slices.ContainsFunc(faults, func(f decode.Fault) bool { return !f.Warning })
}

// MostRuns is how many runs a sweep may make, those for warming up included.
func (p Parser) MostRuns() int {
	most := cmp.Or(p.MaxRuns, DefaultMaxRuns)
	if p.Accepted {
		return max(most, mostRuns)
	}
	return most
}

func (p Parser) source(text []byte, tree *syntax.Node, s *Sweep) grid.Source {
	return grid.Source{Text: text, Tree: tree, Lists: lists(), RunsPerCell: s.Warmup + s.Repetitions, MostRuns: p.MostRuns()}
}

// cells are the descriptor of the first cell, and the faults of all. Of a sweep that a
// platform has accepted only the first cell is looked at.
func (p Parser) cells(g *grid.Grid) (*Descriptor, []decode.Fault) {
	var first *Descriptor
	faults := g.Check(p.Accepted, func(text []byte) []decode.Fault {
		if f, bad := decode.Unreadable(text, MaxSize); bad {
			first = cmp.Or(first, &Descriptor{})
			return []decode.Fault{f}
		}
		tree, broken := syntax.Parse(text)
		d, found := p.read(tree, len(broken) > 0)
		first = cmp.Or(first, d)
		return append(found, decode.Broken(broken)...)
	})
	return first, faults
}
