package grid

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/internal/types"
)

// template writes the texts of the cells that give values to the same parameters.
type template struct {
	segments []segment
	size     int     // bytes of the text of the cell for which it was made
	texts    []*text // those in the segments
	errs     []setError
}

// segment is a part of a cell's text: bytes, the value of a key, or a string with
// parameters.
type segment struct {
	bytes     []byte
	at        int // the offset of bytes in the file, or -1
	parameter int // whose value these bytes are, are of, or are around; -1 for none
	slot      bool
	around    bool
	text      *text
}

// setError says that a key cannot be set.
type setError struct {
	parameter int
	err       error
}

// newTemplate is that of a cell. Other cells can use it if they give values to the same
// parameters and hasTable is false for both.
func (g *Grid) newTemplate(choices []choice) *template {
	t := &template{}
	edited := edit.New(g.source.Text)
	_ = edited.Remove([]edit.Step{{Name: "sweep"}}) // it is a table of the outermost one
	for _, c := range choices {
		if path := g.parameters[c.parameter].path; path != nil {
			if err := edited.Set(path, g.value(c).text, c.parameter, g.source.Lists); err != nil {
				t.errs = append(t.errs, setError{c.parameter, err})
			}
		}
	}
	given := g.given(choices)
	texts := find(edited, g.numbers)
	from := 0
	for _, p := range edited.Pieces() {
		to := from + len(p.Text)
		switch {
		case p.Origin != edit.File:
			slot := p.At == 0 && len(p.Text) == len(given[p.Origin].text)
			t.segments = append(t.segments, segment{bytes: p.Text, at: -1, parameter: p.Origin, slot: slot, around: p.At < 0})
		default:
			texts = t.split(p, from, texts)
		}
		from = to
		t.size += len(p.Text)
	}
	return t
}

// spannedText is a string with parameters, and its place in the text of a cell.
type spannedText struct {
	span syntax.Span
	text *text
}

// find are the strings of the file with parameters, in the order of their places.
func find(edited *edit.Text, numbers map[string]int) []spannedText {
	var all []spannedText
	source, origins := edited.Bytes(), edited.Origins()
	tree, _ := syntax.Parse(source)
	visit(tree, nil, func(n *syntax.Node, path []string) {
		origin, at := origins.Of(n.Span.From)
		found, ok := newText(n, string(source[n.Span.From:n.Span.To]), at)
		if origin != edit.File || !ok {
			return
		}
		found.path, found.fixed = strings.Join(path, "."), types.IsFixed(path)
		found.resolve(numbers)
		all = append(all, spannedText{n.Span, found})
	})
	slices.SortFunc(all, func(a, b spannedText) int { return cmp.Compare(a.span.From, b.span.From) })
	return all
}

// visit calls each for the strings in n.
func visit(n *syntax.Node, path []string, each func(n *syntax.Node, path []string)) {
	switch n.Kind { //nolint:exhaustive // no other value has a string in it
	case syntax.String:
		each(n, path)
	case syntax.List:
		for _, item := range n.Items {
			visit(item, path, each)
		}
	case syntax.Table:
		for _, e := range n.Entries {
			visit(e.Value, append(slices.Clip(path), e.Name), each)
		}
	}
}

// split adds a piece of the file, which begins at the offset from of the text, and gives the texts
// behind it.
func (t *template) split(p edit.Piece, from int, texts []spannedText) []spannedText {
	begin := 0
	file := func(end int) {
		if begin < end {
			t.segments = append(t.segments, segment{bytes: p.Text[begin:end], at: p.At + begin, parameter: -1})
		}
	}
	for len(texts) > 0 && texts[0].span.From < from+len(p.Text) {
		s := texts[0]
		file(s.span.From - from)
		t.segments = append(t.segments, segment{at: s.text.at, parameter: -1, text: s.text})
		t.texts = append(t.texts, s.text)
		begin = s.span.To - from
		texts = texts[1:]
	}
	file(len(p.Text))
	return texts
}

// write is the text with the given values.
func (t *template) write(given *values) []byte {
	const more = 256 // bytes of values, as a rule
	out := make([]byte, 0, t.size+more)
	for _, s := range t.segments {
		out = s.write(out, given)
	}
	return out
}

func (s segment) write(out []byte, given *values) []byte {
	switch {
	case s.text != nil:
		return s.text.write(out, given)
	case s.slot:
		return append(out, given[s.parameter].text...)
	}
	return append(out, s.bytes...)
}

// hasTable reports whether a key is set to a table, whose keys may be written into the
// file one by one.
func (g *Grid) hasTable(choices []choice) bool {
	return slices.ContainsFunc(choices, func(c choice) bool {
		return g.parameters[c.parameter].path != nil && g.value(c).node.Kind == syntax.Table
	})
}

// shape is the set of the parameters of a cell.
func shape(choices []choice) uint64 {
	var all uint64
	for _, c := range choices {
		all |= 1 << c.parameter
	}
	return all
}

// template is that of a cell.
func (g *Grid) template(choices []choice) *template {
	if t, ok := g.templates[shape(choices)]; ok && !g.hasTable(choices) {
		return t
	}
	return g.newTemplate(choices)
}

// Text is the text of cell i.
func (g *Grid) Text(i int) []byte {
	choices := g.choices(g.cells[i], nil)
	return g.template(choices).write(g.given(choices))
}

// compile makes the templates, and finds names without a value and values that no string
// can have.
func (r *reader) compile() {
	f := finder{reader: r, lines: syntax.NewLines(r.g.source.Text), used: make([]bool, len(r.g.parameters)), reported: map[int]bool{}}
	seen := map[uint64]bool{}
	var choices []choice
	for _, cell := range r.g.cells {
		choices = r.g.choices(cell, choices[:0])
		which, table := shape(choices), r.g.hasTable(choices)
		if _, ok := r.g.templates[which]; ok || seen[which] && table {
			continue
		}
		t := r.g.newTemplate(choices)
		if !table {
			r.g.templates[which] = t
		}
		if !seen[which] {
			f.texts(t, r.g.uniqueName(cell, choices), r.g.given(choices))
		}
		seen[which] = true
	}
	for i, p := range r.g.parameters {
		f.parameter(p, f.used[i])
	}
}

// finder finds the faults of names in strings.
type finder struct {
	*reader
	lines    syntax.Lines
	used     []bool       // the parameters
	reported map[int]bool // offsets in the file
}

// texts finds the faults in the strings of a template, which a cell uses.
func (f *finder) texts(t *template, cell string, given *values) {
	for _, s := range t.texts {
		if s.fixed {
			f.once(s.at, s, fault.NotVaried, "is the same in every run of a set", "write it without {{…}}")
		}
		for _, p := range s.names() {
			number, known := f.g.numbers[p.text]
			switch {
			case !known:
				f.once(p.offset, s, fault.NoParameter, fmt.Sprintf("no list or row of [sweep] has a value for {{%s}}", p.text),
					f.suggestion(p.text))
			case given[number] == nil:
				f.once(p.offset, s, fault.NoParameter, fmt.Sprintf("the cell %s has no value for {{%s}}", cell, p.text),
					"give all cells a value for this name")
			default:
				f.used[number] = true
			}
		}
	}
}

// once reports a fault at an offset of the file, where there is none yet.
func (f *finder) once(offset int, s *text, code, message, remedy string) {
	if !f.reported[offset] {
		f.reported[offset] = true
		f.fault(f.lines.Position(offset), s.path, code, message, remedy)
	}
}

// parameter finds a name that no string uses, and the values that no string can have.
func (f *finder) parameter(p parameter, used bool) {
	if p.path != nil {
		return
	}
	if !used {
		f.warn(p.at, p.keyPath, fault.NotUsed, fmt.Sprintf("no string has {{%s}}", p.name),
			"write the name in double braces, without blanks, or the path of a key with its dots")
		return
	}
	for _, v := range p.values {
		if v.node.Kind == syntax.List || v.node.Kind == syntax.Table {
			f.fault(v.node.At, p.keyPath, fault.NotSubstituted, fmt.Sprintf("%s cannot stand in a string", v.node.Kind),
				"write a string or a number, or vary a key by its path")
		}
	}
}
