// Package values reads values files: TOML whose values are laid over those of a descriptor.
//
// A file has the tables of a descriptor with the keys that change. At its top a name in
// quotes with a dot is the path of a key, and a name that is no key of a descriptor is a
// parameter of [sweep]; the table [parameters] has parameters too.
package values

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// A Value is one value of a file, and its place there.
type Value struct {
	parser.Override

	file      string
	key       syntax.Position
	node      *syntax.Node
	parameter bool
}

// Read returns the values of a file in its order. It returns none if there are faults.
func Read(file string, text []byte) ([]Value, parser.Faults) {
	if f, bad := decode.Unreadable(text, parser.MaxSize); bad && f.Code != fault.Empty {
		return nil, parser.Faults{located(file, f)}
	}
	body := bytes.TrimPrefix(text, []byte("\ufeff"))
	tree, broken := syntax.Parse(body)
	if len(broken) > 0 {
		var faults parser.Faults
		for _, f := range decode.Broken(broken) {
			faults = append(faults, located(file, f))
		}
		return nil, faults
	}
	return Of(file, body, tree), nil
}

func located(file string, f decode.Fault) parser.Fault {
	return parser.Fault{File: file, Line: f.At.Line, Column: f.At.Column, Code: f.Code, Message: f.Message, Remedy: f.Remedy}
}

// Of returns the values of a table of a text, as Read returns those of a file.
func Of(file string, text []byte, table *syntax.Node) []Value {
	r := reader{file: file, text: text, last: make(map[string]int)}
	known := topKeys()
	for _, e := range table.Entries {
		isTable := e.Value.Kind == syntax.Table
		switch {
		case e.Name == "parameters" && isTable:
			for _, p := range e.Value.Entries {
				r.parameter(p)
			}
		case strings.Contains(e.Name, "."):
			r.value(e.Name, e)
		case isTable || known[e.Name]:
			r.entry(decode.Quoted(e.Name), e)
		default:
			r.parameter(e)
		}
	}
	return r.values()
}

// topKeys are the keys of a descriptor that are in no table.
var topKeys = sync.OnceValue(func() map[string]bool { //nolint:gochecknoglobals // a constant
	all := make(map[string]bool)
	for _, k := range parser.Keys() {
		all[k.Path] = true
	}
	return all
})

type reader struct {
	file string
	text []byte
	all  []Value
	last map[string]int // the last value of each path
}

// values are those that no later one replaces.
func (r *reader) values() []Value {
	var all []Value
	for i, v := range r.all {
		if r.last[v.Path] == i {
			all = append(all, v)
		}
	}
	return all
}

// entry adds the values in an entry, whose key has that path.
func (r *reader) entry(path string, e syntax.Entry) {
	if e.Value.Kind != syntax.Table {
		r.value(path, e)
		return
	}
	for _, inner := range e.Value.Entries {
		r.entry(path+"."+decode.Quoted(inner.Name), inner)
	}
}

func (r *reader) value(path string, e syntax.Entry) {
	r.add(Value{Override: parser.Override{Path: path, Value: r.source(e.Value)}, key: e.At, node: e.Value})
}

// parameter adds the value of a parameter: the only one that [sweep] gives it.
func (r *reader) parameter(e syntax.Entry) {
	r.add(Value{
		Override: parser.Override{Path: "sweep.product." + decode.Quoted(e.Name), Value: "[" + r.source(e.Value) + "]"},
		key:      e.At, node: e.Value, parameter: true,
	})
}

// add adds a value, in place of an earlier one with its path.
func (r *reader) add(v Value) {
	v.file = r.file
	r.last[v.Path] = len(r.all)
	r.all = append(r.all, v)
}

// source is a value as the text has it; a list of [[tables]] is on one line.
func (r *reader) source(n *syntax.Node) string {
	if n.Span == (syntax.Span{}) {
		return n.TOML()
	}
	return string(r.text[n.Span.From:n.Span.To])
}

// Merge returns the values of lower and upper. Of values with one path it has that of upper.
func Merge(lower, upper []Value) []Value {
	all := slices.DeleteFunc(slices.Clone(lower), func(v Value) bool {
		return slices.ContainsFunc(upper, func(over Value) bool { return over.Path == v.Path })
	})
	return append(all, upper...)
}

// Overrides returns the values as ParseWith takes them.
func Overrides(all []Value) []parser.Override {
	set := make([]parser.Override, len(all))
	for i, v := range all {
		set[i] = v.Override
	}
	return set
}

// Locate gives the fault of an override that is a value of a file its place there. Another
// fault stays as it is.
func Locate(f parser.Fault, all []Value) parser.Fault {
	path, ok := strings.CutPrefix(f.File, "--set ")
	n := slices.IndexFunc(all, func(v Value) bool { return ok && v.Path == path })
	if n < 0 {
		return f
	}
	return all[n].locate(f)
}

// locate gives a fault of v its place in the file. Where the key is at fault and not its
// value, this is the place of the key.
func (v Value) locate(f parser.Fault) parser.Fault {
	f.File = v.file
	if before, found := strings.CutPrefix(f.Remedy, "write --set '"+v.Path+"="); found {
		f.Remedy = "write " + strings.TrimSuffix(before, "'")
	}
	at := v.key
	if !isOfKey(f) {
		at = v.position(f)
	}
	f.Line, f.Column = at.Line, at.Column
	return f
}

// isOfKey reports whether a fault says that the key is none, or is not used.
func isOfKey(f parser.Fault) bool {
	return f.Line == 1 && f.Column == 1 &&
		slices.Contains([]string{fault.UnknownKey, fault.Override, fault.BadSweep, fault.NotUsed, fault.TooLarge}, f.Code)
}

// position returns that of a fault in the value.
func (v Value) position(f parser.Fault) syntax.Position {
	line, column := f.Line, f.Column
	if v.node.Span == (syntax.Span{}) {
		return element(v.node, f.Path, v.Path)
	}
	if line > 1 {
		return syntax.Position{Line: v.node.At.Line + line - 1, Column: column}
	}
	if v.parameter {
		column = max(column-1, 1) // the list has a bracket that the file has not
	}
	return syntax.Position{Line: v.node.At.Line, Column: v.node.At.Column + column - 1}
}

// element is the place of the value at a path in a list of [[tables]] that is at the path
// list.
func element(n *syntax.Node, path, list string) syntax.Position {
	outer, err := edit.ReadPath(list)
	steps, pathErr := edit.ReadPath(path)
	if err != nil || pathErr != nil {
		return n.At
	}
	for _, step := range steps[min(len(outer), len(steps)):] {
		next := n.Get(step.Name)
		if i, err := strconv.Atoi(step.Name); err == nil && i < len(n.Items) {
			next = n.Items[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.At
}
