package judge_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// almost compares numbers up to rounding errors.
var almost = cmp.Options{cmpopts.EquateApprox(1e-12, 1e-12), cmpopts.EquateNaNs()}

func TestSummarise(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string]struct {
		values []float64
		want   judge.Summary
	}{
		"no repetition has no median, and 6 are lacking for an interval": {
			nil, judge.Summary{Median: nan, Lacking: 6},
		},
		"one repetition is its own median": {
			[]float64{3}, judge.Summary{N: 1, Median: 3, Lacking: 5},
		},
		"the median of an even number is the mean of the middle two": {
			[]float64{4, 1, 3, 2}, judge.Summary{N: 4, Median: 2.5, Lacking: 2},
		},
		"5 repetitions are too few for an interval": {
			[]float64{5, 1, 4, 2, 3}, judge.Summary{N: 5, Median: 3, Lacking: 1},
		},
		"6 repetitions have the interval of all": {
			[]float64{6, 5, 1, 4, 2, 3},
			judge.Summary{N: 6, Median: 3.5, Interval: &judge.Interval{Low: 1, High: 6, Level: 1 - 2.0/64}},
		},
		"9 repetitions have the interval of the 2nd and the 8th": {
			[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1},
			judge.Summary{N: 9, Median: 5, Interval: &judge.Interval{Low: 2, High: 8, Level: 1 - 20.0/512}},
		},
		"NaN and infinities are excluded and counted": {
			[]float64{nan, 2, inf, 1, -inf, 3}, judge.Summary{N: 3, Excluded: 3, Median: 2, Lacking: 3},
		},
		"nothing but NaN is no repetition": {
			[]float64{nan, nan}, judge.Summary{Excluded: 2, Median: nan, Lacking: 6},
		},
		"equal values have an interval without width": {
			[]float64{7, 7, 7, 7, 7, 7}, judge.Summary{N: 6, Median: 7, Interval: &judge.Interval{Low: 7, High: 7, Level: 1 - 2.0/64}},
		},
		"the mean of the two largest numbers does not overflow": {
			[]float64{math.MaxFloat64, math.MaxFloat64 / 2}, judge.Summary{N: 2, Median: math.MaxFloat64 * 0.75, Lacking: 4},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tt.values)
			if diff := cmp.Diff(tt.want, newJudge(t).Summarise(tt.values), almost); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tt.values, almost); diff != "" {
				t.Errorf("the values were changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAHigherConfidenceTakesMoreRepetitions(t *testing.T) {
	for confidence, fewest := range map[float64]int{0.5: 2, 0.75: 3, 0.9: 5, 0.95: 6, 0.99: 8, 0.999: 11} {
		j := withConfidence(t, confidence)
		if got := j.Summarise(nil).Lacking; got != fewest {
			t.Errorf("confidence %v: %d repetitions are lacking, want %d", confidence, got, fewest)
		}
		if s := j.Summarise(make([]float64, fewest)); s.Interval == nil || s.Lacking != 0 {
			t.Errorf("confidence %v: %d repetitions have no interval: %+v", confidence, fewest, s)
		}
	}
}

// exactRank returns the rank of the lower end of the interval for n values, and its level,
// in rational numbers.
func exactRank(n int, alpha *big.Rat) (rank int, level float64) {
	all := new(big.Int).Lsh(big.NewInt(1), uint(n)) //nolint:gosec // n is small
	outside, covered := new(big.Int), 0.0
	for r := 1; 2*r <= n; r++ {
		term := new(big.Int).Binomial(int64(n), int64(r-1))
		outside.Add(outside, term.Lsh(term, 1))
		missed := new(big.Rat).SetFrac(outside, all)
		if missed.Cmp(alpha) > 0 {
			break
		}
		rank = r
		covered, _ = new(big.Rat).Sub(big.NewRat(1, 1), missed).Float64()
	}
	return rank, covered
}

func TestTheIntervalOfTheMedianIsTheNarrowestSymmetricOneWithTheConfidence(t *testing.T) {
	j := newJudge(t)
	for n := 1; n <= 500; n += 1 + n/20 {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i + 1) // its rank
		}
		rank, level := exactRank(n, big.NewRat(5, 100))
		s := j.Summarise(values)
		if rank == 0 {
			if s.Interval != nil || s.Lacking != 6-n {
				t.Errorf("%d values: %+v, want none, and %d lacking", n, s, 6-n)
			}
			continue
		}
		want := &judge.Interval{Low: float64(rank), High: float64(n + 1 - rank), Level: level}
		if diff := cmp.Diff(want, s.Interval, almost); diff != "" {
			t.Errorf("%d values (-want +got):\n%s", n, diff)
		}
	}
}

func TestSettingsOutOfRangeAreRefused(t *testing.T) {
	for _, confidence := range []float64{-1, 0.49, 1, 2, math.NaN(), math.Inf(1)} {
		if _, err := judge.New(judge.Settings{Confidence: confidence}); err == nil {
			t.Errorf("a confidence of %v is accepted", confidence)
		}
	}
}
