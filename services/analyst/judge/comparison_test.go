package judge_test

import (
	order "cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

func TestCompare(t *testing.T) {
	low, high := []float64{1, 2, 3, 4, 5}, []float64{11, 12, 13, 14, 15}
	nan := math.NaN()
	apart, percents := estimate(10, 7, 13), estimate(1000/3.0, 700/3.0, 1300/3.0)
	tests := map[string]struct {
		direction   judge.Direction
		base, other []float64
		want        judge.Comparison
	}{
		"larger values are better if higher is": {
			judge.Higher, low, high,
			judge.Comparison{Verdict: judge.Better, P: 2.0 / 252, Shift: apart, Percent: percents, Base: 5, Other: 5},
		},
		"larger values are worse if lower is better": {
			judge.Lower, low, high,
			judge.Comparison{Verdict: judge.Worse, P: 2.0 / 252, Shift: apart, Percent: percents, Base: 5, Other: 5},
		},
		"without a direction values are different": {
			"", low, high,
			judge.Comparison{Verdict: judge.Different, P: 2.0 / 252, Shift: apart, Percent: percents, Base: 5, Other: 5},
		},
		"the same values are a tie": {
			judge.Higher, low, low,
			judge.Comparison{Verdict: judge.Tie, P: 1, Shift: estimate(0, -3, 3), Percent: estimate(0, -100, 100), Base: 5, Other: 5},
		},
		"equal values are a tie without any width": {
			judge.Lower,
			[]float64{7, 7, 7, 7},
			[]float64{7, 7, 7, 7, 7},
			judge.Comparison{Verdict: judge.Tie, P: 1, Shift: estimate(0, 0, 0), Percent: estimate(0, 0, 0), Base: 4, Other: 5},
		},
		"a base whose median is 0 has no percents": {
			judge.Higher,
			[]float64{-2, -1, 1, 2},
			[]float64{18, 19, 21, 22},
			judge.Comparison{Verdict: judge.Better, P: 2.0 / 70, Shift: estimate(20, 16, 24), Base: 4, Other: 4},
		},
		"percents of a negative base have the sign of the shift": {
			judge.Higher,
			[]float64{-10, -10, -10, -10},
			[]float64{-5, -5, -5, -5},
			judge.Comparison{Verdict: judge.Better, P: 2.0 / 70, Shift: estimate(5, 5, 5), Percent: estimate(50, 50, 50), Base: 4, Other: 4},
		},
		"3 repetitions are insufficient, and the comparison says how many are lacking": {
			judge.Higher, low, high[:3],
			judge.Comparison{Verdict: judge.Insufficient, P: 1, Base: 5, Other: 3, LackingOther: 1},
		},
		"values that are NaN are no repetitions": {
			judge.Higher,
			[]float64{1, nan, 2, nan},
			nil,
			judge.Comparison{Verdict: judge.Insufficient, P: 1, Base: 2, LackingBase: 2, LackingOther: 4},
		},
		"a shift that exceeds float64 is the largest number": {
			judge.Lower, slices.Repeat([]float64{-math.MaxFloat64}, 4), slices.Repeat([]float64{math.MaxFloat64}, 4),
			judge.Comparison{
				Verdict: judge.Worse, P: 2.0 / 70, Base: 4, Other: 4,
				Shift:   estimate(math.MaxFloat64, math.MaxFloat64, math.MaxFloat64),
				Percent: estimate(100, 100, 100),
			},
		},
	}
	ignoreLevel := cmpopts.IgnoreFields(judge.Interval{}, "Level")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := newJudge(t).Compare(tt.direction, tt.base, tt.other)
			if diff := cmp.Diff(tt.want, got, almost, ignoreLevel); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func estimate(value, low, high float64) *judge.Estimate {
	return &judge.Estimate{Value: value, Interval: judge.Interval{Low: low, High: high}}
}

func TestALowerLevelTakesMoreRepetitions(t *testing.T) {
	for confidence, fewest := range map[float64]int{0.5: 4, 0.95: 4, 0.99: 5, 0.999: 7} {
		c := withConfidence(t, confidence).Compare(judge.Higher, nil, nil)
		if c.LackingBase != fewest || c.LackingOther != fewest {
			t.Errorf("confidence %v: %d and %d are lacking, want %d", confidence, c.LackingBase, c.LackingOther, fewest)
		}
	}
}

// enumerated returns the two-sided p-value by looking at each arrangement of the values.
func enumerated(x, y []float64) float64 {
	all := slices.Concat(x, y)
	mean, observed := len(x)*len(y), twiceU([2][]float64{x, y})
	if observed == mean {
		return 1
	}
	asFar, arrangements := 0, 0
	for mask := range uint(1) << len(all) {
		if bits.OnesCount(mask) != len(y) {
			continue
		}
		u := twiceU(split(all, mask))
		arrangements++
		if observed < mean && u <= observed || observed > mean && u >= observed {
			asFar++
		}
	}
	return min(1, 2*float64(asFar)/float64(arrangements))
}

// split returns the values whose bit in mask is 0, and those whose bit is 1.
func split(all []float64, mask uint) (sides [2][]float64) {
	for i, v := range all {
		sides[mask>>i&1] = append(sides[mask>>i&1], v)
	}
	return sides
}

// twiceU returns twice the number of pairs in which the second side has the larger value.
func twiceU(sides [2][]float64) (u int) {
	for _, a := range sides[0] {
		for _, b := range sides[1] {
			u += 1 + order.Compare(b, a)
		}
	}
	return u
}

func TestPIsTheShareOfAllArrangementsThatDifferAsMuch(t *testing.T) {
	r, j := seeded(1), newJudge(t)
	for i := range 60 {
		units := []float64{0, 0.5, 1, 3}[i%4] // 0: no ties
		x, y := rounded(normal(r, 4+i%3, 0), units), rounded(normal(r, 4+i%2, float64(i%3)), units)
		want := enumerated(x, y)
		if got := j.Compare(judge.Higher, x, y).P; math.Abs(got-want) > 1e-12 {
			t.Errorf("p of %v and %v is %v, want %v", x, y, got, want)
		}
	}
}

// The other implementation doubles one tail, which is not that of the other side if there
// are ties and the sides have different sizes: it is asked for equal sizes, or no ties.
func TestPIsThatOfAnotherImplementation(t *testing.T) {
	j := newJudge(t)
	tests := map[string]struct {
		n, m int
		unit float64
	}{
		"exact, without ties":                        {25, 18, 0},
		"exact, with ties":                           {25, 25, 0.5},
		"approximate, without ties":                  {120, 90, 0},
		"approximate, with ties":                     {130, 101, 0.25},
		"approximate, where few values occur":        {150, 150, 2},
		"exact, a side has many more than the other": {40, 4, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := seeded(2)
			for shift := 0.0; shift < 1; shift += 0.125 {
				x, y := rounded(normal(r, tt.n, 0), tt.unit), rounded(normal(r, tt.m, shift), tt.unit)
				other, err := stats.MannWhitneyUTest(x, y, stats.LocationDiffers)
				if err != nil {
					t.Fatal(err)
				}
				if got := j.Compare(judge.Higher, x, y).P; math.Abs(got-other.P) > 1e-9 {
					t.Errorf("shift %v: p is %v, the other implementation has %v", shift, got, other.P)
				}
			}
		})
	}
}

func TestTheApproximationIsCloseToTheExactDistribution(t *testing.T) {
	r, j := seeded(3), newJudge(t)
	// 26 and 28 values have less than 2^53 arrangements, 60 values on each side more.
	exact := j.Compare(judge.Higher, ranks(0, 26), ranks(6.5, 28))
	if math.Abs(exact.P-normalP(26, 28, ranks(0, 26), ranks(6.5, 28))) > 0.005 {
		t.Errorf("p is %v, and %v by the normal distribution", exact.P, normalP(26, 28, ranks(0, 26), ranks(6.5, 28)))
	}
	x, y := normal(r, 60, 0), normal(r, 60, 0.4)
	if got, want := j.Compare(judge.Higher, x, y).P, normalP(60, 60, x, y); math.Abs(got-want) > 1e-9 {
		t.Errorf("p is %v, and %v by the normal distribution", got, want)
	}
}

func ranks(from float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = from + float64(i)*0.999
	}
	return values
}

// normalP returns the p-value of values without ties by the normal distribution.
func normalP(n, m float64, x, y []float64) float64 {
	u := 0.0
	for _, a := range x {
		for _, b := range y {
			if b > a {
				u++
			}
		}
	}
	z := (math.Abs(u-n*m/2) - 0.5) / math.Sqrt(n*m*(n+m+1)/12)
	return math.Erfc(z / math.Sqrt2)
}

func TestTheShiftIsTheMedianOfAllDifferencesWithItsTabulatedInterval(t *testing.T) {
	x := []float64{0.73, 0.80, 0.83, 1.04, 1.38, 1.45, 1.46, 1.64, 1.89, 1.91} // permeability at term
	y := []float64{0.74, 0.88, 0.90, 1.15, 1.21}                               // and earlier: Hollander and Wolfe, 1973, table 4.1
	c := newJudge(t).Compare("", x, y)
	// R: wilcox.test(y, x, conf.int = TRUE)
	if math.Abs(c.P-0.2544) > 5e-5 || c.Verdict != judge.Tie {
		t.Errorf("p is %v and the verdict %s, want 0.2544 and a tie", c.P, c.Verdict)
	}
	want := &judge.Estimate{Value: -0.305, Interval: judge.Interval{Low: -0.76, High: 0.15, Level: 1 - 2*stats.UDist{N1: 10, N2: 5}.CDF(8)}}
	if diff := cmp.Diff(want, c.Shift, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheIntervalOfTheShiftContains0IfTheVerdictIsATie(t *testing.T) {
	r, j := seeded(4), newJudge(t)
	verdicts := map[judge.Verdict]int{}
	for i := range 1500 {
		unit := []float64{0, 0.25, 1, 2}[i/4%4]
		x, y := rounded(normal(r, 4+i%8, 0), unit), rounded(normal(r, 4+i%5, float64(i%4)), unit)
		c := j.Compare(judge.Higher, x, y)
		verdicts[c.Verdict]++
		at := c.Shift.Interval
		if err := coherent(c.Verdict, at); err != nil {
			t.Errorf("%v and %v: %v", x, y, err)
		}
		if at.Low > c.Shift.Value || c.Shift.Value > at.High {
			t.Errorf("%v and %v: %+v does not contain the estimate", x, y, c.Shift)
		}
	}
	if verdicts[judge.Tie] < 300 || verdicts[judge.Better] < 300 {
		t.Errorf("the verdicts are %v", verdicts)
	}
}

// coherent returns an error if an interval of a shift says something else than a verdict
// for Higher.
func coherent(v judge.Verdict, at judge.Interval) error {
	switch v {
	case judge.Tie:
		if at.Low > 0 || at.High < 0 {
			return fmt.Errorf("the verdict is a tie, and 0 is not in %+v", at)
		}
	case judge.Better:
		if at.Low < 0 {
			return fmt.Errorf("the verdict is better, and a shift below 0 is in %+v", at)
		}
	case judge.Worse:
		if at.High > 0 {
			return fmt.Errorf("the verdict is worse, and a shift above 0 is in %+v", at)
		}
	case judge.Different, judge.Insufficient:
		return fmt.Errorf("the verdict is %s", v)
	}
	return nil
}
