// Package sweep expands the table [sweep] of a descriptor into its cells and their
// runs. It is pure: the same text always has the same cells, names, IDs and order.
package sweep

import (
	"bytes"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/grid"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// Read reads the [sweep] of a descriptor after overrides: a text as ParseWith returns it.
// The faults are those of p.Parse. The plan is nil if one of them is an error, and for a
// descriptor without [sweep].
func Read(p parser.Parser, file string, text []byte) (*Plan, parser.Faults) {
	text = bytes.Clone(text)
	d, g, faults := p.Expand(file, text)
	if g == nil {
		return nil, faults
	}
	e := entry{grid: g, text: text, cells: g.Len(), warmup: d.Sweep.Warmup, repetitions: d.Sweep.Repetitions}
	return newPlan(*d.Sweep, []entry{e}), faults
}

// mark is the byte order mark of UTF-8.
const mark = "\ufeff"

// A Plan is the runs of a sweep, or those of a suite. It computes cells, texts and runs when
// they are asked for. It is not changed, and may be used by many goroutines at a time.
type Plan struct {
	sweep   descriptors.Sweep
	entries []entry

	layout

	shuffled []uint32 // the repetitions of all cells, as interleaved numbers them
}

// entry is the cells of one descriptor.
type entry struct {
	name string     // in a suite
	file string     // in a suite: where the descriptor was read
	text []byte     // of the descriptor
	grid *grid.Grid // nil for a descriptor of a suite without [sweep], which is one cell

	cells, warmup, repetitions int // numbers of cells, and of runs of each cell
}

// newPlan returns the plan of some entries, with the order of s.
func newPlan(s descriptors.Sweep, entries []entry) *Plan {
	p := &Plan{sweep: s, entries: entries, layout: newLayout(entries)}
	if s.Order == descriptors.Random {
		p.shuffled = shuffled(p.repetitions, uint64(s.Seed)) //nolint:gosec // its bits are the seed
	}
	return p
}

// A Cell is one combination of values.
type Cell struct {
	// ID is the first 12 hexadecimal digits of the SHA-256 of the lines name=value, sorted
	// by their names, each with its line feed, and the values as in Parameter.Text. It
	// depends on nothing else: on no other cell, no order and no number of repetitions.
	ID string

	// Name is for people, as num_instances=2,size=1K. No other cell of the plan has it, and
	// it has at most 120 bytes.
	Name string

	Parameters []Parameter // in the order in which the file has them first
}

// A Parameter is one value of a cell.
type Parameter struct {
	Name  string // a parameter, or the path of a key
	Text  string // the value as TOML on one line
	Value any    // a string, int64, float64, bool, []any or map[string]any; times are strings
}

// A Run is one run of a set.
type Run struct {
	Cell       int
	Repetition int // from 1, of warm-up runs too
	Warmup     bool
}

// Sweep is the table as it was read, with its defaults.
func (p *Plan) Sweep() descriptors.Sweep { return p.sweep }

// Cells is the number of cells: 1 or more.
func (p *Plan) Cells() int { return p.cells[len(p.entries)] }

// Cell is a cell by its number, from 0: the combinations of product and zip come first, then
// the rows of explicit. Those of a suite are entry by entry. It panics for a number that is
// none.
func (p *Plan) Cell(i int) Cell {
	e, inner := p.entryOf(i)
	if e.grid == nil {
		return e.member(Cell{})
	}
	one := e.grid.Point(inner)
	c := Cell{ID: one.ID, Name: one.Name, Parameters: make([]Parameter, len(one.Settings))}
	for i, s := range one.Settings {
		c.Parameters[i] = Parameter(s)
	}
	if e.name == "" {
		return c
	}
	return e.member(c)
}

// Descriptor is the text of cell i, for Parse: an ordinary descriptor, which differs from
// the text of the plan in the keys that the cell sets and in the names in its strings, and
// which has no [sweep].
func (p *Plan) Descriptor(i int) []byte {
	e, inner := p.entryOf(i)
	if e.grid == nil {
		return e.text
	}
	if bytes.HasPrefix(e.text, []byte(mark)) {
		return slices.Concat([]byte(mark), e.grid.Text(inner))
	}
	return e.grid.Text(inner)
}

// Repetitions is the number of counted runs of cell i.
func (p *Plan) Repetitions(i int) int {
	e, _ := p.entryOf(i)
	return e.repetitions
}

// Warmup is the number of runs of cell i before those that are counted.
func (p *Plan) Warmup(i int) int {
	e, _ := p.entryOf(i)
	return e.warmup
}

// entryOf is the entry that cell i is in, and the number of the cell there.
func (p *Plan) entryOf(i int) (*entry, int) {
	n := find(p.cells, i)
	return &p.entries[n], i - p.cells[n]
}
