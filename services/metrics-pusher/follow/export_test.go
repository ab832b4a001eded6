package follow

import (
	"io"

	"github.com/benchmark-ai/bai/descriptors"
)

// SeriesOf is seriesOf.
func SeriesOf(d *descriptors.Descriptor, role string) int { return seriesOf(d, role) }

// CutTimestamp is stamped.
func CutTimestamp(line []byte) (at int64, text []byte, ok bool) { return cutTimestamp(line) }

// ReadLines returns the beginnings and the lengths of all lines.
func ReadLines(r io.Reader, limit int) (texts []string, lengths []int) {
	for l := newLines(r); ; {
		text, length, _, err := l.next(limit)
		if err != nil {
			return texts, lengths
		}
		texts, lengths = append(texts, string(text)), append(lengths, length)
	}
}
