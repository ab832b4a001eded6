// Package cursor makes opaque text of a place in an answer, for drivers of the
// store.
package cursor

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Encode makes opaque text of b, with a checksum over b and its query.
func Encode(query string, b []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(checksum(query, b), b...))
}

// Decode returns the bytes that Encode got, or store.ErrCursor for a text that Encode did not return for this query.
func Decode(query, cursor string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 8 || string(checksum(query, b[8:])) != string(b[:8]) {
		return nil, fmt.Errorf("cursor %.40q: %w", cursor, store.ErrCursor)
	}
	return b[8:], nil
}

func checksum(query string, b []byte) []byte {
	h := fnv.New64a()
	h.Write([]byte(query))
	h.Write(b)
	return h.Sum(nil)
}

// ReadVarint reads a number in the encoding of encoding/binary, and returns the bytes after it.
func ReadVarint(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	return v, b[max(n, 0):]
}

// ReadLength reads the length of the following text, at most the remaining bytes, and returns the bytes after the number.
func ReadLength(b []byte) (int, []byte) {
	v, n := binary.Uvarint(b)
	b = b[max(n, 0):]
	return int(min(v, uint64(len(b)))), b //nolint:gosec // at most len(b)
}
