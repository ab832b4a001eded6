// Package syntax reads TOML into a tree in which every key and every value
// knows its place in the file.
package syntax

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Position is a place in a file.
type Position struct {
	Line   int // from 1
	Column int // from 1, in characters
}

// A Span is a part of a text, as offsets of bytes.
type Span struct{ From, To int }

// A Section is a header and the keys below it, or the part before the first header.
type Section struct {
	Span Span // from the begin of the header's line to the end of the last value
}

// An InsertPoint says where in a text more can be written to a table, or to a list of
// tables. It is empty for values that are in one place.
type InsertPoint struct {
	Sections []*Section // in whose headers it is
	Header   *Section   // of a table that has a header
	Parent   *Node      // of a table made by dotted keys: the table that they are in
	Depth    int        // and the number of the parts of these keys that name it
}

// A Kind is the type of a value.
type Kind int

// The kinds of values.
const (
	String Kind = iota
	Integer
	Float
	Bool
	Time
	List
	Table
)

// String names k as a message about types does.
func (k Kind) String() string {
	switch k {
	case String:
		return "a string"
	case Integer:
		return "a whole number"
	case Float:
		return "a decimal number"
	case Bool:
		return "true or false"
	case Time:
		return "a date or time"
	case List:
		return "a list"
	case Table:
		return "a table"
	}
	return "nothing"
}

// A Node is a value.
type Node struct {
	Kind    Kind
	At      Position
	Text    string  // of a String its content, of other scalars their text in the file
	Items   []*Node // of a List
	Entries []Entry // of a Table, in the order of the file
	Damaged bool    // a Table that may have more entries than could be read

	// Span is the value's place in the text. It is empty for tables of headers and dotted
	// keys; Pair is then empty too.
	Span        Span
	Pair        Span // of the value of a key: the key and the value
	InsertPoint InsertPoint

	source string // of a String: its text in the file, with quotes
	header bool   // a List or Table made by [header] or [[header]]
	origin origin // of a Table
	index  map[string]int
}

// An Entry is a key in a table, and its value.
type Entry struct {
	Name  string
	At    Position
	Value *Node
}

// Get is the value of the entry called name, and nil without one.
func (n *Node) Get(name string) *Node {
	if i, ok := n.find(name); ok {
		return n.Entries[i].Value
	}
	return nil
}

// Int is the value of an Integer.
func (n *Node) Int() (int64, error) { return strconv.ParseInt(n.Text, 0, 64) }

// Plain is the value as Go has it: a string, int64, float64, bool, []any or
// map[string]any. Times are strings.
func (n *Node) Plain() any {
	switch n.Kind {
	case Bool:
		return n.Text == "true"
	case Integer:
		i, err := n.Int()
		if err != nil {
			return nil
		}
		return i
	case Float:
		return n.float()
	case List:
		all := make([]any, len(n.Items))
		for i, item := range n.Items {
			all[i] = item.Plain()
		}
		return all
	case Table:
		all := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			all[e.Name] = e.Value.Plain()
		}
		return all
	case String, Time:
	}
	return n.Text
}

// float is the value of a Float.
func (n *Node) float() float64 {
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Text, "_", ""), 64)
	if err != nil {
		return math.Inf(1) // too large: ParseFloat agrees
	}
	return f
}

// Headed reports whether a Table was opened by a [header], or a List by
// [[headers]].
func (n *Node) Headed() bool { return n.header }

// Inside is the place of the byte at offset of a String's content. It is the
// place of the String itself where the file does not say the content as it is.
func (n *Node) Inside(offset int) Position {
	const quote = 1
	if len(n.source) != len(n.Text)+2*quote || offset > len(n.Text) {
		return n.At
	}
	return Position{n.At.Line, n.At.Column + quote + utf8.RuneCountInString(n.Text[:offset])}
}

// InsideLines is the place of a line and a column of a String's content, both from 1 on. It is
// the place of the String itself where the lines of the file are not those of the content.
func (n *Node) InsideLines(line, column int) Position {
	const quotes = 3
	first, same := n.At.Line, strings.Count(n.source, "\n")-strings.Count(n.Text, "\n")
	if len(n.source) < 2*quotes || n.source[0] != n.source[1] || n.source[1] != n.source[2] || same < 0 || same > 1 {
		return n.At
	}
	if same == 1 { // the first line's end is not part of the content
		return Position{first + line, column}
	}
	if line == 1 {
		column += n.At.Column + quotes - 1
	}
	return Position{first + line - 1, column}
}

// indexed is the number of entries from which on a table is searched by an
// index.
const indexed = 8

func (n *Node) find(name string) (int, bool) {
	if n.index != nil {
		i, ok := n.index[name]
		return i, ok
	}
	for i, e := range n.Entries {
		if e.Name == name {
			return i, true
		}
	}
	return 0, false
}

func (n *Node) add(e Entry) {
	n.Entries = append(n.Entries, e)
	if n.index == nil && len(n.Entries) > indexed {
		n.index = make(map[string]int)
		for i, old := range n.Entries {
			n.index[old.Name] = i
		}
	}
	if n.index != nil {
		n.index[e.Name] = len(n.Entries) - 1
	}
}
