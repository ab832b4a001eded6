package sqlite

import (
	"iter"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// series are samples of one source in order and each once, in pieces of which none
// is empty: batches that follow each other, as nearly all do, are not copied.
type series [][]event.Sample

// inOrder returns the samples of batches. Of those that are told apart by nothing
// the first stays.
func inOrder(batches [][]event.Sample) series {
	s := make(series, 0, len(batches))
	for _, b := range batches {
		if len(b) == 0 {
			continue
		}
		if b = ordered(b); len(s) > 0 && compare(s.last(), &b[0]) >= 0 {
			return series{ordered(slices.Concat(batches...))}
		}
		s = append(s, b)
	}
	return s
}

func (s series) first() *event.Sample { return &s[0][0] }

func (s series) last() *event.Sample {
	piece := s[len(s)-1]
	return &piece[len(piece)-1]
}

func (s series) count() (n int) {
	for _, piece := range s {
		n += len(piece)
	}
	return n
}

// chunks returns the samples in parts of so many, of which the last may have less.
func (s series) chunks(most int) iter.Seq[series] {
	return func(yield func(series) bool) {
		var part series
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
