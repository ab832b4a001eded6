// Package draft writes descriptors: TOML with the tables in the order in which they are made.
package draft

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Draft is a descriptor that is being written. The zero Draft is empty.
type Draft struct {
	comment []string
	tables  []*Table
	swept   bool
}

// A Table is a table of a Draft.
type Table struct {
	header string // with its brackets
	pairs  Inline
	always bool // is written without keys, too
}

// A Pair is a key and its value.
type Pair struct {
	Key   string
	Value any // string, Script, bool, int64, int, float64, []string, []any or Inline
}

// Inline is a table in braces, in the order of its keys.
type Inline []Pair

// A Script is a text of several lines.
type Script string

// mark stands before and behind the name of a parameter in a text. No text that documents
// read has such a character.
const mark = "\x00"

// Parameter returns what stands in a text for the value of a parameter of the sweep.
func Parameter(name string) string { return mark + name + mark }

// Comment adds a line of comment before the first key.
func (d *Draft) Comment(format string, args ...any) {
	d.comment = append(d.comment, oneLine(fmt.Sprintf(format, args...)))
}

// oneLine returns a text with a blank for each control character.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// Table returns the table of a name, as hardware.distributed; "" is that of the file.
func (d *Draft) Table(name string) *Table {
	header := "[" + name + "]"
	if name == "" {
		header = ""
	}
	for _, t := range d.tables {
		if t.header == header {
			return t
		}
	}
	return d.add(header)
}

// Item adds an element to the list of tables of a name, as roles.
func (d *Draft) Item(name string) *Table { return d.add("[[" + name + "]]") }

// Sweep returns the table sweep. From then on double braces in texts are doubled.
func (d *Draft) Sweep() *Table {
	d.swept = true
	return d.Table("sweep")
}

func (d *Draft) add(header string) *Table {
	t := &Table{header: header, always: strings.HasPrefix(header, "[[")}
	d.tables = append(d.tables, t)
	return t
}

// Set gives a key its value. The value that it had before is gone.
func (t *Table) Set(key string, value any) *Table {
	for i := range t.pairs {
		if t.pairs[i].Key == key {
			t.pairs[i].Value = value
			return t
		}
	}
	t.pairs = append(t.pairs, Pair{key, value})
	return t
}

// SetText is Set if the text is not empty.
func (t *Table) SetText(key, text string) *Table {
	if text == "" {
		return t
	}
	return t.Set(key, text)
}

// Lacks reports whether a key has no value.
func (t *Table) Lacks(key string) bool {
	for _, p := range t.pairs {
		if p.Key == key {
			return false
		}
	}
	return true
}

// String returns the descriptor.
func (d *Draft) String() string {
	var s strings.Builder
	for _, line := range d.comment {
		s.WriteString("# " + line + "\n")
	}
	for _, t := range d.tables {
		if len(t.pairs) == 0 && !t.always {
			continue
		}
		if t.header != "" {
			s.WriteString("\n" + t.header + "\n")
		}
		raw := strings.HasPrefix(t.header, "[sweep") || strings.HasPrefix(t.header, "[[sweep") // no parameters are looked for there
		for _, p := range t.pairs {
			s.WriteString(name(p.Key) + " = " + writer{d.swept && !raw}.value(p.Value) + "\n")
		}
	}
	return s.String()
}

// name returns a key, in quotes if it needs them.
func name(key string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(key) {
		return key
	}
	return quote(key)
}

// Literal returns a value as TOML, for a descriptor without a sweep.
func Literal(v any) string { return writer{}.value(v) }

// writer writes values. If the descriptor has a sweep, braces of texts are doubled.
type writer struct{ swept bool }

func (w writer) value(v any) string {
	switch v := v.(type) {
	case Script:
		return w.script(string(v))
	case []string:
		all := make([]string, len(v))
		for i, s := range v {
			all[i] = quote(w.text(s))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case []any:
		all := make([]string, len(v))
		for i, one := range v {
			all[i] = w.value(one)
		}
		return "[" + strings.Join(all, ", ") + "]"
	case Inline:
		if len(v) == 0 {
			return "{}"
		}
		all := make([]string, len(v))
		for i, p := range v {
			all[i] = name(p.Key) + " = " + w.value(p.Value)
		}
		return "{ " + strings.Join(all, ", ") + " }"
	case string:
		return quote(w.text(v))
	case float64:
		return float(v)
	}
	return fmt.Sprint(v) // bool and whole numbers
}

// float returns a number that is no whole number in TOML's eyes.
func float(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.ToLower(strings.TrimSuffix(fmt.Sprintf("%+f", f), ".000000"))
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// text returns a text with double braces as the language wants them.
func (w writer) text(s string) string {
	if !w.swept {
		return strings.ReplaceAll(s, mark, "")
	}
	parts := strings.Split(s, mark)
	for i, part := range parts {
		if i%2 == 0 {
			parts[i] = strings.ReplaceAll(part, "{{", "{{{{")
		} else {
			parts[i] = "{{" + part + "}}"
		}
	}
	return strings.Join(parts, "")
}

// script returns a text of several lines between three quotes.
func (w writer) script(s string) string {
	s = strings.TrimRight(w.text(s), "\n") + "\n"
	if !strings.Contains(s, "'''") &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
		return "'''\n" + s + "'''"
	}
	return quote(s)
}

// quote returns a TOML string. Texts with backslashes or quotes are in single quotes if they can be.
func quote(s string) string {
	plain := utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	if plain && strings.ContainsAny(s, `"\`) && !strings.Contains(s, "'") {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
