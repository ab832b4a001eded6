package types

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// Legacy are the types of version 0.1, whose values the original system accepted and this
// one does not. They are read with their meaning there, with a warning.
func Legacy() decode.ValueTypes {
	all := All()
	return decode.ValueTypes{
		"task name":  normalizing(all["task name"], hyphened),
		"path":       normalizing(all["path"], fromHome),
		"mount path": normalizing(all["mount path"], fromHome),
	}
}

// normalizing is a type that reads the result of normalize for a string.
func normalizing(of decode.ValueType, normalize func(s string) string) decode.ValueType {
	read := of.Read
	of.Read = func(v decode.Value) any {
		s, ok := v.String()
		if !ok {
			return nil
		}
		normalized := normalize(s)
		if normalized == s {
			return read(v)
		}
		v.Warn(fault.LegacyValue, fmt.Sprintf("%q is taken as %q, since the file is of version 0.1", s, normalized),
			fmt.Sprintf("write %q", normalized))
		node := *v.Node
		node.Text = normalized
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
