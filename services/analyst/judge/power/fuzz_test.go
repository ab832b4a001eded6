package power_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge/power"
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

func FuzzPlanner(f *testing.F) {
	f.Add([]byte("\x00abcdefghijklmnop"), 5, 0.02, 0.95)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xef\x7f\xff\xff\xff\xff\xff\xff\xef\xff\x00abcdabcd"), 20, 1e300, 0.8)
	f.Add([]byte("\x00aaaaaaaaaaab"), 7, -2.0, 0.999)
	f.Fuzz(func(t *testing.T, bytes []byte, runs int, change, confidence float64) {
		p, err := power.New(power.Settings{Confidence: confidence})
		if err != nil || len(bytes) > 400 {
			t.Skip() // the time that a fuzzer has is for other inputs
		}
		h := p.History(numbers(bytes))
		d := p.Smallest(h, runs)[0]
		if d.Change == nil {
			return
		}
		if at := d.Change.Interval; !(0 <= at.Low && at.Low <= d.Change.Value && d.Change.Value <= at.High) || math.IsInf(at.High, 0) {
			t.Errorf("the interval does not contain the change: %+v", d.Change)
		}
		n := p.Needed(h, change)
		if n.Low > n.Runs && n.Runs > 0 || n.Runs > n.High && n.High > 0 {
			t.Errorf("the interval does not contain the number: %+v", n)
		}
	})
}
