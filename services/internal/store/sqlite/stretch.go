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

// Lines are found by their tokens in two steps: a stretch of a source's lines
// knows the marks of all tokens that these lines have, and only the lines of
// stretches that have all marks that are looked for are looked at. An index of
// every token of every line would cost twice what the lines cost.
//
// The form of a stretch's marks: their differences, in ascending order, as of
// encoding/binary's varints. A stretch without marks may have any token.
const (
	maxStretch   = 4096 // lines of a stretch
	smallStretch = 512  // lines that are worth a stretch of their own
	markBits     = 24   // of 16,000 tokens one more is taken for one of them in a thousand cases
)

const (
	addStretch    = "INSERT INTO stretches(source, first, last, lines, marks) VALUES (?, ?, ?, ?, ?)"
	dropStretch   = "DELETE FROM stretches WHERE n = ?"
	stretchBefore = "SELECT n, first, lines, marks FROM stretches WHERE source = ? + 0 AND last < ? + 0 ORDER BY last DESC LIMIT 1"
	listStretches = "SELECT n, first, last FROM stretches WHERE source = ? + 0 AND last > ? + 0 ORDER BY first"
	readMarks     = "SELECT marks FROM stretches WHERE n = ? + 0"
	readArea      = "SELECT seq, time, raw, flags, text FROM lines WHERE source = ? + 0 AND seq >= ? + 0 AND seq <= ? + 0 ORDER BY seq"
	readAreaBack  = "SELECT seq, text FROM lines WHERE source = ? + 0 AND seq >= ? + 0 AND seq <= ? + 0 ORDER BY seq DESC"
)

// mark returns the mark of a token: bits that many tokens share. Files hold
// marks: never change it.
func mark(token []byte) uint32 {
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
	return uint32(h >> (64 - markBits)) //nolint:gosec // 24 bits
}

// marksOf returns the marks of tokens, in order, each once.
func marksOf(tokens []string) (marks []uint32) {
	for _, token := range tokens {
		marks = append(marks, mark([]byte(token)))
	}
	slices.Sort(marks)
	return slices.Compact(marks)
}

// marker makes the marks of lines.
type marker struct {
	tokenizer   store.Tokenizer
	marks, swap []uint32
}

// of returns the marks of lines, in order, each once. They are good until it is
// called again.
func (m *marker) of(lines []event.Line) []uint32 {
	m.marks = m.marks[:0]
	add := func(token []byte) { m.marks = append(m.marks, mark(token)) }
	for i := range lines {
		m.tokenizer.Each(lines[i].Text, add)
	}
	m.sort()
	return slices.Compact(m.marks)
}

// sort puts marks in order, byte by byte: many are sorted for every line.
func (m *marker) sort() {
	if len(m.marks) < 256 {
		slices.Sort(m.marks)
		return
	}
	m.swap = slices.Grow(m.swap[:0], len(m.marks))[:len(m.marks)]
	for shift := 0; shift < markBits; shift += 8 {
		var from [257]int
		for _, v := range m.marks {
			from[v>>shift&255+1]++
		}
		for i := range 256 {
			from[i+1] += from[i]
		}
		for _, v := range m.marks {
			at := &from[v>>shift&255]
			m.swap[*at] = v
			*at++
		}
		m.marks, m.swap = m.swap, m.marks
	}
}

// press returns the form of marks, which are in order.
func press(marks []uint32) []byte {
	b, last := make([]byte, 0, 2*len(marks)+8), uint32(0)
	for _, v := range marks {
		b = binary.AppendUvarint(b, uint64(v-last))
		last = v
	}
	return b
}

// unpress returns the marks of a stretch.
func unpress(b []byte) (marks []uint32, err error) {
	for last := uint64(0); len(b) > 0; {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errMarks
		}
		last, b = last+v, b[n:]
		marks = append(marks, uint32(last)) //nolint:gosec // 24 bits
	}
	return marks, nil
}

var errMarks = errors.New("the marks of a stretch of lines are damaged")

// hasMarks says whether all of some marks, which are in order, are in a form.
func hasMarks(b []byte, wanted []uint32) (bool, error) {
	for last := uint64(0); len(wanted) > 0; {
		if len(b) == 0 {
			return false, nil
		}
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return false, errMarks
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

// stretch is where lines of a source lie, and what tokens they have.
type stretch struct {
	n, first, last int64
	lines          int
	marks          []byte // pressed; nil: any
}

// stretches are those of the lines that are being appended, by where they come
// from. They are made beside the writing of the lines, which takes longer.
type stretches struct {
	made chan struct{}
	of   map[store.Origin][]stretch
}

// stretches begins to make those of batches. The caller waits until they are made.
func (s *Store) stretches(batches []store.Lines) *stretches {
	all := &stretches{made: make(chan struct{}), of: make(map[store.Origin][]stretch)}
	go func() {
		defer close(all.made)
		m, ok := s.markers.Get().(*marker)
		if !ok {
			m = new(marker)
		}
		defer s.markers.Put(m)
		lines := make(map[store.Origin][][]event.Line)
		for _, b := range batches {
			lines[b.Origin] = append(lines[b.Origin], b.Lines)
		}
		for o, some := range lines {
			for part := range slices.Chunk(joined(some), maxStretch) {
				all.of[o] = append(all.of[o], m.stretch(part))
			}
		}
	}()
	return all
}

// stretch returns that of lines.
func (m *marker) stretch(lines []event.Line) stretch {
	s := stretch{first: lines[0].Seq, last: lines[0].Seq, lines: len(lines), marks: press(m.of(lines))}
	for i := range lines {
		s.first, s.last = min(s.first, lines[i].Seq), max(s.last, lines[i].Seq)
	}
	return s
}

// stretchesOf writes down the stretches of a source whose lines were not all there.
func (a *appender) stretchesOf(ctx context.Context, st *stream) error {
	if !st.fresh {
		return nil
	}
	<-a.found.made
	for _, s := range a.found.of[st.origin] {
		if err := a.addStretch(ctx, st.source, s); err != nil {
			return err
		}
	}
	return nil
}

// addStretch adds a stretch. One of few lines takes the one before it in, as long
// as that has no more: so the stretches of a source that brings little at a time
// are few, as its chunks of samples are.
func (a *appender) addStretch(ctx context.Context, source int64, s stretch) error {
	for s.lines < smallStretch {
		var before stretch
		err := a.row(ctx, stretchBefore, source, s.first).Scan(&before.n, &before.first, &before.lines, &before.marks)
		if errors.Is(err, sql.ErrNoRows) || err == nil && (before.lines > s.lines || before.marks == nil) {
			break
		}
		if err == nil {
			s, err = s.with(before)
		}
		if err == nil {
			_, err = a.exec(ctx, dropStretch, before.n)
		}
		if err != nil {
			return err
		}
	}
	_, err := a.exec(ctx, addStretch, source, s.first, s.last, s.lines, s.marks)
	return err
}

// with returns one stretch of two, the other of which is before it.
func (s stretch) with(before stretch) (stretch, error) {
	some, err := unpress(before.marks)
	if err != nil {
		return s, err
	}
	more, err := unpress(s.marks)
	some = append(some, more...)
	slices.Sort(some)
	s.first, s.lines, s.marks = before.first, s.lines+before.lines, press(slices.Compact(some))
	return s, err
}

// joined returns all that batches have. What a single one has is not copied.
func joined[T any](batches [][]T) []T {
	if len(batches) == 1 {
		return batches[0]
	}
	return slices.Concat(batches...)
}
