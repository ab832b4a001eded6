package judge_test

import (
	"math"
	"slices"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

func TestTheScaleOfNormalNoiseIsItsStandardDeviation(t *testing.T) {
	r, j, sum := seeded(60), newJudge(t), 0.0
	for range sets(t) {
		n := j.Noise(normal(r, 30, 100))
		if n.N != 30 || n.Freedom > 29 || n.Freedom < 5 {
			t.Fatalf("%d values with %v degrees of freedom", n.N, n.Freedom)
		}
		sum += n.Scale / float64(sets(t))
	}
	if sum < 1 || sum > 1.1 {
		t.Errorf("the scale is %.3f: want 1 to 1.1", sum)
	}
}

func TestNoise(t *testing.T) {
	steady := []float64{9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9}
	spike := append(slices.Clone(steady), 1e6)
	tests := map[string]struct {
		levels      [][]float64
		n           int
		least, most float64
	}{
		"no values":                       {nil, 0, 0, 0},
		"a value alone has no deviation":  {[][]float64{{1}, {2}, {math.NaN(), 3}}, 0, 0, 0},
		"equal values":                    {[][]float64{{7, 7, 7}}, 3, 0, 0},
		"two values":                      {[][]float64{{1, 3}}, 2, math.Sqrt2, math.Sqrt2 * 1.001},
		"levels do not matter":            {[][]float64{{1, 3}, {1001, 1003}}, 4, math.Sqrt2, math.Sqrt2 * 1.001},
		"a spike among 20 counts little":  {[][]float64{spike}, 20, 2, 8},
		"two spikes among 20 are a mode":  {[][]float64{append(spike[1:], 1e6)}, 20, 1e5, 1e6},
		"largest numbers do not overflow": {[][]float64{{-math.MaxFloat64, math.MaxFloat64, 0}}, 3, 1e307, math.MaxFloat64},
	}
	for name, test := range tests {
		n := newJudge(t).Noise(test.levels...)
		if n.N != test.n || len(n.Deviations) != test.n || n.Scale < test.least || n.Scale > test.most || !slices.IsSorted(n.Deviations) {
			t.Errorf("%s: %+v: want %d values with a scale of %v to %v", name, n, test.n, test.least, test.most)
		}
	}
}

func TestAutocorrelationIsFoundAndCostsFreedom(t *testing.T) {
	r, j, chance, mean := seeded(61), newJudge(t), 0, 0.0
	for range sets(t) {
		if j.Noise(normal(r, 30, 0)).Autocorrelation > 0 {
			chance++
		}
		values, at := make([]float64, 100), 0.0
		for i := range values {
			at = 0.6*at + r.NormFloat64()
			values[i] = at
		}
		n := j.Noise(values)
		mean += n.Autocorrelation / float64(sets(t))
		if n.Autocorrelation > 0.3 && n.Freedom > 90 {
			t.Errorf("%+v: want fewer degrees of freedom", n)
		}
	}
	share(t, "independent values with an autocorrelation", chance, sets(t), 0, 0.06)
	if mean < 0.5 || mean > 0.65 {
		t.Errorf("an autocorrelation of 0.6 seems to be %.3f", mean)
	}
}

func TestMisorderedPairsAreThoseOfTheTest(t *testing.T) {
	for n, want := range map[int]int{0: -1, 3: -1, 4: 0, 5: 2, 6: 5, 8: 13, 10: 23, 20: 127} { // tables of Mann and Whitney
		if got := newJudge(t).Misordered(n, n); got != want {
			t.Errorf("%d of %d runs a side: want %d", got, n, want)
		}
	}
	if got := newJudge(t).Misordered(1000, 1000); got < 470_000 || got > 478_000 {
		t.Errorf("%d of 1000 runs a side", got)
	}
}

func TestScaleOf(t *testing.T) {
	nan := math.NaN()
	tests := map[string]struct {
		base  float64
		sides [][]float64
		want  judge.Scale
	}{
		"positive values": {1, [][]float64{{1, 2}, {3, nan, math.Inf(-1)}}, judge.Scale{Kind: judge.Ratio}},
		"a zero":          {1, [][]float64{{1, 2}, {0}}, judge.Scale{Kind: judge.OfBase, Base: 1}},
		"a negative base": {-2, [][]float64{{-2}}, judge.Scale{Kind: judge.OfBase, Base: 2}},
		"a base of 0":     {0, [][]float64{{-2, 0, 2}}, judge.Scale{Kind: judge.Absolute}},
		"no base":         {nan, [][]float64{{}, {0}}, judge.Scale{Kind: judge.Absolute}},
	}
	for name, test := range tests {
		got := judge.ScaleOf(test.base, test.sides...)
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		for _, change := range []float64{-0.5, 0, 0.02, 3} {
			if back := got.Change(got.Difference(change)); math.Abs(back-change) > 1e-12 {
				t.Errorf("%s: %v became %v", name, change, back)
			}
		}
	}
	if got := (judge.Scale{Kind: judge.Ratio}).Change(1e6); got != math.MaxFloat64 {
		t.Errorf("a ratio of e^1000000 is %v", got)
	}
}
