package edit

import (
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// A value is a new value for a text, in TOML.
type value struct {
	text   []piece
	node   *syntax.Node // of the new value
	source []byte       // in which node has its places
	origin int
}

const before = "x = "

// read is raw if it is a value of TOML, else a TOML string with raw as its text.
func read(raw string, origin int) value {
	trimmed := strings.Trim(raw, " \t")
	if node, ok := parse(trimmed); ok {
		skipped := strings.Index(raw, trimmed)
		return value{
			text: []piece{{[]byte(trimmed), origin, skipped}}, node: node,
			source: []byte(before + trimmed), origin: origin,
		}
	}
	text := syntax.Quote(raw)
	node, _ := parse(text) // Quote makes strings of TOML
	v := value{node: node, source: []byte(before + text), origin: origin}
	if text[1:len(text)-1] != raw {
		v.text = []piece{v.glue(text)}
		return v
	}
	v.text = []piece{v.glue(text[:1]), {[]byte(raw), origin, 0}, v.glue(text[:1])}
	return v
}

// parse is the value that text is, if it is one and nothing else.
func parse(text string) (*syntax.Node, bool) {
	tree, broken := syntax.Parse([]byte(before + text))
	if len(broken) > 0 || len(tree.Entries) != 1 {
		return nil, false
	}
	node := tree.Entries[0].Value
	return node, node.Span == syntax.Span{From: len(before), To: len(before) + len(text)}
}

func (v value) glue(text string) piece { return piece{[]byte(text), v.origin, glue} }

// in is v with something before and behind it.
func (v value) in(before, after string) []piece {
	all := []piece{v.glue(before)}
	all = append(all, v.text...)
	return append(all, v.glue(after))
}

func keys(steps []Step) string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = syntax.Key(s.Name)
	}
	return strings.Join(names, ".")
}

// pairs are the keys and values of a table that is written in one place, or by
// dotted keys, in the order of their places.
func pairs(table *syntax.Node) []syntax.Span {
	var all []syntax.Span
	for _, e := range table.Entries {
		switch {
		case e.Value.Pair != syntax.Span{}:
			all = append(all, e.Value.Pair)
		case e.Value.InsertPoint.Parent != nil:
			all = append(all, pairs(e.Value)...)
		}
	}
	return all
}
