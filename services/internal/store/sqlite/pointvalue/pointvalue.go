// Package pointvalue is the format in which a file of package sqlite stores the value of a point.
//
// Numbers are in the encoding of encoding/binary:
//
//	version     one byte, formatVersion
//	n           varint
//	not numbers varint
//	direction   its length as uvarint, and its bytes
//	statistics  float64, 8 bytes each, little-endian: min, max, median, p90, p95, p99, mean, sd, first, last
//	interval    low, high and level, float64; absent without one
//
// JSON would take most of the time that a page of a series takes to be read.
package pointvalue

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/cursor"
)

const formatVersion = 1

// Numbers of float64 that are stored.
const (
	statistics = 10
	interval   = 3
)

// ErrDamaged means that bytes are no valid value.
var ErrDamaged = errors.New("the value of a point is damaged")

// Encode returns the value of a point, without its series.
func Encode(s store.Summary) []byte {
	b := make([]byte, 0, 8*(statistics+interval)+24)
	b = binary.AppendVarint(append(b, formatVersion), s.N)
	b = binary.AppendVarint(b, s.NotNumbers)
	b = append(binary.AppendUvarint(b, uint64(len(s.Direction))), s.Direction...)
	for _, f := range fields(&s) {
		b = appendFloat(b, float64(*f))
	}
	if i := s.Interval; i != nil {
		b = appendFloat(appendFloat(appendFloat(b, float64(i.Low)), float64(i.High)), i.Level)
	}
	return b
}

// Decode returns the value of a point of a series.
func Decode(k store.SeriesKey, b []byte) (store.Summary, error) {
	s := store.Summary{Metric: k.Metric, Unit: k.Unit, Labels: k.Labels}
	if len(b) == 0 || b[0] != formatVersion {
		return s, ErrDamaged
	}
	s.N, b = cursor.ReadVarint(b[1:])
	s.NotNumbers, b = cursor.ReadVarint(b)
	n, b := cursor.ReadLength(b)
	s.Direction, b = string(b[:n]), b[n:]
	if len(b) != 8*statistics && len(b) != 8*(statistics+interval) {
		return s, ErrDamaged
	}
	for i, f := range fields(&s) {
		*f = store.Float(float(b, i))
	}
	if len(b) > 8*statistics {
		s.Interval = &store.Interval{
			Low: store.Float(float(b, statistics)), High: store.Float(float(b, statistics+1)),
			Level: float(b, statistics+2),
		}
	}
	return s, nil
}

// fields are the statistics in the order of the format.
func fields(s *store.Summary) [statistics]*store.Float {
	return [statistics]*store.Float{&s.Min, &s.Max, &s.Median, &s.P90, &s.P95, &s.P99, &s.Mean, &s.SD, &s.First, &s.Last}
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// float returns the nth number of b.
func float(b []byte, n int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*n:]))
}
