// Package document reads YAML documents whose values know their places, and collects what is
// to be said about them.
package document

import (
	"fmt"
	"slices"
	"strings"
)

// A Note is a remark or a fault about one key of a file.
type Note struct {
	Path    string // the key, as spec.resources.limits; "" for the file
	Line    int    // from 1; 0 if it is not known
	Column  int    // from 1, in characters; 0 if it is not known
	Message string // one line
	Remedy  string // one line; may be empty
}

// Notes collects the notes about one file. The zero Notes is empty.
type Notes struct {
	remarks, faults []Note
}

// Remarks returns the notes about what is not carried over, in the order of their lines.
func (n *Notes) Remarks() []Note { return inOrder(n.remarks) }

// maxFaults is how many faults are returned.
const maxFaults = 100

// Faults returns the notes about what cannot be read, in the order of their lines; of many, the first ones.
func (n *Notes) Faults() []Note {
	all := inOrder(n.faults)
	return all[:min(len(all), maxFaults)]
}

// Remark adds a note about the file.
func (n *Notes) Remark(path, format string, args ...any) {
	n.remarks = append(n.remarks, Note{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Add adds remarks.
func (n *Notes) Add(remarks ...Note) { n.remarks = append(n.remarks, remarks...) }

// Fault adds a fault of the file.
func (n *Notes) Fault(remedy, format string, args ...any) {
	n.faults = append(n.faults, Note{Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// AddFault adds a fault that is known already.
func (n *Notes) AddFault(f Note) { n.faults = append(n.faults, f) }

// inOrder returns notes by their lines, each once. Those without a line come first.
func inOrder(notes []Note) []Note {
	var all []Note
	seen := map[Note]bool{}
	for _, n := range notes {
		if !seen[n] {
			all = append(all, n)
		}
		seen[n] = true
	}
	slices.SortStableFunc(all, func(a, b Note) int { return a.Line - b.Line })
	return all
}

// A Kind is what a value is in YAML.
type Kind int

// The kinds of values. Absent is that of a key that is not there, or is null.
const (
	Absent Kind = iota
	Text
	Integer
	Float
	Bool
	List
	Table
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"nothing", "text", "a whole number", "a number", "true or false", "a list", "a table"}[k]
}

// A Value is a value of a document. The zero Value is absent, and nothing can be said about it.
type Value struct {
	notes        *Notes
	kind         Kind
	path         string
	line, column int
	text         string // of a scalar, as it is written
	items        []Value
	keys         []string
	fields       map[string]Value
	read         map[string]bool // the keys that have been asked for
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// Has reports whether the value is there.
func (v Value) Has() bool { return v.kind != Absent }

// Path returns the key of the value.
func (v Value) Path() string { return v.path }

// Raw returns the text of a scalar as it is written.
func (v Value) Raw() string { return v.text }

// Remark says that something of the value is not carried over.
func (v Value) Remark(format string, args ...any) {
	if v.notes != nil {
		v.notes.remarks = append(v.notes.remarks, v.note("", format, args...))
	}
}

// Fault says that the value cannot be read.
func (v Value) Fault(remedy, format string, args ...any) {
	if v.notes != nil {
		v.notes.faults = append(v.notes.faults, v.note(remedy, format, args...))
	}
}

func (v Value) note(remedy, format string, args ...any) Note {
	return Note{Path: v.path, Line: v.line, Column: v.column, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// want reports whether the value has a kind, and adds a fault if it has another.
func (v Value) want(kinds ...Kind) bool {
	if slices.Contains(kinds, v.kind) {
		return true
	}
	if v.Has() {
		v.Fault("", "is %s, and not %s", v.describe(), kinds[0])
	}
	return false
}

// describe returns the value in a few words.
func (v Value) describe() string {
	const most = 40
	if v.kind == List || v.kind == Table || v.kind == Absent {
		return v.kind.String()
	}
	text := v.text
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}

// String returns a text. Numbers and bools are no texts.
func (v Value) String() string {
	if v.want(Text) {
		return v.text
	}
	return ""
}

// Scalar returns the text of a scalar of any kind.
func (v Value) Scalar() string {
	if v.want(Text, Integer, Float, Bool) {
		return v.text
	}
	return ""
}

// Bool returns a bool.
func (v Value) Bool() bool { return v.want(Bool) && strings.EqualFold(v.text, "true") }

// Int returns a whole number between two, and low if the value is none.
func (v Value) Int(low, high int64) int64 {
	if !v.want(Integer) {
		return low
	}
	n, ok := parseInt(v.text)
	if !ok || n < low || n > high {
		v.Fault("", "is %s, and has to be from %d to %d", v.text, low, high)
		return low
	}
	return n
}

// Items returns the elements of a list.
func (v Value) Items() []Value {
	if v.want(List) {
		return v.items
	}
	return nil
}

// Strings returns the elements of a list of scalars.
func (v Value) Strings() []string {
	all := make([]string, 0, len(v.items))
	for _, item := range v.Items() {
		all = append(all, item.Scalar())
	}
	return all
}

// Keys returns the keys of a table in the order of the file.
func (v Value) Keys() []string {
	if v.want(Table) {
		return v.keys
	}
	return nil
}

// Get returns the value of a key, and remembers that it was asked for. The value is absent if
// the table has no such key, and for the path to it if there is no table.
func (v Value) Get(path ...string) Value {
	for _, key := range path {
		if !v.want(Table) {
			return Value{notes: v.notes, path: join(v.path, key), line: v.line, column: v.column}
		}
		v.read[key] = true
		next, ok := v.fields[key]
		if !ok {
			next = Value{notes: v.notes, path: join(v.path, key), line: v.line, column: v.column}
		}
		v = next
	}
	return v
}

// Peek is Get that remembers nothing and finds no fault.
func (v Value) Peek(path ...string) Value {
	for _, key := range path {
		v = v.fields[key]
	}
	return v
}

// Drop says why some keys of a table are not carried over, if they are there.
func (v Value) Drop(why string, keys ...string) {
	for _, key := range keys {
		if one := v.Get(key); one.Has() {
			one.Remark("%s", why)
		}
	}
}

// DropChanged says why some keys of a table are not carried over, where they are there and have not the value that they have in another
// table, which is carried over.
func (v Value) DropChanged(from Value, why string, keys ...string) {
	for _, key := range keys {
		if one := v.Get(key); one.Has() && !one.Equal(from.Peek(key)) {
			one.Remark("%s", why)
		}
	}
}

// Equal reports whether two values are written alike, in whatever order the keys of tables are.
func (v Value) Equal(other Value) bool {
	if v.kind != other.kind || v.text != other.text || len(v.items) != len(other.items) || len(v.fields) != len(other.fields) {
		return false
	}
	for i, item := range v.items {
		if !item.Equal(other.items[i]) {
			return false
		}
	}
	for key, one := range v.fields {
		if like, ok := other.fields[key]; !ok || !one.Equal(like) {
			return false
		}
	}
	return true
}

// Rest has a remark for each key of a table that was never asked for.
func (v Value) Rest(format string, args ...any) {
	for _, key := range v.keys {
		if one := v.fields[key]; !v.read[key] && one.Has() {
			one.Remark(format, args...)
			v.read[key] = true
		}
	}
}

// unknown is the remark about keys that no converter reads.
const unknown = "is not known to convert: left out"

// Unknown has the remark about unknown keys for each that was never asked for, in this table
// and in those below it of which something was asked for.
func (v Value) Unknown() {
	for _, key := range v.keys {
		one := v.fields[key]
		switch {
		case !one.Has():
		case !v.read[key]:
			one.Remark(unknown)
			v.read[key] = true
		case one.kind == List || len(one.read) > 0:
			one.Unknown()
		}
	}
	for _, item := range v.items {
		if len(item.read) > 0 {
			item.Unknown()
		}
	}
}

// Forget has all keys of a value that is left out count as asked for.
func (v Value) Forget() {
	for key, one := range v.fields {
		v.read[key] = true
		one.Forget()
	}
	for _, item := range v.items {
		item.Forget()
	}
}

// Merge returns a table with the keys of both; those of over win, tables are merged, and a
// null in over leaves the key as it is. Values of other kinds than tables are over, or v if
// over is absent.
func (v Value) Merge(over Value) Value {
	switch {
	case !over.Has():
		return v
	case v.kind != Table || over.kind != Table:
		return over
	}
	merged := over
	merged.fields, merged.read = make(map[string]Value, len(v.fields)), map[string]bool{}
	merged.keys = slices.Clone(v.keys)
	for _, key := range v.keys {
		merged.fields[key] = v.fields[key]
	}
	for _, key := range over.keys {
		if _, ok := merged.fields[key]; !ok {
			merged.keys = append(merged.keys, key)
		}
		merged.fields[key] = merged.fields[key].Merge(over.fields[key])
	}
	return merged
}

// join returns the path of a key of a table.
func join(path, key string) string {
	if strings.ContainsAny(key, ". []\"") {
		key = fmt.Sprintf("%q", key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
