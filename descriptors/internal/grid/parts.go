package grid

import (
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/internal/types"
)

// part is a part of a string: literal text, or {{name}}.
type part struct {
	text      string // the name of a parameter without its braces
	kind      partKind
	offset    int
	parameter int // number of a name
}

type partKind int

const (
	literal partKind = iota
	escape           // {{{{, whose text is {{
	name
)

const braces = "{{"

// parts are those of s in order. Braces that are neither {{name}} nor {{{{ are literal.
func parts(s string) []part {
	var all []part
	from := 0 // of literal text
	add := func(p part, length int) {
		if from < p.offset {
			all = append(all, part{text: s[from:p.offset], offset: from})
		}
		all = append(all, p)
		from = p.offset + length
	}
	for at := strings.Index(s, braces); at >= 0 && at < len(s); {
		rest := s[at+len(braces):]
		if strings.HasPrefix(rest, braces) {
			add(part{text: braces, kind: escape, offset: at}, 2*len(braces))
		} else if word := types.LeadingParameter(rest); word != "" && strings.HasPrefix(rest[len(word):], "}}") {
			add(part{text: word, kind: name, offset: at}, len(word)+2*len(braces))
		}
		at = max(at+1, from)
		next := strings.Index(s[at:], braces)
		if next < 0 {
			break
		}
		at += next
	}
	if from < len(s) {
		all = append(all, part{text: s[from:], offset: from})
	}
	return all
}

// text is a string of the file with a parameter in it.
type text struct {
	at      int    // its offset in the file
	path    string // of its key
	fixed   bool   // no cell may vary the key
	raw     []part // of its text in the file, with quotes
	content []part
	same    bool // raw has the parameters of content
}

// newText is the string n, if it has a parameter or an escape. Source is its text in the
// file, which begins at offset.
func newText(n *syntax.Node, source string, offset int) (*text, bool) {
	if !strings.Contains(n.Text, braces) {
		return nil, false
	}
	t := &text{at: offset, content: parts(n.Text), raw: parts(source)}
	t.same = slices.EqualFunc(variable(t.raw), variable(t.content), func(a, b part) bool { return a.text == b.text && a.kind == b.kind })
	return t, len(variable(t.content)) > 0
}

// variable are the parts that are not literal.
func variable(all []part) []part {
	return slices.DeleteFunc(slices.Clone(all), func(p part) bool { return p.kind == literal })
}

// names are the parameters of t, with their offsets in the file.
func (t *text) names() []part {
	isName := func(p part) bool { return p.kind != name }
	all, raw := slices.DeleteFunc(variable(t.content), isName), slices.DeleteFunc(variable(t.raw), isName)
	for i := range all {
		all[i].offset = t.at
		if t.same {
			all[i].offset += raw[i].offset
		}
	}
	return all
}

// resolve gives the names the numbers of their parameters.
func (t *text) resolve(numbers map[string]int) {
	for _, all := range [][]part{t.raw, t.content} {
		for i, p := range all {
			all[i].parameter = numbers[p.text]
		}
	}
}

// write appends t with the given values in place of the parameters: as the file has it
// where all values can be written so, else as a string on one line.
func (t *text) write(out []byte, given *values) []byte {
	plain := t.same
	for _, p := range t.content {
		plain = plain && (p.kind != name || given[p.parameter].plain)
	}
	if plain {
		return fill(out, t.raw, given)
	}
	return append(out, syntax.Quote(string(fill(nil, t.content, given)))...)
}

// fill appends parts with the given values in place of the names.
func fill(out []byte, all []part, given *values) []byte {
	for _, p := range all {
		if p.kind == name {
			out = append(out, given[p.parameter].content...)
			continue
		}
		out = append(out, p.text...)
	}
	return out
}
