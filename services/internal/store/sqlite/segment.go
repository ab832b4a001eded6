package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Lines are found by their tokens in two steps: a segment of a source's lines has the hashes of all tokens of these lines, and a search
// reads only the lines of segments that have all wanted hashes. An index of every token of every line would cost twice as much as the
// lines.
//
// The format of a segment's hashes: their differences, in ascending order, as varints of encoding/binary. A segment without hashes may have
// any token.
const (
	maxSegment = 4096 // lines of a segment
	minSegment = 512  // least lines of a segment that is not merged with the one before
	hashBits   = 24   // one more token is taken for one of 16,000 in a thousand cases
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

// hashToken returns the hash of a token: bits that many tokens share. Files contain hashes: never change it.
func hashToken(token []byte) uint32 {
	const m = 0x9e3779b97f4a7c15
	h := uint64(len(token)) * m
	for ; len(token) >= 8; token = token[8:] {
		h = bits.RotateLeft64(h^binary.LittleEndian.Uint64(token), 29) * m
	}
	var tail uint64
	for i, c := range token {
		tail |= uint64(c) << (8 * i)
	}
	h = (h ^ tail) * m
	h = (h ^ h>>32) * m
	return uint32(h >> (64 - hashBits)) //nolint:gosec // 24 bits
}

// hashTokens returns the hashes of tokens, in order, each once.
func hashTokens(tokens []string) (hashes []uint32) {
	for _, token := range tokens {
		hashes = append(hashes, hashToken([]byte(token)))
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// tokenHasher makes the hashes of lines.
type tokenHasher struct {
	tokenizer    store.Tokenizer
	hashes, swap []uint32
}

// hashLines returns the hashes of lines, in order, each once. They are valid until the next call.
func (m *tokenHasher) hashLines(lines []event.Line) []uint32 {
	m.hashes = m.hashes[:0]
	add := func(token []byte) { m.hashes = append(m.hashes, hashToken(token)) }
	for i := range lines {
		m.tokenizer.Each(lines[i].Text, add)
	}
	m.sort()
	return slices.Compact(m.hashes)
}

// sort puts hashes in order, byte by byte: many are sorted for every line.
func (m *tokenHasher) sort() {
	if len(m.hashes) < 256 {
		slices.Sort(m.hashes)
		return
	}
	m.swap = slices.Grow(m.swap[:0], len(m.hashes))[:len(m.hashes)]
	for shift := 0; shift < hashBits; shift += 8 {
		var from [257]int
		for _, v := range m.hashes {
			from[v>>shift&255+1]++
		}
		for i := range 256 {
			from[i+1] += from[i]
		}
		for _, v := range m.hashes {
			at := &from[v>>shift&255]
			m.swap[*at] = v
			*at++
		}
		m.hashes, m.swap = m.swap, m.hashes
	}
}

// encodeHashes returns the encoded form of hashes, which are in order.
func encodeHashes(hashes []uint32) []byte {
	b, last := make([]byte, 0, 2*len(hashes)+8), uint32(0)
	for _, v := range hashes {
		b = binary.AppendUvarint(b, uint64(v-last))
		last = v
	}
	return b
}

// decodeHashes returns the hashes of a segment.
func decodeHashes(b []byte) (hashes []uint32, err error) {
	for last := uint64(0); len(b) > 0; {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errHashes
		}
		last, b = last+v, b[n:]
		hashes = append(hashes, uint32(last)) //nolint:gosec // 24 bits
	}
	return hashes, nil
}

var errHashes = errors.New("the marks of a stretch of lines are damaged")

// containsHashes reports whether encoded hashes contain all wanted ones, which are in order.
func containsHashes(b []byte, wanted []uint32) (bool, error) {
	for last := uint64(0); len(wanted) > 0; {
		if len(b) == 0 {
			return false, nil
		}
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return false, errHashes
		}
		last, b = last+v, b[n:]
		if last == uint64(wanted[0]) {
			wanted = wanted[1:]
		} else if last > uint64(wanted[0]) {
			return false, nil
		}
	}
	return true, nil
}

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
		m, ok := s.hashers.Get().(*tokenHasher)
		if !ok {
			m = new(tokenHasher)
		}
		defer s.hashers.Put(m)
		lines := make(map[store.Origin][][]event.Line)
		for _, b := range batches {
			lines[b.Origin] = append(lines[b.Origin], b.Lines)
		}
		for o, some := range lines {
			for part := range slices.Chunk(concat(some), maxSegment) {
				all.byOrigin[o] = append(all.byOrigin[o], m.segment(part))
			}
		}
	}()
	return all
}

// segment returns that of lines.
func (m *tokenHasher) segment(lines []event.Line) segment {
	s := segment{first: lines[0].Seq, last: lines[0].Seq, lines: len(lines), hashes: encodeHashes(m.hashLines(lines))}
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
	some, err := decodeHashes(before.hashes)
	if err != nil {
		return s, err
	}
	more, err := decodeHashes(s.hashes)
	some = append(some, more...)
	slices.Sort(some)
	s.first, s.lines, s.hashes = before.first, s.lines+before.lines, encodeHashes(slices.Compact(some))
	return s, err
}

// concat returns the elements of all batches. It does not copy a single batch.
func concat[T any](batches [][]T) []T {
	if len(batches) == 1 {
		return batches[0]
	}
	return slices.Concat(batches...)
}
