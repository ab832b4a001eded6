// Package tokenhash is the format in which a file of package sqlite stores the tokens of a segment of lines: hashes of them.
//
// The hashes of a segment are their differences, in ascending order, as varints of encoding/binary.
package tokenhash

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const hashBits = 24 // one more token is taken for one of 16,000 in a thousand cases

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

// Of returns the hashes of tokens, in order, each once.
func Of(tokens []string) (hashes []uint32) {
	for _, token := range tokens {
		hashes = append(hashes, hashToken([]byte(token)))
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// Hasher makes the hashes of lines. Its zero value works. One goroutine at a time may use it.
type Hasher struct {
	tokenizer    store.Tokenizer
	hashes, swap []uint32
}

// Lines returns the hashes of lines, in order, each once. They are valid until the next call.
func (m *Hasher) Lines(lines []event.Line) []uint32 {
	m.hashes = m.hashes[:0]
	add := func(token []byte) { m.hashes = append(m.hashes, hashToken(token)) }
	for i := range lines {
		m.tokenizer.Each(lines[i].Text, add)
	}
	m.sort()
	return slices.Compact(m.hashes)
}

// sort puts hashes in order, byte by byte: many are sorted for every line.
func (m *Hasher) sort() {
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

// Encode returns the encoded form of hashes, which are in order.
func Encode(hashes []uint32) []byte {
	b, last := make([]byte, 0, 2*len(hashes)+8), uint32(0)
	for _, v := range hashes {
		b = binary.AppendUvarint(b, uint64(v-last))
		last = v
	}
	return b
}

// Decode returns encoded hashes. The error is ErrDamaged.
func Decode(b []byte) (hashes []uint32, err error) {
	for last := uint64(0); len(b) > 0; {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, ErrDamaged
		}
		last, b = last+v, b[n:]
		hashes = append(hashes, uint32(last)) //nolint:gosec // 24 bits
	}
	return hashes, nil
}

// ErrDamaged means that bytes are no valid hashes.
var ErrDamaged = errors.New("the marks of a stretch of lines are damaged")

// Contain reports whether encoded hashes contain all wanted ones, which are in order. The error is ErrDamaged.
func Contain(b []byte, wanted []uint32) (bool, error) {
	for last := uint64(0); len(wanted) > 0; {
		if len(b) == 0 {
			return false, nil
		}
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return false, ErrDamaged
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
