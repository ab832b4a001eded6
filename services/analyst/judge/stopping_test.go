package judge_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

func newStopping(tb testing.TB, when judge.StopWhen) *judge.Stopping {
	tb.Helper()
	s, err := newJudge(tb).Stopping(when)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestDecide(t *testing.T) {
	nan := math.NaN()
	when := judge.StopWhen{HalfWidth: 0.05, Min: 5, Max: 12}
	same := []float64{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}
	wide := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	tests := map[string]struct {
		values []float64
		reason judge.StopReason
		n      int
	}{
		"no repetition is not enough":                      {nil, judge.GoOn, 0},
		"fewer than an interval takes are not enough":      {same[:6], judge.GoOn, 6},
		"a narrow interval is enough":                      {same[:8], judge.Precise, 8},
		"a wide interval is not":                           {wide[:8], judge.GoOn, 8},
		"max is enough whatever the interval":              {wide[:12], judge.MaxCount, 12},
		"values after max are left out":                    {wide, judge.MaxCount, 12},
		"at max a narrow interval is precise":              {same[:12], judge.Precise, 12},
		"NaN counts for max and for nothing else":          {append([]float64{1, 2, 3}, slices.Repeat([]float64{nan}, 9)...), judge.MaxCount, 3},
		"a median of 0 with a width is not precise":        {[]float64{-4, -3, -2, -1, 1, 2, 3, 4}, judge.GoOn, 8},
		"a median of 0 without a width is precise":         {make([]float64, 8), judge.Precise, 8},
		"a negative median has a relative half width, too": {[]float64{-7, -7, -7, -7, -7, -7, -7, -7}, judge.Precise, 8},
		"a width beyond float64 is not precise":            {[]float64{-1e308, -1e308, -1e308, 1e308, 1e308, 1e308, 1e308, 1e308}, judge.GoOn, 8},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := newStopping(t, when).Decide(tt.values)
			if got.Reason != tt.reason || got.Summary.N != tt.n {
				t.Errorf("%+v, want %s with %d repetitions", got, tt.reason, tt.n)
			}
		})
	}
}

func TestADecisionSaysHowManyRepetitionsAreLackingForAnInterval(t *testing.T) {
	s := newStopping(t, judge.StopWhen{HalfWidth: 0.05, Min: 5, Max: 12})
	values := make([]float64, 12)
	lacking := s.Decide(nil).Summary.Lacking
	for n := 1; n < lacking; n++ {
		got := s.Decide(values[:n]).Summary
		if got.Interval != nil || got.Lacking != lacking-n {
			t.Errorf("%d repetitions: %+v, want %d lacking", n, got, lacking-n)
		}
	}
	if got := s.Decide(values[:lacking]).Summary; got.Interval == nil || got.Lacking != 0 {
		t.Errorf("%d repetitions have no interval: %+v", lacking, got)
	}
}

func TestRulesToStopThatCannotWorkAreRefused(t *testing.T) {
	tests := map[string]judge.StopWhen{
		"a half width of 0":                        {HalfWidth: 0, Min: 5, Max: 20},
		"a half width that is no number":           {HalfWidth: math.NaN(), Min: 5, Max: 20},
		"a min of 0":                               {HalfWidth: 0.1, Min: 0, Max: 20},
		"a max below min":                          {HalfWidth: 0.1, Min: 10, Max: 9},
		"a max that is too small for any interval": {HalfWidth: 0.1, Min: 3, Max: 5},
		"a max beyond 10,000":                      {HalfWidth: 0.1, Min: 3, Max: 10_001},
	}
	for name, when := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := newJudge(t).Stopping(when); err == nil {
				t.Errorf("%+v is accepted", when)
			}
		})
	}
}

// Each value of a repetition is above the median, 0, or below it, with the same probability:
// all sequences of both have the same, and it is enough to look at each.
func TestAllIntervalsOfARuleTogetherCoverTheMedianWithTheirLevel(t *testing.T) {
	for _, when := range []judge.StopWhen{
		{HalfWidth: 1, Min: 1, Max: 6}, {HalfWidth: 1, Min: 5, Max: 12}, {HalfWidth: 1, Min: 9, Max: 14}, {HalfWidth: 1, Min: 14, Max: 14},
	} {
		s := newStopping(t, when)
		missed, level := 0, 0.0
		for sequence := range 1 << when.Max {
			covered, l := covers(s, sequence, when.Max)
			if !covered {
				missed++
			}
			level = max(level, l)
		}
		exact := 1 - float64(missed)/float64(int(1)<<when.Max)
		if diff := cmp.Diff(exact, level, almost); diff != "" || exact < 0.95 {
			t.Errorf("%+v: all intervals together cover the median with %v, and say %v", when, exact, level)
		}
	}
}

// covers decides after each of n repetitions, whose values are 1 or -1 by the bits of a
// sequence, and returns whether all intervals cover 0, and their level.
func covers(s *judge.Stopping, sequence, n int) (covered bool, level float64) {
	values := make([]float64, n)
	covered = true
	for i := range values {
		values[i] = float64(sequence>>i&1)*2 - 1
		if at := s.Decide(values[:i+1]).Summary.Interval; at != nil {
			covered = covered && at.Low <= 0 && 0 <= at.High
			level = at.Level
		}
	}
	return covered, level
}

func TestARuleWithOneDecisionHasTheIntervalOfASummary(t *testing.T) {
	r := seeded(6)
	for _, n := range []int{6, 7, 12, 40, 333} {
		values := normal(r, n, 10)
		want := newJudge(t).Summarise(values)
		got := newStopping(t, judge.StopWhen{HalfWidth: 1e-9, Min: n, Max: n}).Decide(values)
		if diff := cmp.Diff(want, got.Summary, almost); diff != "" {
			t.Errorf("%d values (-want +got):\n%s", n, diff)
		}
	}
}
