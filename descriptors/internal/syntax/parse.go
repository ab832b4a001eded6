package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

const (
	maxParts  = 32  // of a dotted key
	maxNested = 64  // lists and tables in one another
	maxFaults = 100 // of syntax: a text with more is not TOML at all
)

// Parse reads text, which must be UTF-8. After a fault it continues with the next line
// that looks like the start of a key or table, so that the tree holds all readable parts;
// a table that lost a key is Damaged, and all are if a [header] could not be read. Faults
// are in the order of their positions.
func Parse(text []byte) (*Node, []Fault) {
	r := &reader{text: text, lines: lineStarts(text), tree: newTree(), column: 1}
	r.tree.lineStart = func(offset int) int { return r.lines[r.line(offset)] }
	for from := 0; from < len(text) && len(r.tree.faults) < maxFaults; {
		from = r.read(from)
	}
	slices.SortStableFunc(r.tree.faults, func(a, b Fault) int {
		if a.At.Line != b.At.Line {
			return a.At.Line - b.At.Line
		}
		return a.At.Column - b.At.Column
	})
	return r.tree.root, r.tree.faults
}

// reader walks the expressions of a text.
type reader struct {
	text   []byte
	lines  []int // offsets at which lines start
	tree   *tree
	parser unstable.Parser

	counted, column int // the last place asked for: an offset, and its column
}

func lineStarts(text []byte) []int {
	lines := []int{0}
	for i, b := range text {
		if b == '\n' {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// read reads expressions from the offset on until there is a fault, and gives
// the offset at which to go on.
func (r *reader) read(from int) int {
	r.parser.Reset(r.text[from:])
	end := from
	for r.parser.NextExpression() {
		end = r.expression(r.parser.Expression(), from)
	}
	err := r.parser.Error()
	if err == nil {
		return len(r.text)
	}
	return r.recover(err, r.start(end, from))
}

// expression adds e to the tree and gives an offset on its last line.
func (r *reader) expression(e *unstable.Node, base int) int {
	keys, end := r.keys(e.Key(), base)
	switch {
	case len(keys) > maxParts:
		r.tree.fault(keys[0].at, TooDeep, fmt.Sprintf("a key of %d parts", len(keys)), "")
		r.tree.current = newDetachedTable(keys[0].at)
	case e.Kind == unstable.Table:
		r.tree.begin(keys)
		r.tree.open(keys)
	case e.Kind == unstable.ArrayTable:
		r.tree.begin(keys)
		r.tree.extend(keys)
	default:
		v := r.value(e.Value(), base, 0, r.valueAfter(end))
		v.Pair = Span{keys[0].from, v.Span.To}
		r.tree.set(r.tree.current, keys, v)
		end = max(end, v.Span.To)
	}
	r.tree.section.Span.To = end
	return end
}

func (r *reader) keys(it unstable.Iterator, base int) (keys []part, end int) {
	for it.Next() {
		raw := it.Node().Raw
		from := base + int(raw.Offset)
		keys = append(keys, part{string(it.Node().Data), r.position(from), from})
		end = base + int(raw.Offset+raw.Length)
	}
	return keys, end
}

// valueAfter is the offset of the value of the key that ends at offset.
func (r *reader) valueAfter(offset int) int {
	return len(r.text) - len(bytes.TrimLeft(r.text[offset:], " \t="))
}

// value copies n, which the parser will use again and which begins at from.
func (r *reader) value(n *unstable.Node, base, depth, from int) *Node {
	v := &Node{At: r.position(from), Span: Span{from, from + 1}}
	if depth > maxNested {
		r.tree.fault(v.At, TooDeep, fmt.Sprintf("more than %d lists and tables in one another", maxNested), "")
		return v
	}
	switch n.Kind { //nolint:exhaustive // the other kinds of values are scalars
	case unstable.Array:
		v.Kind = List
		r.list(v, n, base, depth)
	case unstable.InlineTable:
		v.Kind, v.origin = Table, inline
		r.inline(v, n, base, depth)
	default:
		v.Span.To = base + int(n.Raw.Offset+n.Raw.Length)
		r.scalar(v, n)
	}
	return v
}

func (r *reader) list(v *Node, n *unstable.Node, base, depth int) {
	at := v.Span.From + 1
	for it := n.Children(); it.Next(); {
		item := r.value(it.Node(), base, depth+1, r.next(at))
		v.Items = append(v.Items, item)
		at = item.Span.To
	}
	v.Span.To = min(r.next(at)+1, len(r.text))
}

func (r *reader) inline(v *Node, n *unstable.Node, base, depth int) {
	at := v.Span.From + 1
	for it := n.Children(); it.Next(); {
		keys, end := r.keys(it.Node().Key(), base)
		if len(keys) > maxParts {
			r.tree.fault(keys[0].at, TooDeep, fmt.Sprintf("a key of %d parts", len(keys)), "")
			continue
		}
		pair := r.value(it.Node().Value(), base, depth+1, r.valueAfter(end))
		pair.Pair = Span{keys[0].from, pair.Span.To}
		r.tree.set(v, keys, pair)
		at = pair.Span.To
	}
	v.Span.To = min(r.next(at)+1, len(r.text))
}

// next is the offset of the next item in a list or an inline table, at offset or behind
// blanks, line ends, comments and commas.
func (r *reader) next(offset int) int {
	for offset < len(r.text) {
		switch r.text[offset] {
		case ' ', '\t', '\r', '\n', ',':
			offset++
		case '#':
			offset = r.nextLine(offset)
		default:
			return offset
		}
	}
	return offset
}

func (r *reader) scalar(v *Node, n *unstable.Node) {
	v.Text = string(n.Data)
	switch n.Kind { //nolint:exhaustive // the other kinds of scalars are times
	case unstable.String:
		v.source = string(r.parser.Raw(n.Raw))
	case unstable.Bool:
		v.Kind = Bool
	case unstable.Float:
		v.Kind = Float
		if _, err := strconv.ParseFloat(strings.ReplaceAll(v.Text, "_", ""), 64); err != nil {
			r.tree.fault(v.At, Malformed, fmt.Sprintf("the number %.40s does not fit into 64 bits", v.Text), "")
		}
	case unstable.Integer:
		v.Kind = Integer
		if _, err := v.Int(); err != nil {
			r.tree.fault(v.At, Malformed, fmt.Sprintf("the number %.40s does not fit into 64 bits", v.Text), "")
		}
	default:
		v.Kind = Time
		if !isTime(v.Text) {
			r.tree.fault(v.At, Malformed, fmt.Sprintf("%s is not a date or time", v.Text), "put text into quotes")
		}
	}
}

func isTime(s string) bool {
	s = strings.ToUpper(s)
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	for _, layout := range []string{
		time.DateOnly, time.TimeOnly, "15:04", "2006-01-02T15:04:05", "2006-01-02T15:04",
		time.RFC3339, "2006-01-02T15:04Z07:00",
	} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

// position is the place of a byte. It counts on from the place before, so that
// places asked for in order cost no more than reading the text.
func (r *reader) position(offset int) Position {
	line := r.line(offset)
	if r.lines[line] > r.counted || offset < r.counted {
		r.counted, r.column = r.lines[line], 1
	}
	r.column += utf8.RuneCount(r.text[r.counted:offset])
	r.counted = offset
	return Position{line + 1, r.column}
}

func (r *reader) line(offset int) int {
	return sort.SearchInts(r.lines, offset+1) - 1
}

// nextLine is the offset of the line after that of offset.
func (r *reader) nextLine(offset int) int {
	if next := r.line(offset) + 1; next < len(r.lines) {
		return r.lines[next]
	}
	return len(r.text)
}

// start is the offset of the expression that comes after the one that ends at
// end. Reading began at from.
func (r *reader) start(end, from int) int {
	at := from
	if end > from {
		at = r.nextLine(end)
	}
	for at < len(r.text) {
		rest := bytes.TrimLeft(r.text[at:r.nextLine(at)], " \t")
		if len(bytes.TrimRight(rest, "\r\n")) > 0 && rest[0] != '#' {
			return r.nextLine(at) - len(rest)
		}
		at = r.nextLine(at)
	}
	return at
}

// recover reports err in the expression that begins at start, and gives the
// offset of the next line that looks like a beginning.
func (r *reader) recover(err error, start int) int {
	at := r.errorOffset(err)
	start = min(start, r.lines[r.line(at)]) // later only if a comment is faulty
	next := r.nextLine(at)
	text, remedy := translate(err.Error(), r.text[at:])
	if later := r.line(at) - r.line(start); later > 0 && (r.startsEntry(r.lines[r.line(at)]) || next == len(r.text)) {
		text, remedy = unclosed(r.line(at) + 1)
		at, next = start, r.nextLine(start)
	}
	r.tree.fault(r.position(at), Malformed, text, remedy)
	if r.text[start] == '[' {
		r.tree.root.Damage()
		r.tree.current = newDetachedTable(r.position(start))
	}
	r.tree.current.Damaged = true
	for next < len(r.text) && !r.startsEntry(next) {
		next = r.nextLine(next)
	}
	return next
}

// errorOffset is the offset of err.
func (r *reader) errorOffset(err error) int {
	at := len(r.text)
	if e, ok := errors.AsType[*unstable.ParserError](err); ok {
		at = cap(r.text) - cap(e.Highlight)
	}
	at = min(at, len(r.text)-1)
	for at > 0 && !utf8.RuneStart(r.text[at]) {
		at--
	}
	return at
}

// startsEntry reports whether a table or a key begins on the line at offset.
func (r *reader) startsEntry(offset int) bool {
	line := bytes.TrimSpace(r.text[offset:r.nextLine(offset)])
	if len(line) > 0 && line[0] == '[' {
		return bytes.HasSuffix(stripComment(line), []byte("]")) && !bytes.ContainsAny(line, "{,")
	}
	key, _, found := bytes.Cut(line, []byte("="))
	return found && isKey(bytes.TrimSpace(key))
}

// stripComment is a header without the comment behind it.
func stripComment(line []byte) []byte {
	line, _, _ = bytes.Cut(line, []byte("#"))
	return bytes.TrimSpace(line)
}

// isKey reports whether b could be a key, quoted or not.
func isKey(b []byte) bool {
	if len(b) > 1 && (b[0] == '"' || b[0] == '\'') {
		return b[len(b)-1] == b[0]
	}
	return len(b) > 0 && !bytes.ContainsFunc(b, func(c rune) bool {
		return c != '_' && c != '-' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
}

// Damage makes n and all tables in it Damaged.
func (n *Node) Damage() {
	n.Damaged = true
	for _, e := range n.Entries {
		e.Value.Damage()
	}
	for _, item := range n.Items {
		item.Damage()
	}
}
