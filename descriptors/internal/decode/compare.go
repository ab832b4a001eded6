package decode

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// A Change is a key with different values in two trees. A node is nil if the tree lacks
// the key.
type Change struct {
	Path     string
	Old, New *syntax.Node
}

// Compare are the keys with different values in a and b, in the order of the fields of
// the struct that root points to, with unknown keys last. Two notations of one value are
// no difference, nor are a default and its absence.
func Compare(a, b *syntax.Node, root any, kinds ValueTypes) []Change {
	d := &decoder{report: newReport(), discarded: newReport(), valueTypes: kinds}
	c := comparison{d: d}
	c.table("", reflect.TypeOf(root).Elem(), nil, a, b)
	return c.changes
}

type comparison struct {
	d       *decoder
	changes []Change
}

func (c *comparison) add(path string, a, b *syntax.Node) {
	c.changes = append(c.changes, Change{path, a, b})
}

// entry is the value of name in n, which may be nil.
func entry(n *syntax.Node, name string) *syntax.Node {
	if n == nil {
		return nil
	}
	return n.Get(name)
}

// names are those of the entries of a, and those that only b has.
func names(a, b *syntax.Node) []string {
	var all []string
	seen := map[string]bool{}
	for _, n := range []*syntax.Node{a, b} {
		if n == nil {
			continue
		}
		for _, e := range n.Entries {
			if !seen[e.Name] {
				seen[e.Name] = true
				all = append(all, e.Name)
			}
		}
	}
	return all
}

// haveKind reports whether each of a and b that there is is of a kind.
func haveKind(kind syntax.Kind, a, b *syntax.Node) bool {
	return (a == nil || a.Kind == kind) && (b == nil || b.Kind == kind)
}

func (c *comparison) table(path string, t reflect.Type, without []string, a, b *syntax.Node) {
	declared := map[string]bool{}
	for _, f := range fields(t) {
		if slices.Contains(without, f.name) {
			continue
		}
		declared[f.name] = true
		c.field(join(path, f.name), f, entry(a, f.name), entry(b, f.name))
	}
	for _, name := range names(a, b) {
		if !declared[name] {
			c.any(join(path, Quoted(name)), entry(a, name), entry(b, name))
		}
	}
}

func (c *comparison) field(path string, f field, a, b *syntax.Node) {
	inner, many := f.table()
	switch {
	case a == nil && b == nil:
	case many && haveKind(syntax.List, a, b):
		c.list(path, f, a, b)
	case inner != nil && !many && haveKind(syntax.Table, a, b):
		before := len(c.changes)
		c.table(path, inner, f.without, a, b)
		if f.typ.Kind() == reflect.Pointer && (a == nil) != (b == nil) && len(c.changes) == before {
			c.add(path, a, b)
		}
	case f.typ.Kind() == reflect.Map && haveKind(syntax.Table, a, b):
		c.any(path, a, b)
	case !c.same(f, a, b):
		c.add(path, a, b)
	}
}

func (c *comparison) list(path string, f field, a, b *syntax.Node) {
	before := len(c.changes)
	for i := range max(items(a), items(b)) {
		at, one, other := fmt.Sprintf("%s[%d]", path, i), item(a, i), item(b, i)
		if haveKind(syntax.Table, one, other) {
			c.table(at, f.typ.Elem(), f.without, one, other)
			continue
		}
		c.any(at, one, other)
	}
	if (a == nil) != (b == nil) && len(c.changes) == before {
		c.add(path, a, b)
	}
}

func items(n *syntax.Node) int {
	if n == nil {
		return 0
	}
	return len(n.Items)
}

func item(n *syntax.Node, i int) *syntax.Node {
	if i >= items(n) {
		return nil
	}
	return n.Items[i]
}

// any compares values of unknown keys.
func (c *comparison) any(path string, a, b *syntax.Node) {
	switch {
	case a == nil && b == nil:
	case haveKind(syntax.Table, a, b) && len(names(a, b)) > 0:
		for _, name := range names(a, b) {
			c.any(join(path, Quoted(name)), entry(a, name), entry(b, name))
		}
	case a == nil || b == nil || a.TOML() != b.TOML():
		c.add(path, a, b)
	}
}

// same reports whether a and b are one value of f, which has its default if it is absent.
func (c *comparison) same(f field, a, b *syntax.Node) bool {
	if a != nil && b != nil && a.TOML() == b.TOML() {
		return true
	}
	one, ok := c.read(f, a)
	other, otherOK := c.read(f, b)
	return ok && otherOK && reflect.DeepEqual(one, other)
}

// read is the value of a node for f. It is false for an invalid value, and for a missing
// key without a default.
func (c *comparison) read(f field, n *syntax.Node) (any, bool) {
	if n == nil && f.preset == "" {
		return nil, false
	}
	if n == nil {
		n = &syntax.Node{Kind: defaultKind(f.typ), Text: f.preset}
	}
	report := newReport()
	into := reflect.New(f.typ).Elem()
	c.d.value(Value{n, f.name, report}, f, into)
	return into.Interface(), !report.HasError(f.name) && !report.HasErrorBelow(f.name)
}
