package sink

import (
	"strings"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Batch returns batches in pieces of at most the given number of samples each, in their order, and leaves out those without any.
func Batch(batches []event.Metrics, most int) [][]event.Metrics {
	var out [][]event.Metrics
	var piece []event.Metrics
	room := most
	for _, b := range batches {
		for rest := b.Samples; len(rest) > 0; {
			n := min(len(rest), room)
			part := b
			part.Samples, part.End = rest[:n], nil
			piece, rest, room = append(piece, part), rest[n:], room-n
			if room == 0 {
				out, piece, room = append(out, piece), nil, most
			}
		}
	}
	if len(piece) > 0 {
		out = append(out, piece)
	}
	return out
}

// SanitizeName returns text with an underscore in place of each character that names of
// a kind may not have, and before a digit at its beginning.
func SanitizeName(text string, may func(r rune) bool) string {
	clean := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && may(r) {
			return r
		}
		return '_'
	}, text)
	if clean == "" || clean[0] >= '0' && clean[0] <= '9' {
		clean = "_" + clean
	}
	return clean
}

// Word reports whether a character is an English letter, a digit or an underscore.
func Word(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}
