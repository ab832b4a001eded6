package pod

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// RecordHeader is the number of bytes before a record's data.
const RecordHeader = 13

// MaxRecord is the most data that one record holds.
const MaxRecord = 64 << 10

// ErrRecord reports bytes that are not a record.
var ErrRecord = errors.New("not a record")

// Record is a piece of output as the wrapper read it: not a line, but whatever
// one read returned. Its place in the file gives it its number.
type Record struct {
	Err  bool  // from standard error
	Time int64 // ns since 1970, UTC, when it was read
	Data []byte
}

// AppendRecord appends r to b: the length of its data (4 bytes, little endian),
// its stream (1 byte: 1 standard output, 2 standard error), its time (8 bytes,
// little endian), its data.
func AppendRecord(b []byte, r Record) []byte {
	stream := byte(1)
	if r.Err {
		stream = 2
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Data))) //nolint:gosec // at most MaxRecord
	b = append(b, stream)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Time)) //nolint:gosec // two's complement and back
	return append(b, r.Data...)
}

// ReadRecord returns the record at the beginning of b, and its whole length, 0 if b ends
// before the record does. Data is part of b. It returns ErrRecord for bytes that
// AppendRecord did not write.
func ReadRecord(b []byte) (r Record, n int, err error) {
	if len(b) < RecordHeader {
		return r, 0, nil
	}
	size := binary.LittleEndian.Uint32(b)
	if stream := b[4]; size > MaxRecord || stream < 1 || stream > 2 {
		return r, 0, fmt.Errorf("%w: %d bytes of stream %d", ErrRecord, size, stream)
	}
	n = RecordHeader + int(size)
	if len(b) < n {
		return r, 0, nil
	}
	r.Err, r.Time = b[4] == 2, int64(binary.LittleEndian.Uint64(b[5:])) //nolint:gosec // two's complement and back
	r.Data = b[RecordHeader:n:n]
	return r, n, nil
}
