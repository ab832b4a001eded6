package otava_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge/otava"
)

// numbers returns the numbers that bytes are: of any kind if they come in eights, and small
// ones, with many ties, from the rest.
func numbers(bytes []byte) (values []float64) {
	for len(bytes) >= 8 && bytes[0] != 0 {
		values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(bytes)))
		bytes = bytes[8:]
	}
	for _, b := range bytes {
		values = append(values, float64(b%16)-4)
	}
	return values
}

func FuzzFind(f *testing.F) {
	f.Add([]byte("\x00aaaaaaaaaabbbbbbbbbbaaaaaaaaaakkkkkkkkkk"), 0.001, 50, 0.0)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xef\x7f\xff\xff\xff\xff\xff\xff\xef\xff\x01\x00\x00\x00\x00\x00\xf0\x7f\x00abcd"), 1.0, 3, 0.1)
	f.Add([]byte("\x00abcdefghijklmnopqrstuvwxyz"), 0.9, math.MaxInt, 0.0)
	f.Fuzz(func(t *testing.T, bytes []byte, p float64, window int, magnitude float64) {
		values := numbers(bytes)
		changes, err := otava.Find(values, otava.Options{P: p, Window: window, MinMagnitude: magnitude})
		if err != nil || len(values) > 1000 {
			return // options out of range have a test; long series only slow the fuzzer down
		}
		before := 0
		for _, c := range changes {
			if c.Index <= before || c.Index >= len(values) {
				t.Errorf("row %d comes after row %d of %d", c.Index, before, len(values))
			}
			before = c.Index
		}
	})
}
