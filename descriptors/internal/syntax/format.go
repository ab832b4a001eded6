package syntax

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TOML is n as TOML on one line. Different notations of one value have the same result,
// except numbers and times.
func (n *Node) TOML() string {
	switch n.Kind {
	case String:
		return Quote(n.Text)
	case List:
		items := make([]string, len(n.Items))
		for i, item := range n.Items {
			items[i] = item.TOML()
		}
		return "[" + strings.Join(items, ", ") + "]"
	case Table:
		if len(n.Entries) == 0 {
			return "{}"
		}
		pairs := make([]string, len(n.Entries))
		for i, e := range n.Entries {
			pairs[i] = Key(e.Name) + " = " + e.Value.TOML()
		}
		return "{ " + strings.Join(pairs, ", ") + " }"
	case Integer, Float, Bool, Time:
	}
	return n.Text
}

// Quote is a string of TOML on one line.
func Quote(s string) string {
	plain := !strings.ContainsFunc(s, unicode.IsControl)
	switch {
	case plain && !strings.ContainsAny(s, `"\`):
		return `"` + s + `"`
	case plain && !strings.Contains(s, "'"):
		return "'" + s + "'"
	}
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\t':
			out.WriteString(`\t`)
		case unicode.IsControl(c):
			fmt.Fprintf(&out, `\u%04X`, c)
		default:
			out.WriteRune(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// Key is a name as TOML has it as a key.
func Key(name string) string {
	bare := func(c rune) bool {
		return c < utf8.RuneSelf && (c == '_' || c == '-' || unicode.IsLetter(c) || unicode.IsDigit(c))
	}
	if name != "" && strings.TrimFunc(name, bare) == "" {
		return name
	}
	return Quote(name)
}
