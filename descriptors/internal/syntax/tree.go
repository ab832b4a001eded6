package syntax

import (
	"fmt"
	"strings"
)

// An origin is the syntax that made a table. By TOML's rules it decides which syntax may
// add to the table.
type origin int

const (
	inline  origin = iota // { … }: complete
	opened                // [header]: may not be opened again
	implied               // part of a longer header: may be opened once
	dotted                // part of a dotted key: by more dotted keys only
)

// A Fault is a place at which a file is not TOML.
type Fault struct {
	At      Position
	Code    Code
	Message string
	Remedy  string
}

// A Code identifies a kind of fault.
type Code int

// The ways in which a file is not TOML.
const (
	Malformed Code = iota // the grammar
	Duplicate             // a key or a table that there is already
	TooDeep               // nested without end
)

// part is one part of a dotted key.
type part struct {
	name string
	at   Position
	from int // offset in the text
}

// tree grows by one expression of the file after the other.
type tree struct {
	root    *Node
	current *Node // the table that keys go to
	section *Section
	faults  []Fault

	lineStart func(offset int) int
}

func newTree() *tree {
	section := &Section{}
	root := &Node{Kind: Table, At: Position{1, 1}, origin: opened, InsertPoint: InsertPoint{Header: section}}
	return &tree{root: root, current: root, section: section}
}

// begin is called before each header, which begins a section.
func (t *tree) begin(keys []part) {
	from := t.lineStart(keys[0].from)
	t.section = &Section{Span: Span{from, from}}
}

// visit notes that the current section says something of n.
func (t *tree) visit(n *Node) { n.InsertPoint.Sections = append(n.InsertPoint.Sections, t.section) }

// setHeader notes that the current section is that of the table n.
func (t *tree) setHeader(n *Node) {
	t.visit(n)
	n.InsertPoint.Header = t.section
}

func (t *tree) fault(at Position, code Code, message, remedy string) {
	t.faults = append(t.faults, Fault{at, code, message, remedy})
}

// open makes [header] the current table. If the file may not open it, the keys below are
// still read, so that faults in them are found.
func (t *tree) open(keys []part) {
	last := keys[len(keys)-1]
	parent, ok := t.parent(keys)
	if !ok {
		return
	}
	old := parent.Get(last.name)
	switch {
	case old == nil:
		t.current = &Node{Kind: Table, At: last.at, header: true, origin: opened}
		parent.add(Entry{last.name, last.at, t.current})
		t.setHeader(t.current)
	case old.Kind == Table && old.origin == implied:
		old.origin, old.At = opened, last.at
		t.current = old
		t.setHeader(old)
	case old.Kind == Table && old.origin != inline:
		t.duplicate(last, old)
		t.current = old
	case old.Kind == List && old.header:
		t.fault(last.at, Duplicate, fmt.Sprintf("%q is a list of tables, begun on line %d", last.name, old.At.Line),
			fmt.Sprintf("write [[%s]]", dottedName(keys)))
		t.current = newDetachedTable(last.at)
	default:
		t.duplicate(last, old)
		t.current = newDetachedTable(last.at)
	}
}

// extend makes a new table in the list [[header]] the current one.
func (t *tree) extend(keys []part) {
	last := keys[len(keys)-1]
	parent, ok := t.parent(keys)
	if !ok {
		return
	}
	t.current = newDetachedTable(last.at)
	list := parent.Get(last.name)
	switch {
	case list == nil:
		list = &Node{Kind: List, At: last.at, header: true}
		parent.add(Entry{last.name, last.at, list})
	case list.Kind != List || !list.header:
		t.duplicate(last, list)
		return
	}
	list.Items = append(list.Items, t.current)
	t.visit(list)
	t.setHeader(t.current)
}

// parent is the table that holds the last of keys.
func (t *tree) parent(keys []part) (*Node, bool) {
	at := t.root
	for _, key := range keys[:len(keys)-1] {
		next := at.Get(key.name)
		if next == nil {
			next = &Node{Kind: Table, At: key.at, header: true, origin: implied}
			at.add(Entry{key.name, key.at, next})
		}
		if next.Kind == List && next.header {
			t.visit(next)
			next = next.Items[len(next.Items)-1]
		}
		if next.Kind != Table || next.origin == inline {
			t.duplicate(key, next)
			t.current = newDetachedTable(key.at)
			return nil, false
		}
		t.visit(next)
		at = next
	}
	return at, true
}

// set gives keys a value in table.
func (t *tree) set(table *Node, keys []part, value *Node) {
	last, within := keys[len(keys)-1], table
	for i, key := range keys[:len(keys)-1] {
		next := table.Get(key.name)
		if next == nil {
			next = &Node{Kind: Table, At: key.at, origin: dotted, InsertPoint: InsertPoint{Parent: within, Depth: i + 1}}
			table.add(Entry{key.name, key.at, next})
		}
		if next.Kind != Table || next.origin != dotted {
			t.duplicate(key, next)
			return
		}
		table = next
	}
	if old := table.Get(last.name); old != nil {
		t.duplicate(last, old)
		return
	}
	table.add(Entry{last.name, last.at, value})
}

func (t *tree) duplicate(key part, old *Node) {
	t.fault(key.at, Duplicate, fmt.Sprintf("%q is defined already, on line %d", key.name, old.At.Line),
		"keep one of the two")
}

// newDetachedTable is a table that belongs to nothing yet.
func newDetachedTable(at Position) *Node {
	return &Node{Kind: Table, At: at, header: true, origin: opened}
}

func dottedName(keys []part) string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.name
	}
	return strings.Join(names, ".")
}
