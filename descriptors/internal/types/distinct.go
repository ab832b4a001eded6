package types

import (
	"fmt"
	"slices"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// distinct is a list of at least one name, none of them twice.
type distinct struct {
	what    string // the list, for people
	example string // one element, with its article
	code    string // of the faults of the list
	most    int
	valid   func(item decode.Value, s string) bool // says why a name is none
}

// read returns the names that are valid.
func (d distinct) read(v decode.Value) any {
	var names []string
	for _, item := range v.Items(d.what) {
		s, ok := item.String()
		switch {
		case !ok:
		case slices.Contains(names, s):
			item.Fault(d.code, fmt.Sprintf("%q is there twice", s), "keep one of the two")
		case d.valid(item, s):
			names = append(names, s)
		}
	}
	switch {
	case v.Kind == syntax.List && len(v.Node.Items) == 0:
		v.Fault(d.code, "is empty", fmt.Sprintf("name %s, or leave the list out", d.example))
	case len(names) > d.most:
		v.Fault(d.code, fmt.Sprintf("has %d names, %d at most are taken", len(names), d.most), "")
	case len(names) > 0:
		return names
	}
	return nil
}
