package reporttest

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Limits of the places at which a text is cut.
const (
	maxWork = 256 << 10 // bytes that are parsed, about
	tail    = 16        // places at the end of the text, which are never left out
)

// places returns where a text is cut: before each end of a line or each byte, if that is little work. Else it returns the last of these
// and others that a fixed seed chooses, half of them at the beginning or the end of a word.
func places(text string, bytes bool) []int {
	var borders, others []int
	for at := range len(text) {
		switch {
		case isBorder(text, at) && (bytes || text[at] == '\n'):
			borders = append(borders, at)
		case bytes:
			others = append(others, at)
		}
	}
	most := maxWork / (len(text)/2 + 1)
	if len(borders)+len(others) <= most {
		return append(borders, others...)
	}
	last := borders[max(0, len(borders)-tail):]
	return slices.Concat(last, sample(borders, most/2), sample(others, most/2))
}

// isBorder reports whether a word or another sign ends or begins at a place.
func isBorder(text string, at int) bool {
	const signs = "{}[]<>,:=\"' \t\r\n"
	return at == 0 || strings.IndexByte(signs, text[at]) >= 0 || strings.IndexByte(signs, text[at-1]) >= 0
}

// sample returns most of the places, or all.
func sample(from []int, most int) []int {
	from = slices.Clone(from)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same places each time
	r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return from[:min(most, len(from))]
}
