package extract

import (
	"strings"
	"unicode/utf8"
)

// LineText returns the stored text of a line of length bytes that begins with b: at most limit bytes, with invalid UTF-8 replaced. Raw is
// the line's length if text is not all of the line; cut reports whether text ends early. A character that the limit cuts apart is left out.
func LineText(b []byte, length int64, limit int) (text string, raw int64, cut bool) {
	if cut = length > int64(limit); cut {
		b = trimPartialRune(b[:min(len(b), limit)])
	}
	valid := utf8.Valid(b)
	if cut || !valid {
		raw = length
	}
	if valid {
		return string(b), raw, cut
	}
	text = strings.ToValidUTF8(string(b), "\uFFFD")
	return Truncate(text, limit), raw, cut || len(text) > limit
}

// trimPartialRune returns b without the character that its end cuts apart, if any.
func trimPartialRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

// Truncate returns at most limit bytes of s, in whole characters.
func Truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return string(trimPartialRune([]byte(s[:limit])))
}
