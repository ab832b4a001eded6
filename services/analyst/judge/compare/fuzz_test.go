package compare_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
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

func FuzzCompare(f *testing.F) {
	f.Add([]byte("\x00abcdefg"), []byte("\x00bcdefghij"), []byte("\x00abcdefghijklmnop"), 0.02, 0.0)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xef\x7f"), []byte("\xff\xff\xff\xff\xff\xff\xef\xff"), []byte("\x00fffffffffffffffffffff"), 0.5, math.Inf(1))
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\xf0\x7f"), []byte("\x00a"), []byte("\xff\xff\xff\xff\xff\xff\xef\x7f\xff\xff\xff\xff\xff\xff\xef\xff\x00abcdefghijk"), 0.0, 1e300)
	f.Fuzz(func(t *testing.T, base, other, history []byte, minChange, deviation float64) {
		c, err := compare.New(compare.Settings{MinChange: minChange})
		if err != nil || len(base)+len(other)+len(history) > 100 {
			t.Skip() // the time that a fuzzer has is for other inputs
		}
		m := compare.Metric{Direction: judge.Lower, Base: runs(numbers(base)...), Other: runs(numbers(other)...), History: numbers(history)}
		for i := range m.Other {
			m.Other[i].StandardError = deviation
		}
		for _, got := range c.Compare(m, m) {
			sound(t, got, minChange)
		}
	})
}

// sound fails unless the parts of a comparison agree.
func sound(t *testing.T, c compare.Comparison, minChange float64) {
	t.Helper()
	if !(c.P >= 0 && c.P <= c.AdjustedP && c.AdjustedP <= 1) {
		t.Errorf("p is %v and %v", c.P, c.AdjustedP)
	}
	if (c.Change == nil) != (c.Test == "") || (c.Test == "") != (c.LackingBase+c.LackingOther+c.LackingHistory > 0) {
		t.Fatalf("a change, a test, or something is lacking: %+v", c)
	}
	if (c.Verdict == compare.Unclear) == (c.Reason == "") || c.Needed < 0 || (c.Needed == 0) != (c.Shows == 0) {
		t.Errorf("%+v", c)
	}
	if c.Change != nil {
		agrees(t, c, minChange)
	}
}

// agrees fails unless the interval of a change agrees with the change and the verdict.
func agrees(t *testing.T, c compare.Comparison, minChange float64) {
	t.Helper()
	at := c.Change.Interval
	if !(at.Low <= c.Change.Value && c.Change.Value <= at.High) || math.IsInf(at.Low, 0) || math.IsInf(at.High, 0) {
		t.Errorf("the interval %v does not contain %v, or is infinite", at, c.Change.Value)
	}
	if c.Reason == compare.Noise && (at.Low > 0 || at.High < 0) {
		t.Errorf("%v is unclear", at)
	}
	if (c.Verdict == compare.Better && at.Low > 0) || (c.Verdict == compare.Worse && at.High < 0) {
		t.Errorf("%v is %s", at, c.Verdict)
	}
	if c.Verdict == compare.Same && (at.Low < -minChange || at.High > minChange) {
		t.Errorf("%v is the same", at)
	}
}
