package kind

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/shape"
)

// Original are the kinds whose values the system that this one replaces took, as
// files of version 0.1 have them, and this one does not. They are read as what
// they meant there, with a warning.
func Original() shape.Kinds {
	all := All()
	return shape.Kinds{
		"task name":  mending(all["task name"], hyphened),
		"path":       mending(all["path"], fromHome),
		"mount path": mending(all["mount path"], fromHome),
	}
}

// mending is a kind that is given what mend makes of a string.
func mending(of shape.Kind, mend func(s string) string) shape.Kind {
	read := of.Read
	of.Read = func(v shape.Value) any {
		s, ok := v.String()
		if !ok {
			return nil
		}
		mended := mend(s)
		if mended == s {
			return read(v)
		}
		v.Warn(fault.Mended, fmt.Sprintf("%q is taken as %q, since the file is of version 0.1", s, mended), fmt.Sprintf("write %q", mended))
		node := *v.Node
		node.Text = mended
		v.Node = &node
		return read(v)
	}
	return of
}

// hyphened is a name with a hyphen in place of each run of blanks.
func hyphened(s string) string { return strings.Join(strings.Fields(s), "-") }

// fromHome is a path with the home of root in place of ~.
func fromHome(s string) string {
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		return "/root/" + rest
	}
	return s
}
