package document

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"github.com/pelletier/go-toml/v2/unstable"
)

// ReadTOML returns the table of a TOML file that the parser of descriptors takes as TOML. Of one
// that it does not take, the value has the part before the first error.
func ReadTOML(text []byte, notes *Notes) Value {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if isDeep(text) {
		return Value{notes: notes}
	}
	r := tomlReader{text: text, root: &tomlNode{kind: Table}}
	r.parser.Reset(text)
	for i, c := range text {
		if c == '\n' {
			r.lines = append(r.lines, i)
		}
	}
	r.current = r.root
	for r.parser.NextExpression() {
		r.expression(r.parser.Expression())
	}
	return r.root.value(notes, "")
}

// isDeep reports whether a text has more brackets or braces in each other than the language
// takes, or a key of more parts, as far as that can be seen without quotes.
func isDeep(text []byte) bool {
	depth, parts := 0, 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '.':
			parts++
		case '\n', '=':
			parts = 0
		}
		if depth > maxBrackets || parts > maxParts {
			return true
		}
	}
	return false
}

// Limits of TOML texts that are read. Scripts and patterns in them have brackets and dots, too.
const (
	maxBrackets = 1000
	maxParts    = 5000
)

// tomlNode is a value of TOML.
type tomlNode struct {
	kind         Kind
	line, column int
	text         string
	items        []*tomlNode
	keys         []string
	fields       map[string]*tomlNode
}

// child returns the node of a key, which is made if it is not there. Of a list it is that of the last element.
func (n *tomlNode) child(key string, line, column int) *tomlNode {
	if n.kind == List && len(n.items) > 0 {
		n = n.items[len(n.items)-1]
	}
	if one, ok := n.fields[key]; ok {
		return one
	}
	one := &tomlNode{kind: Table, line: line, column: column}
	if n.fields == nil {
		n.fields = map[string]*tomlNode{}
	}
	n.keys, n.fields[key] = append(n.keys, key), one
	return one
}

// value returns the node as a value at a path.
func (n *tomlNode) value(notes *Notes, path string) Value {
	v := Value{notes: notes, kind: n.kind, path: path, line: n.line, column: n.column, text: n.text, keys: n.keys}
	for i, item := range n.items {
		v.items = append(v.items, item.value(notes, fmt.Sprintf("%s[%d]", path, i)))
	}
	if n.kind == Table {
		v.fields, v.read = map[string]Value{}, map[string]bool{}
		for key, one := range n.fields {
			v.fields[key] = one.value(notes, join(path, key))
		}
	}
	return v
}

// tomlReader makes nodes of expressions.
type tomlReader struct {
	parser        unstable.Parser
	text          []byte
	lines         []int // offsets of line feeds
	root, current *tomlNode
}

func (r *tomlReader) expression(e *unstable.Node) {
	if e.Kind == unstable.KeyValue {
		r.pair(r.current, e)
		return
	}
	if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
		return
	}
	r.current = r.descend(r.root, e)
	if e.Kind != unstable.ArrayTable {
		return
	}
	item := &tomlNode{kind: Table, line: r.current.line, column: r.current.column}
	r.current.kind = List
	r.current.items = append(r.current.items, item)
	r.current = item
}

// descend returns the node of the key of an expression.
func (r *tomlReader) descend(n *tomlNode, e *unstable.Node) *tomlNode {
	for keys := e.Key(); keys.Next(); {
		line, column := r.position(keys.Node().Raw)
		n = n.child(string(keys.Node().Data), line, column)
	}
	if n.kind == List && len(n.items) > 0 && e.Kind == unstable.Table {
		return n.items[len(n.items)-1]
	}
	return n
}

// pair reads a key and its value into a table.
func (r *tomlReader) pair(table *tomlNode, e *unstable.Node) {
	n := r.descend(table, e)
	line, column := n.line, n.column
	r.fill(n, e.Value())
	n.line, n.column = line, column
}

// fill reads a value into a node.
func (r *tomlReader) fill(n *tomlNode, e *unstable.Node) {
	n.text = string(e.Data)
	n.line, n.column = r.position(e.Raw)
	switch e.Kind {
	case unstable.InlineTable:
		n.kind = Table
		for pairs := e.Children(); pairs.Next(); {
			if pairs.Node().Kind == unstable.KeyValue {
				r.pair(n, pairs.Node())
			}
		}
	case unstable.Array:
		n.kind = List
		for items := e.Children(); items.Next(); {
			if items.Node().Kind == unstable.Comment {
				continue
			}
			item := &tomlNode{}
			r.fill(item, items.Node())
			n.items = append(n.items, item)
		}
	case unstable.Bool:
		n.kind = Bool
	case unstable.Integer:
		n.kind = Integer
	case unstable.Float:
		n.kind = Float
	case unstable.Invalid, unstable.Comment, unstable.Key, unstable.Table, unstable.ArrayTable, unstable.KeyValue, unstable.String,
		unstable.LocalDate, unstable.LocalTime, unstable.LocalDateTime, unstable.DateTime:
		n.kind = Text
	}
}

// position returns the line and column of bytes of the text.
func (r *tomlReader) position(at unstable.Range) (line, column int) {
	offset := int(at.Offset)
	line = sort.SearchInts(r.lines, offset)
	begin := 0
	if line > 0 {
		begin = r.lines[line-1] + 1
	}
	return line + 1, len([]rune(string(r.text[begin:max(begin, offset)]))) + 1
}

// Elements returns the elements of a list; none of another value, without a fault.
func (v Value) Elements() []Value { return slices.Clone(v.items) }
