package syntax

import (
	"sort"
	"unicode/utf8"
)

// Lines converts between offsets and positions of a text.
type Lines struct {
	text   []byte
	starts []int
}

// NewLines are the lines of a text.
func NewLines(text []byte) Lines { return Lines{text, lineStarts(text)} }

// Offset is that of a position. A position behind the end of its line is in the lines
// after it.
func (l Lines) Offset(at Position) int {
	offset := l.starts[min(at.Line, len(l.starts))-1]
	for range at.Column - 1 {
		_, size := utf8.DecodeRune(l.text[offset:])
		offset += size
	}
	return offset
}

// Position is that of an offset.
func (l Lines) Position(offset int) Position {
	line := sort.SearchInts(l.starts, offset+1) - 1
	return Position{line + 1, utf8.RuneCount(l.text[l.starts[line]:offset]) + 1}
}
