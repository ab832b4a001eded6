// Package grid expands the table [sweep] of a descriptor into cells, and writes the text of
// each of them.
package grid

import (
	"encoding/hex"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// Source is a descriptor with a [sweep].
type Source struct {
	Text        []byte       // TOML, without a byte order mark
	Tree        *syntax.Node // of Text; its sweep has the types of the language
	Lists       edit.Lists   // of the language
	RunsPerCell int          // 1 or more
	MostRuns    int          // with more runs there is a fault
	Budget      *Budget      // beside the limits of one sweep; nil for none
}

// A Grid is the cells of a sweep. It holds no text of any cell, and may be used by many
// goroutines at a time.
type Grid struct {
	source       Source
	parameters   []parameter
	numbers      map[string]int // of the parameters, by their names
	byName       []int          // the parameters, sorted by their names
	axes         []axis         // of product, then that of zip
	combinations uint32
	explicit     []row
	exclude      []row
	cells        []uint32             // those that are not excluded: combinations, then explicit rows
	ambiguous    map[uint32]bool      // cells with the name of another one
	templates    map[uint64]*template // by the parameters of a cell
	checked      []int                // cells that Check reads
}

// parameter is a name that cells give a value.
type parameter struct {
	name    string
	keyPath string // path of its first list or row
	at      syntax.Position
	path    []edit.Step // of the key that it sets; nil for {{name}}
	label   string      // its name in those of cells
	values  []value
	byText  map[string]int
}

// value is one value of a parameter.
type value struct {
	node    *syntax.Node
	text    string // as TOML
	content string // what {{name}} stands for; "" for a list or table
	plain   bool   // content can stand in any string of TOML as it is
}

// choice gives a parameter one of its values.
type choice struct {
	parameter int
	value     int // -1: a value that no cell has
	at        syntax.Position
}

// axis has the choices of each of its steps.
type axis [][]choice

// row is a row of explicit or exclude.
type row struct {
	at      syntax.Position
	keyPath string
	choices []choice // in the order of the parameters
}

// Read reads the sweep of s. Faults of cells are not among the faults: see Check. The grid
// is nil if one of the faults is an error.
func Read(s Source) (*Grid, []decode.Fault) {
	r := reader{g: &Grid{source: s, numbers: map[string]int{}, templates: map[uint64]*template{}}}
	r.read(s.Tree.Get("sweep"))
	if r.failed() {
		return nil, r.faults
	}
	for _, step := range []func(){r.paths, r.count, r.exclude, r.identify, r.limit, r.compile} {
		if step(); r.failed() {
			return nil, r.faults
		}
	}
	return r.g, r.faults
}

// Len is the number of cells.
func (g *Grid) Len() int { return len(g.cells) }

// choices are those of a cell, in the order of the parameters. They are appended to into.
func (g *Grid) choices(cell uint32, into []choice) []choice {
	if cell >= g.combinations {
		return append(into, g.explicit[cell-g.combinations].choices...)
	}
	each := g.combinations // cells that share a step of the axes so far
	for _, a := range g.axes {
		each /= uint32(len(a)) //nolint:gosec // no more than there are runs
		into = append(into, a[cell/each]...)
		cell %= each
	}
	return into
}

// A Point is one combination of values: a cell.
type Point struct {
	ID, Name string
	Settings []Setting // in the order in which the file has their names first
}

// A Setting is the value of one parameter in a cell.
type Setting struct {
	Name  string
	Text  string // as TOML on one line
	Value any    // as syntax.Node.Plain has it
}

// Point is cell i. No other cell has its ID or its name.
func (g *Grid) Point(i int) Point {
	choices := g.choices(g.cells[i], make([]choice, 0, MaxParameters))
	id := g.id(choices)
	c := Point{ID: hex.EncodeToString(id[:]), Name: g.uniqueName(g.cells[i], choices), Settings: make([]Setting, len(choices))}
	for i, one := range choices {
		v := g.value(one)
		c.Settings[i] = Setting{g.parameters[one.parameter].name, v.text, v.node.Plain()}
	}
	return c
}

// values are those of a cell, by the numbers of the parameters.
type values [MaxParameters]*value

func (g *Grid) given(choices []choice) *values {
	all := &values{}
	for _, c := range choices {
		all[c.parameter] = g.value(c)
	}
	return all
}

func (g *Grid) value(c choice) *value { return &g.parameters[c.parameter].values[c.value] }
