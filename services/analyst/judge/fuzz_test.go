package judge_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/analyst/judge"
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

func FuzzSummarise(f *testing.F) {
	f.Add([]byte("\x00aabbccddeeffgg"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xef\x7f\xff\xff\xff\xff\xff\xff\xef\xff\x01\x00\x00\x00\x00\x00\xf0\x7f\x00abcdefghijkl"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		values := numbers(bytes)
		s := newJudge(t).Summarise(values)
		if s.N+s.Excluded != len(values) {
			t.Errorf("%d repetitions and %d excluded of %d", s.N, s.Excluded, len(values))
		}
		containsMedian(t, s)
		rule := newStopping(t, judge.StopWhen{HalfWidth: 0.1, Min: 1 + len(bytes)%7, Max: 20})
		for n := range values {
			d := rule.Decide(values[:n+1])
			containsMedian(t, d.Summary)
			if n+1 >= 20 && d.Reason == judge.GoOn {
				t.Errorf("%d repetitions are not enough: %+v", n+1, d)
			}
		}
	})
}

// containsMedian fails unless a summary has an interval that contains its median, or lacks
// repetitions for one.
func containsMedian(t *testing.T, s judge.Summary) {
	t.Helper()
	if s.Interval == nil && s.Lacking <= 0 || s.Interval != nil && s.Lacking != 0 {
		t.Errorf("an interval, or repetitions that are lacking: %+v", s)
	}
	if s.Interval != nil && (s.Interval.Low > s.Median || s.Median > s.Interval.High) {
		t.Errorf("the interval %+v does not contain the median %v", *s.Interval, s.Median)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add([]byte("\x00abcdefg"), []byte("\x00bcdefghij"), 0.95)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xef\x7f\x00abcde"), []byte("\xff\xff\xff\xff\xff\xff\xef\xff\x00aaaaaa"), 0.8)
	f.Add([]byte("\x00aaaa"), []byte("\x00aaaaaaab"), 0.999)
	f.Fuzz(func(t *testing.T, a, b []byte, confidence float64) {
		j, err := judge.New(judge.Settings{Confidence: confidence})
		if err != nil {
			t.Skip()
		}
		x, y := numbers(a), numbers(b)
		if len(x)*len(y) > 10_000 {
			t.Skip() // the time that a fuzzer has is for other inputs
		}
		c, swapped := j.Compare(judge.Higher, x, y), j.Compare(judge.Higher, y, x)
		if c.Shift == nil {
			if c.Verdict != judge.Insufficient || c.LackingBase+c.LackingOther == 0 {
				t.Errorf("without a shift: %+v", c)
			}
		} else if at := c.Shift.Interval; at.Low > c.Shift.Value || c.Shift.Value > at.High {
			t.Errorf("the interval does not contain the shift: %+v", c.Shift)
		} else if err := coherent(c.Verdict, at); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(opposite(c), opposite(opposite(swapped)), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("swapped sides are not the opposite (-opposite +swapped):\n%s", diff)
		}
	})
}

// opposite returns what a comparison is to be after a swap of its sides, without percents,
// whose base is another one.
func opposite(c judge.Comparison) judge.Comparison {
	verdicts := map[judge.Verdict]judge.Verdict{judge.Better: judge.Worse, judge.Worse: judge.Better}
	if v, ok := verdicts[c.Verdict]; ok {
		c.Verdict = v
	}
	c.Base, c.Other = c.Other, c.Base
	c.LackingBase, c.LackingOther = c.LackingOther, c.LackingBase
	c.Percent = nil
	if c.Shift != nil {
		at := c.Shift.Interval
		c.Shift = &judge.Estimate{Value: 0 - c.Shift.Value, Interval: judge.Interval{Low: 0 - at.High, High: 0 - at.Low, Level: at.Level}}
	}
	return c
}

func FuzzRank(f *testing.F) {
	f.Add([]byte("\x00abcdefg"), []byte("\x00bcdefghij"), []byte("\x00klmnopqrst"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		cells := [][]float64{numbers(a), numbers(b), numbers(c)}
		if len(a)+len(b)+len(c) > 200 {
			t.Skip()
		}
		r, err := newJudge(t).Rank(judge.Lower, cells)
		if err != nil || len(r.Cells) != len(cells) {
			t.Fatalf("%+v, %v", r, err)
		}
		for i, cell := range r.Cells {
			if cell.Best && cell.Lacking > 0 || i == 0 && !cell.Best && cell.Lacking == 0 {
				t.Errorf("place %d: %+v", i, cell)
			}
		}
		again, _ := newJudge(t).Rank(judge.Lower, cells)
		if diff := cmp.Diff(r, again, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("again, the ranking is another one:\n%s", diff)
		}
	})
}
