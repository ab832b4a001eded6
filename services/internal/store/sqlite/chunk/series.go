package chunk

import (
	"iter"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Series are samples of one source in order and each once, in pieces without an empty one: batches that follow each other, as nearly all
// do, are not copied.
type Series [][]event.Sample

// InOrder returns the samples of batches. Of samples with the same key the first stays.
func InOrder(batches [][]event.Sample) Series {
	s := make(Series, 0, len(batches))
	for _, b := range batches {
		if len(b) == 0 {
			continue
		}
		if b = ordered(b); len(s) > 0 && compare(s.Last(), &b[0]) >= 0 {
			return Series{ordered(slices.Concat(batches...))}
		}
		s = append(s, b)
	}
	return s
}

// First returns the first sample.
func (s Series) First() *event.Sample { return &s[0][0] }

// Last returns the last sample.
func (s Series) Last() *event.Sample {
	piece := s[len(s)-1]
	return &piece[len(piece)-1]
}

// Count returns the number of samples.
func (s Series) Count() (n int) {
	for _, piece := range s {
		n += len(piece)
	}
	return n
}

// Chunks returns the samples in parts of most samples each; the last may have fewer.
func (s Series) Chunks(most int) iter.Seq[Series] {
	return func(yield func(Series) bool) {
		var part Series
		room := most
		for _, piece := range s {
			for len(piece) > 0 {
				n := min(room, len(piece))
				part, piece, room = append(part, piece[:n]), piece[n:], room-n
				if room > 0 {
					continue
				}
				if !yield(part) {
					return
				}
				part, room = nil, most
			}
		}
		if len(part) > 0 {
			yield(part)
		}
	}
}
