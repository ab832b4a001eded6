package edit

import (
	"bytes"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// key writes the steps rest, which the table at the steps above does not have.
func (s *setter) key(table *syntax.Node, above, rest []Step) error {
	first := len(above)
	if w := table.InsertPoint.Parent; w != nil {
		first -= table.InsertPoint.Depth
		table = w
	}
	name, v := s.chain(len(above))
	if first < len(above) {
		name = keys(above[first:]) + "." + name
	}
	switch {
	case table.Span != syntax.Span{}:
		s.inline(table, v.in(name+" = ", ""))
	case table == s.tree && len(rest) > 1 && !s.element(len(above)+1) && first == len(above):
		s.addSection(len(s.text), nil, rest)
	case table.InsertPoint.Header == nil:
		sections := table.InsertPoint.Sections
		s.addSection(s.lineEnd(sections[len(sections)-1].Span.To), above, rest)
	default:
		s.line(table.InsertPoint.Header, v.in(name+" = ", s.newline()))
	}
	return nil
}

// inline writes a key and its value into { … }.
func (s *setter) inline(table *syntax.Node, pair []piece) {
	at := table.Span.From + 1
	for _, p := range pairs(table) {
		at = max(at, p.To)
	}
	if at == table.Span.From+1 {
		pair = append([]piece{s.value.glue(" ")}, append(pair, s.value.glue(" "))...)
	} else {
		pair = append([]piece{s.value.glue(", ")}, pair...)
	}
	s.t.splice(at, at, pair...)
}

// line writes a line at the end of a section.
func (s *setter) line(section *syntax.Section, line []piece) {
	if section.Span.To == 0 { // before the first header, where there is no key
		at := s.head()
		s.t.splice(at, at, append([]piece{s.value.glue(s.missingNewline(at))}, line...)...)
		return
	}
	at := s.lineEnd(section.Span.To)
	start := s.lineStart(section.Span.To)
	indent := s.text[start : len(s.text)-len(bytes.TrimLeft(s.text[start:], " \t"))]
	s.t.splice(at, at, append([]piece{s.value.glue(s.missingNewline(at) + string(indent))}, line...)...)
}

// head is where the first key of a text goes: before the first header and the
// comment above it, or behind the comment with which the text begins.
func (s *setter) head() int {
	at := 0
	for at < len(s.text) && !bytes.HasPrefix(bytes.TrimLeft(s.text[at:], " \t"), []byte("[")) {
		at = s.lineEnd(at)
	}
	up := at
	for up > 0 {
		start := s.lineStart(up - 1)
		if s.text[start] != '#' {
			return up
		}
		up = start
	}
	return at
}

// addSection writes a new section for the last table on the way of above and rest,
// with the key in it.
func (s *setter) addSection(at int, above, rest []Step) {
	first := len(above)
	last := first
	for last+1 < len(s.path) && !s.element(last+1) {
		last++
	}
	name, v := s.chain(last)
	header := s.names(above)
	if last > first {
		if header != "" {
			header += "."
		}
		header += keys(rest[:last-first])
	}
	s.section(at, "["+header+"]", v.in(name+" = ", s.newline()))
}

// section writes a header and its keys, with an empty line before it.
func (s *setter) section(at int, header string, body []piece) {
	glue := s.missingNewline(at)
	if before := s.text[:at]; len(before) > 0 && !bytes.HasSuffix(before, []byte("\n\n")) && !bytes.HasSuffix(before, []byte("\n\r\n")) {
		glue += s.newline()
	}
	s.t.splice(at, at, append([]piece{s.value.glue(glue + header + s.newline())}, body...)...)
}

// newline is how the text ends its lines.
func (s *setter) newline() string {
	if bytes.Contains(s.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// missingNewline ends the line at the end of the text, where that is at and has no end.
func (s *setter) missingNewline(at int) string {
	if at > 0 && s.text[at-1] != '\n' {
		return s.newline()
	}
	return ""
}

func (s *setter) lineStart(at int) int { return bytes.LastIndexByte(s.text[:at], '\n') + 1 }

// lineEnd is the offset behind the line of the byte at.
func (s *setter) lineEnd(at int) int {
	if i := bytes.IndexByte(s.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(s.text)
}
