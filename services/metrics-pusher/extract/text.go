package extract

import (
	"strings"
	"unicode/utf8"
)

// LineText returns what is kept of a line of length bytes, of which b is the
// beginning: no more than limit bytes, with what is no UTF-8 replaced. The line's
// length comes back as raw where text is not all of it; cut says that text ends
// early. A character that the limit cuts apart is left out.
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
