package syntax

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// InsideText is the place of a line and a column, both from 1 on, of the content of a String
// that is on one line of the file. It is the place of the String itself where the file has it
// on several lines.
func (n *Node) InsideText(line, column int) Position {
	at := n.offsets()
	if at == nil {
		return n.At
	}
	offset := min(NewLines([]byte(n.Text)).Offset(Position{line, column}), len(n.Text))
	return Position{n.At.Line, n.At.Column + utf8.RuneCountInString(n.source[:at[offset]])}
}

// Within is the place in the content of a String of a place of the file, as InsideText gives it.
// It is false for a place outside of the String, and for a String on several lines.
func (n *Node) Within(p Position) (Position, bool) {
	at := n.offsets()
	if at == nil || p.Line != n.At.Line || p.Column < n.At.Column {
		return Position{}, false
	}
	offset := 0
	for range p.Column - n.At.Column {
		_, size := utf8.DecodeRuneInString(n.source[offset:])
		if size == 0 {
			return Position{}, false
		}
		offset += size
	}
	if offset >= len(n.source) {
		return Position{}, false
	}
	i, _ := slices.BinarySearch(at, offset)
	return NewLines([]byte(n.Text)).Position(min(i, len(n.Text))), true
}

// offsets returns where in the source of a String each byte of its content is, and where the
// content ends. It returns nil for a String with three quotes, and for another value.
func (n *Node) offsets() []int {
	const quotes = 2
	if n.Kind != String || len(n.source) < quotes || len(n.source) > quotes && n.source[1] == n.source[0] {
		return nil
	}
	at := make([]int, 0, len(n.Text)+1)
	for i := 1; i < len(n.source)-1; {
		size, bytes := 1, 1
		if n.source[0] == '"' && n.source[i] == '\\' {
			size, bytes = escape(n.source[i:])
		}
		for range bytes {
			at = append(at, i)
		}
		i += size
	}
	if at = append(at, len(n.source)-1); len(at) != len(n.Text)+1 {
		return nil
	}
	return at
}

// escape returns the length of the escape sequence with which source begins, and the number of
// bytes for which it stands.
func escape(source string) (size, bytes int) {
	const letter = len(`\n`)
	digits := map[byte]int{'u': 4, 'U': 8}[source[1]]
	if digits == 0 || len(source) < letter+digits {
		return letter, 1
	}
	code, err := strconv.ParseUint(source[letter:letter+digits], 16, 32)
	if err != nil {
		return letter, 1
	}
	return letter + digits, utf8.RuneLen(rune(code)) //nolint:gosec // of 32 bits
}
