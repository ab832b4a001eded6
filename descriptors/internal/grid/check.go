package grid

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

const (
	mostChecked = 4096     // cells of which all are checked
	mostRead    = 32 << 20 // bytes that are read to check the cells
	mostFaults  = 100      // of cells: a sweep with more is checked no further
)

// limit refuses more runs than are taken, and more text than is read to check the cells.
func (r *reader) limit() {
	const perCell = "%d cells with %d runs each are more than the %d runs that a set may have"
	if n := r.g.Len(); n*r.g.source.RunsPerCell > r.g.source.MostRuns {
		r.many(fmt.Sprintf(perCell, n, r.g.source.RunsPerCell, r.g.source.MostRuns))
		return
	}
	for i := range r.g.cells {
		r.g.checked = append(r.g.checked, i)
	}
	cell := edit.New(r.g.source.Text)
	_ = cell.Remove([]edit.Step{{Name: "sweep"}}) // as newTemplate does
	r.outside = len(cell.Bytes())
	budget := r.g.source.Budget
	if r.g.Len() > mostChecked || r.cost(r.g.checked) > budget.readable(mostRead) {
		r.g.checked = r.g.covering()
	}
	switch n := r.cost(r.g.checked); {
	case n > mostRead:
		r.many(fmt.Sprintf("checking its values takes reading %d MiB; %d MiB at most are read", n>>20, mostRead>>20))
	case !budget.Read(n):
		r.many("checking its values and those of the entries before it takes more reading than is done for a suite")
	}
}

// cost returns how many bytes are read to check some cells: the file, for a template, and the
// texts of the cells, which have no table sweep.
func (r *reader) cost(cells []int) int {
	const perTemplate = 3 // readings, beside two for each parameter
	bytes := 0
	seen := map[uint64]bool{}
	var choices []choice
	for _, i := range cells {
		choices = r.g.choices(r.g.cells[i], choices[:0])
		bytes += r.outside
		for _, c := range choices {
			bytes += len(r.g.value(c).text)
		}
		if which := shape(choices); !seen[which] || r.g.hasTable(choices) {
			seen[which] = true
			bytes += (perTemplate + 2*len(choices)) * len(r.g.source.Text)
		}
	}
	return bytes
}

// covering are cells that have every value of every parameter, and every set of parameters.
func (g *Grid) covering() []int {
	values, shapes := map[[2]int]bool{}, map[uint64]bool{}
	var all []int
	var choices []choice
	for i, cell := range g.cells {
		choices = g.choices(cell, choices[:0])
		fresh := !shapes[shape(choices)]
		shapes[shape(choices)] = true
		for _, c := range choices {
			at := [2]int{c.parameter, c.value}
			fresh = fresh || !values[at]
			values[at] = true
		}
		if fresh {
			all = append(all, i)
		}
	}
	return all
}

// Check are the faults of cells, each once, at their places in the file. It has the
// warnings of the first cell only. Read reads the text of a cell. All values of all
// parameters are read, and all cells of a sweep that has not very many; or the first cell
// only.
func (g *Grid) Check(first bool, read func(text []byte) []decode.Fault) []decode.Fault {
	c := checker{g: g, seen: map[decode.Fault]bool{}, lines: syntax.NewLines(g.source.Text)}
	for _, i := range g.checked {
		if i > 0 && (first || len(c.faults) >= mostFaults) {
			break
		}
		c.cell(i, read)
	}
	return c.faults
}

// checker collects the faults of cells.
type checker struct {
	g      *Grid
	lines  syntax.Lines
	seen   map[decode.Fault]bool // without messages
	faults []decode.Fault
}

func (c *checker) cell(i int, read func(text []byte) []decode.Fault) {
	choices := c.g.choices(c.g.cells[i], nil)
	t := c.g.template(choices)
	for _, e := range t.errs {
		p := c.g.parameters[e.parameter]
		c.add(i, false, decode.Fault{At: p.at, Path: p.keyPath, Code: fault.BadSweep, Message: e.message(p.path)})
	}
	text := t.write(c.g.given(choices))
	found := read(text)
	if len(found) == 0 {
		return
	}
	o := t.origins(c.g, text, choices)
	for _, f := range found {
		if f.Warning && i > 0 {
			continue
		}
		at, isValue := c.locate(o, &f)
		f.At = at
		c.add(i, isValue || i > 0, f)
	}
}

// add adds a fault of cell i, where the file has no such one in its place.
func (c *checker) add(i int, named bool, f decode.Fault) {
	key := f
	key.Message, key.Remedy = "", ""
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	if named {
		f.Message = fmt.Sprintf("in cell %s: %s", c.g.uniqueName(c.g.cells[i], c.g.choices(c.g.cells[i], nil)), f.Message)
	}
	c.faults = append(c.faults, f)
}

func (e setError) message(path []edit.Step) string {
	if e, ok := errors.AsType[*edit.PathNotFoundError](e.err); ok {
		return fmt.Sprintf("%s %v", cmp.Or(join(path[:e.Step+1], "."), "the file"), e.Err)
	}
	return "cannot be set: " + e.err.Error()
}

// origins are the places from which the text of a cell comes.
type origins struct {
	lines   syntax.Lines
	pieces  []origin
	choices []choice
}

// origin is that of the bytes from an offset on.
type origin struct {
	from int
	segment
}

func (t *template) origins(g *Grid, whole []byte, choices []choice) origins {
	o := origins{lines: syntax.NewLines(whole), choices: choices}
	given := g.given(choices)
	from := 0
	for _, s := range t.segments {
		o.pieces = append(o.pieces, origin{from, s})
		from += len(s.write(nil, given))
	}
	return o
}

// locate returns the position of f in the file, and whether this is the value of a cell. The place
// of an error in a string is the value in it, unless no string at all is taken. The path of
// an unknown key becomes that of the name which sets it.
func (c *checker) locate(o origins, f *decode.Fault) (at syntax.Position, isValue bool) {
	if f.At == (syntax.Position{Line: 1, Column: 1}) && (f.Code == fault.Missing || f.Path == "") {
		return f.At, false
	}
	offset := o.lines.Offset(f.At)
	next := sort.Search(len(o.pieces), func(i int) bool { return o.pieces[i].from > offset })
	p := o.pieces[max(next-1, 0)]
	parameter := p.parameter
	switch {
	case p.around:
		if f.Code == fault.UnknownKey {
			f.Code, f.Path, f.Message = fault.BadSweep, c.g.parameters[parameter].keyPath, "there is no such key"
		}
		return c.g.parameters[parameter].at, false
	case p.text != nil && !f.Warning && f.Code != fault.WrongType && len(p.text.names()) > 0:
		parameter = p.text.names()[0].parameter
	case p.text != nil && f.Code == fault.WrongType:
		f.Remedy = fmt.Sprintf("a string stays one with {{…}} in it: vary the key, as \"%s\" = [1, 2] in [sweep.product]", f.Path)
		return c.lines.Position(p.at), false
	case p.text != nil:
		return c.lines.Position(p.at), false
	}
	for _, one := range o.choices {
		if one.parameter == parameter {
			return one.at, true
		}
	}
	return c.lines.Position(p.at + offset - p.from), false
}

// Outside are the faults in no string with a parameter: those that a file has whatever the
// values are.
func Outside(text []byte, tree *syntax.Node, faults []decode.Fault) []decode.Fault {
	var spans []syntax.Span
	visit(tree, nil, func(n *syntax.Node, path []string) {
		if path[0] != "sweep" && strings.Contains(n.Text, braces) {
			spans = append(spans, n.Span)
		}
	})
	slices.SortFunc(spans, func(a, b syntax.Span) int { return cmp.Compare(a.From, b.From) })
	lines := syntax.NewLines(text)
	return slices.DeleteFunc(faults, func(f decode.Fault) bool {
		at := lines.Offset(f.At)
		next := sort.Search(len(spans), func(i int) bool { return spans[i].From > at })
		return next > 0 && at < spans[next-1].To
	})
}
