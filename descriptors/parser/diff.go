package parser

import (
	"bytes"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// A Difference is a key with different values in two descriptors.
type Difference struct {
	Path string // as that of a Fault
	Old  string // what the first says, in TOML on one line; "" where it does not say it
	New  string // value in the second
}

// Diff are the differences between two descriptors, in the order of the
// language. Order, comments and ways of writing are none, nor is a default and
// its absence. Items of lists are compared by their numbers. The descriptors may
// have any faults but those of TOML: for these there is an *InvalidError.
func Diff(a, b []byte) ([]Difference, error) {
	trees := make([]*syntax.Node, 2)
	for i, text := range [][]byte{a, b} {
		tree, err := treeOf(text)
		if err != nil {
			return nil, fmt.Errorf("read the %s descriptor: %w", [...]string{"first", "second"}[i], err)
		}
		trees[i] = tree
	}
	var all []Difference
	for _, c := range decode.Compare(trees[0], trees[1], &descriptors.Descriptor{}, valueTypes()) {
		all = append(all, Difference{c.Path, nodeText(c.Old), nodeText(c.New)})
	}
	return all, nil
}

// treeOf is a text as a tree, where it is TOML.
func treeOf(text []byte) (*syntax.Node, error) {
	if faults, bad := unreadable("", text); bad {
		return nil, faults.Err()
	}
	tree, broken := syntax.Parse(bytes.TrimPrefix(text, []byte(byteOrderMark)))
	return tree, collect("", decode.Broken(broken)).Err()
}

func nodeText(n *syntax.Node) string {
	if n == nil {
		return ""
	}
	return n.TOML()
}
