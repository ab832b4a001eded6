// Package edit puts values into a TOML file and leaves the rest of it as it is,
// byte for byte.
package edit

import (
	"bytes"
	"slices"
	"sort"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// File is the origin of bytes of the file itself.
const File = -1

// A Text is a TOML file into which values are put. It knows of each of its bytes
// where it comes from.
type Text struct {
	pieces []piece
	text   []byte       // the pieces as they were when tree was read
	tree   *syntax.Node // nil where pieces have changed
}

// piece is a part of a text that comes from one origin.
type piece struct {
	text   []byte
	origin int // File, or the number of the value
	at     int // the offset of the first byte in its origin; glue for bytes added around a value
}

const glue = -1

// New is the text of a file.
func New(file []byte) *Text { return &Text{pieces: []piece{{slices.Clip(file), File, 0}}} }

// Bytes are the text as it is now.
func (t *Text) Bytes() []byte {
	var all bytes.Buffer
	for _, p := range t.pieces {
		all.Write(p.text)
	}
	return all.Bytes()
}

// Len is the number of bytes of the text as it is now.
func (t *Text) Len() int {
	n := 0
	for _, p := range t.pieces {
		n += len(p.text)
	}
	return n
}

// Origins map offsets of a Text to the origins of its bytes.
type Origins struct {
	pieces []piece
	starts []int
}

// Origins are those of the text as it is now.
func (t *Text) Origins() Origins {
	o := Origins{pieces: slices.Clone(t.pieces)}
	at := 0
	for _, p := range t.pieces {
		o.starts = append(o.starts, at)
		at += len(p.text)
	}
	return o
}

// Of is File or the number of the value from which the byte at offset comes, and
// its offset there.
func (o Origins) Of(offset int) (origin, at int) {
	i := sort.SearchInts(o.starts, offset+1) - 1
	p := o.pieces[i]
	if p.at == glue {
		return p.origin, 0
	}
	return p.origin, p.at + offset - o.starts[i]
}

// read is the text as it is now, and as a tree. The faults are those of TOML.
func (t *Text) read() (text []byte, tree *syntax.Node, broken []syntax.Fault) {
	if t.tree == nil {
		t.text = t.Bytes()
		t.tree, broken = syntax.Parse(t.text)
	}
	return t.text, t.tree, broken
}

// splice puts pieces in place of the bytes between two offsets.
func (t *Text) splice(from, to int, fresh ...piece) {
	var all []piece
	at := 0
	for _, p := range t.pieces {
		end := at + len(p.text)
		if left := p.cut(0, from-at); len(left.text) > 0 {
			all = append(all, left)
		}
		if at <= from && from < end {
			all = append(all, fresh...)
			fresh = nil
		}
		if right := p.cut(to-at, len(p.text)); len(right.text) > 0 {
			all = append(all, right)
		}
		at = end
	}
	t.pieces = append(all, fresh...)
	t.tree = nil
}

// cut is the part of p between two offsets, which may lie outside of p.
func (p piece) cut(from, to int) piece {
	from, to = min(max(from, 0), len(p.text)), min(max(to, 0), len(p.text))
	if from >= to {
		return piece{}
	}
	at := p.at
	if at != glue {
		at += from
	}
	return piece{p.text[from:to], p.origin, at}
}

// A Piece is a part of a Text that comes from one origin.
type Piece struct {
	Text   []byte
	Origin int // File, or the number of the value
	At     int // the offset of Text in its origin; -1 for bytes that were written around a value
}

// Pieces are the parts of the text as it is now. They share the memory of the file.
func (t *Text) Pieces() []Piece {
	all := make([]Piece, len(t.pieces))
	for i, p := range t.pieces {
		all[i] = Piece{p.text, p.origin, p.at}
	}
	return all
}
