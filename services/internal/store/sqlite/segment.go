package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/tokenhash"
)

// Lines are found by their tokens in two steps: a segment of a source's lines has the hashes of all tokens of these lines, and a search
// reads only the lines of segments that have all wanted hashes. An index of every token of every line would cost twice as much as the
// lines.
// A segment without hashes may have any token.
const (
	maxSegment = 4096 // lines of a segment
	minSegment = 512  // least lines of a segment that is not merged with the one before
)

const (
	insertSegment          = "INSERT INTO stretches(source, first, last, lines, marks) VALUES (?, ?, ?, ?, ?)"
	deleteSegment          = "DELETE FROM stretches WHERE n = ?"
	segmentBefore          = "SELECT n, first, lines, marks FROM stretches WHERE source = ? + 0 AND last < ? + 0 ORDER BY last DESC LIMIT 1"
	listSegments           = "SELECT n, first, last FROM stretches WHERE source = ? + 0 AND last > ? + 0 ORDER BY first"
	readSegmentHashes      = "SELECT marks FROM stretches WHERE n = ? + 0"
	readGroupLines         = "SELECT seq, time, raw, flags, text FROM lines WHERE source = ? + 0 AND seq >= ? + 0 AND seq <= ? + 0 ORDER BY seq"
	readGroupLinesBackward = "SELECT seq, text FROM lines WHERE source = ? + 0 AND seq >= ? + 0 AND seq <= ? + 0 ORDER BY seq DESC"
)

// segment is a range of a source's lines, and the hashes of their tokens.
type segment struct {
	id, first, last int64
	lines           int
	hashes          []byte // pressed; nil: any
}

// segmentBuild has the segments of the lines that are being appended, by origin. A goroutine makes them while the lines are written, which
// takes longer.
type segmentBuild struct {
	done     chan struct{}
	byOrigin map[store.Origin][]segment
}

// buildSegments begins to make those of batches. The caller waits until they are made.
func (s *Store) buildSegments(batches []store.Lines) *segmentBuild {
	all := &segmentBuild{done: make(chan struct{}), byOrigin: make(map[store.Origin][]segment)}
	go func() {
		defer close(all.done)
		m, ok := s.hashers.Get().(*tokenhash.Hasher)
		if !ok {
			m = new(tokenhash.Hasher)
		}
		defer s.hashers.Put(m)
		lines := make(map[store.Origin][][]event.Line)
		for _, b := range batches {
			lines[b.Origin] = append(lines[b.Origin], b.Lines)
		}
		for o, some := range lines {
			for part := range slices.Chunk(concat(some), maxSegment) {
				all.byOrigin[o] = append(all.byOrigin[o], newSegment(m, part))
			}
		}
	}()
	return all
}

// newSegment returns that of lines.
func newSegment(m *tokenhash.Hasher, lines []event.Line) segment {
	s := segment{first: lines[0].Seq, last: lines[0].Seq, lines: len(lines), hashes: tokenhash.Encode(m.Lines(lines))}
	for i := range lines {
		s.first, s.last = min(s.first, lines[i].Seq), max(s.last, lines[i].Seq)
	}
	return s
}

// addSegments stores the segments of a source with new lines.
func (a *appender) addSegments(ctx context.Context, st *pendingStream) error {
	if !st.hasNewLines {
		return nil
	}
	<-a.segments.done
	for _, s := range a.segments.byOrigin[st.origin] {
		if err := a.addSegment(ctx, st.source, s); err != nil {
			return err
		}
	}
	return nil
}

// addSegment adds a segment. A segment of few lines is merged with the one before, as long as that has no more lines. So a source with
// small batches has few segments, like its chunks of samples.
func (a *appender) addSegment(ctx context.Context, source int64, s segment) error {
	for s.lines < minSegment {
		var before segment
		err := a.row(ctx, segmentBefore, source, s.first).Scan(&before.id, &before.first, &before.lines, &before.hashes)
		if errors.Is(err, sql.ErrNoRows) || err == nil && (before.lines > s.lines || before.hashes == nil) {
			break
		}
		if err == nil {
			s, err = s.prepend(before)
		}
		if err == nil {
			_, err = a.exec(ctx, deleteSegment, before.id)
		}
		if err != nil {
			return err
		}
	}
	_, err := a.exec(ctx, insertSegment, source, s.first, s.last, s.lines, s.hashes)
	return err
}

// prepend returns one segment of s and the one before it.
func (s segment) prepend(before segment) (segment, error) {
	some, err := tokenhash.Decode(before.hashes)
	if err != nil {
		return s, err
	}
	more, err := tokenhash.Decode(s.hashes)
	some = append(some, more...)
	slices.Sort(some)
	s.first, s.lines, s.hashes = before.first, s.lines+before.lines, tokenhash.Encode(slices.Compact(some))
	return s, err
}

// concat returns the elements of all batches. It does not copy a single batch.
func concat[T any](batches [][]T) []T {
	if len(batches) == 1 {
		return batches[0]
	}
	return slices.Concat(batches...)
}
