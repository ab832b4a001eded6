package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	old := steady()
	tests := map[string]struct {
		minChange float64
		metric    compare.Metric
		verdict   compare.Verdict
		reason    compare.Reason
		test      compare.Test
	}{
		"10 % more is worse if lower is better": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(old...), Other: runs(times(1.1, old...)...)},
			compare.Worse, "", compare.MannWhitney,
		},
		"10 % more is better if higher is": {
			0.02,
			compare.Metric{Direction: judge.Higher, Base: runs(old...), Other: runs(times(1.1, old...)...)},
			compare.Better, "", compare.MannWhitney,
		},
		"without a direction a metric can only be changed": {
			0.02,
			compare.Metric{Base: runs(old...), Other: runs(times(0.9, old...)...)},
			compare.Changed, "", compare.MannWhitney,
		},
		"a change that is clear, and too small to matter, is the same": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(old...), Other: runs(times(1.01, old...)...)},
			compare.Same, "", compare.MannWhitney,
		},
		"without a smallest change it matters": {
			0,
			compare.Metric{Direction: judge.Lower, Base: runs(old...), Other: runs(times(1.01, old...)...)},
			compare.Worse, "", compare.MannWhitney,
		},
		"values that hardly differ are the same": {
			0.02,
			compare.Metric{Base: runs(old...), Other: runs(old...)},
			compare.Same, "", compare.MannWhitney,
		},
		"without a smallest change they are unclear": {
			0,
			compare.Metric{Base: runs(old...), Other: runs(old...)},
			compare.Unclear, compare.Noise, compare.MannWhitney,
		},
		"values that are all equal are the same": {
			0,
			compare.Metric{Base: runs(7, 7, 7, 7), Other: runs(7, 7, 7, 7, 7)},
			compare.Same, "", compare.MannWhitney,
		},
		"zeros that are all equal are the same": {
			0,
			compare.Metric{Base: runs(0, 0, 0, 0), Other: runs(0, 0, 0, 0)},
			compare.Same, "", compare.MannWhitney,
		},
		"two single runs are unclear, however many samples they have": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: []compare.Point{{Value: 100, Samples: 1e6}}, Other: []compare.Point{{Value: 200, Samples: 1e6}}},
			compare.Unclear, compare.FewRuns, "",
		},
		"single runs that are equal are unclear": {
			0,
			compare.Metric{Base: runs(7), Other: runs(7)},
			compare.Unclear, compare.FewRuns, "",
		},
		"beside a history, a single run that is far off is worse": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(100), Other: runs(110), History: old},
			compare.Worse, "", compare.Prediction,
		},
		"beside a history at another level as well": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(50), Other: runs(55), History: old},
			compare.Worse, "", compare.Prediction,
		},
		"beside a history, a single run that is as usual is the same": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(100), Other: runs(100.2), History: old},
			compare.Same, "", compare.Prediction,
		},
		"a single run whose samples scatter is unclear beside a steady history": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(100), Other: []compare.Point{{Value: 110, StandardError: 6}}, History: old},
			compare.Unclear, compare.Noise, compare.Prediction,
		},
		"a standard error that is not known changes nothing": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(100), Other: []compare.Point{{Value: 110, StandardError: math.NaN()}}, History: old},
			compare.Worse, "", compare.Prediction,
		},
		"a side of 10 runs is a history": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(old...), Other: runs(110)},
			compare.Worse, "", compare.Prediction,
		},
		"a history of 9 is none": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(100), Other: runs(110), History: old[:9]},
			compare.Unclear, compare.FewRuns, "",
		},
		"one spike in a history of 20 hides no change of ten times the noise": {
			0.02,
			compare.Metric{Direction: judge.Lower, Base: runs(100), Other: runs(110), History: append(append(old, old[:9]...), 500)},
			compare.Worse, "", compare.Prediction,
		},
		"a history of equal values is no proof that a run differs": {
			0,
			compare.Metric{Base: runs(7), Other: runs(8), History: times(7, make([]float64, 10)...)},
			compare.Unclear, compare.Noise, compare.Prediction,
		},
		"a side whose values are all infinite is unclear": {
			0.02,
			compare.Metric{Base: runs(old...), Other: runs(math.Inf(1), math.NaN())},
			compare.Unclear, compare.FewRuns, "",
		},
		"negative values that rise are larger": {
			0.02,
			compare.Metric{Direction: judge.Higher, Base: runs(times(-1, old...)...), Other: runs(times(-0.5, old...)...)},
			compare.Better, "", compare.MannWhitney,
		},
		"values with ties, whose median difference is 0, differ to the side of the test": {
			0,
			compare.Metric{Direction: judge.Higher, Base: runs(mixed(20, 0)...), Other: runs(mixed(11, 9)...)},
			compare.Better, "", compare.MannWhitney,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compareOne(t, test.minChange, test.metric)
			if got.Verdict != test.verdict || got.Reason != test.reason || got.Test != test.test {
				t.Errorf("%q %q by %q, want %q %q by %q: %+v", got.Verdict, got.Reason, got.Test, test.verdict, test.reason, test.test, got)
			}
		})
	}
}

// mixed returns ones and twos.
func mixed(ones, twos int) (values []float64) {
	for range ones {
		values = append(values, 1)
	}
	for range twos {
		values = append(values, 2)
	}
	return values
}

func TestAComparisonSaysWhatItIsMadeOf(t *testing.T) {
	t.Parallel()
	m := compare.Metric{Direction: judge.Lower, Base: runs(1, 2, 3, 4, 5, math.NaN()), Other: runs(10, 20, 30, 40, 50)}
	want := compare.Comparison{
		Verdict: compare.Worse, Test: compare.MannWhitney, P: 2.0 / 252, AdjustedP: 2.0 / 252,
		Base:   compare.Side{Summary: judge.Summary{N: 5, Excluded: 1, Median: 3, Lacking: 1}, Samples: 50},
		Other:  compare.Side{Summary: judge.Summary{N: 5, Median: 30, Lacking: 1}, Samples: 50},
		Change: &judge.Estimate{Value: 9, Interval: judge.Interval{Low: 10.0/3 - 1, High: 29, Level: 1 - 8.0/252}},
		Scale:  judge.Scale{Kind: judge.Ratio},
	}
	if diff := cmp.Diff(want, compareOne(t, 0, m), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAChangeOfValuesThatAreNotPositiveIsADifference(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		base, other []float64
		scale       judge.Scale
		change      float64
	}{
		"relative to the median":                {[]float64{-1, 9, 10, 11, 12}, []float64{19, 29, 30, 31, 32}, judge.Scale{Kind: judge.OfBase, Base: 10}, 2},
		"relative to the size of a negative":    {[]float64{-10, -10, -10, -10}, []float64{-5, -5, -5, -5}, judge.Scale{Kind: judge.OfBase, Base: 10}, 0.5},
		"in the unit where the median is 0":     {[]float64{-2, -1, 1, 2}, []float64{18, 19, 21, 22}, judge.Scale{Kind: judge.Absolute}, 20},
		"in the unit of a rise from only zeros": {[]float64{0, 0, 0, 0}, []float64{3, 3, 3, 3}, judge.Scale{Kind: judge.Absolute}, 3},
	}
	for name, test := range tests {
		got := compareOne(t, 0.02, compare.Metric{Base: runs(test.base...), Other: runs(test.other...)})
		if got.Scale != test.scale || got.Change.Value != test.change || got.Verdict != compare.Changed {
			t.Errorf("%s: %v of %+v, %s: want %v of %+v", name, got.Change.Value, got.Scale, got.Verdict, test.change, test.scale)
		}
	}
}

func TestAComparisonWithoutATestSaysWhatIsLacking(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		metric               compare.Metric
		base, other, history int
	}{
		"3 runs a side of 4, or 10 of a history": {compare.Metric{Base: runs(100), Other: runs(100)}, 3, 3, 10},
		"runs of one side, or 2 of a history":    {compare.Metric{Base: runs(1, 2, 3, 4, 5), Other: runs(2), History: steady()[:8]}, 0, 3, 2},
		"the first run beside a history":         {compare.Metric{Base: runs(100), History: steady()}, 0, 1, 0},
		"all":                                    {compare.Metric{}, 4, 4, 10},
	}
	for name, test := range tests {
		got := compareOne(t, 0.02, test.metric)
		if got.LackingBase != test.base || got.LackingOther != test.other || got.LackingHistory != test.history {
			t.Errorf("%s: %d, %d and %d: want %d, %d and %d", name, got.LackingBase, got.LackingOther, got.LackingHistory, test.base, test.other, test.history)
		}
		if got.Change != nil || got.P != 1 || got.AdjustedP != 1 {
			t.Errorf("%s: %v with p %v and %v: want none, and 1", name, got.Change, got.P, got.AdjustedP)
		}
	}
}

func TestAnUnclearComparisonSaysHowManyRunsWouldShowAChange(t *testing.T) {
	t.Parallel()
	noisy := []float64{95, 106, 99, 103, 110, 92}
	tests := map[string]struct {
		minChange   float64
		metric      compare.Metric
		least, most int
		shows       float64
	}{
		"the smallest that matters": {0.05, compare.Metric{Base: runs(noisy...), Other: runs(noisy...)}, 25, 45, 0.05},
		"the observed one":          {0, compare.Metric{Base: runs(noisy...), Other: runs(times(1.03, noisy...)...)}, 70, 120, 0.03},
		"a decrease that was observed, by the increase that takes it back": {
			0, compare.Metric{Base: runs(times(1.25, noisy[:4]...)...), Other: runs(times(1, noisy[0], 130, noisy[2], noisy[3])...)}, 5, 12, 0.25,
		},
		"single runs beside a history":                     {0.002, compare.Metric{Base: runs(100), Other: runs(100), History: steady()}, 30, 60, 0.002},
		"no number where no noise is known":                {0.02, compare.Metric{Base: runs(1), Other: runs(2)}, 0, 0, 0},
		"no number without a change":                       {0, compare.Metric{Base: runs(noisy...), Other: runs(noisy...)}, 0, 0, 0},
		"no number where more than 10,000 runs are needed": {0.0001, compare.Metric{Base: runs(noisy...), Other: runs(noisy...)}, 0, 0, 0},
	}
	for name, test := range tests {
		got := compareOne(t, test.minChange, test.metric)
		if got.Verdict != compare.Unclear || got.Needed < test.least || got.Needed > test.most || math.Abs(got.Shows-test.shows) > 0.01*test.shows {
			t.Errorf("%s: %s, %d runs would show %v: want %d to %d, and %v", name, got.Verdict, got.Needed, got.Shows, test.least, test.most, test.shows)
		}
	}
}

func TestManyMetricsNeedClearerChanges(t *testing.T) {
	t.Parallel()
	small := compare.Metric{Base: runs(steady()[:5]...), Other: runs(100.3, 100.7, 100.6, 100.8, 100.9)}
	if alone := compareOne(t, 0, small); alone.Verdict != compare.Changed || alone.P != alone.AdjustedP {
		t.Fatalf("alone, %s with p %v and %v: want a change", alone.Verdict, alone.P, alone.AdjustedP)
	}
	metrics := []compare.Metric{small, {}}
	for range 9 {
		metrics = append(metrics, compare.Metric{Base: runs(steady()...), Other: runs(steady()...)})
	}
	got := newComparer(t, 0).Compare(metrics...)
	if first := got[0]; first.Verdict != compare.Unclear || first.Reason != compare.ManyMetrics || math.Abs(first.AdjustedP-10*first.P) > 1e-12 || first.Needed < 6 {
		t.Errorf("of 10 tests, %s %s with p %v and %v, and %d runs needed: want it unclear, ten times the p", first.Verdict, first.Reason, first.P, first.AdjustedP, first.Needed)
	}
	if got[1].AdjustedP != 1 || got[2].AdjustedP != 1 {
		t.Errorf("p is %v and %v: want 1", got[1].AdjustedP, got[2].AdjustedP)
	}
}

func TestAdjustedPValuesAreThoseOfBenjaminiAndHochberg(t *testing.T) {
	t.Parallel()
	metrics := make([]compare.Metric, 4)
	for i, apart := range []float64{1.004, 1.1, 1.002, 1} {
		metrics[i] = compare.Metric{Base: runs(steady()...), Other: runs(times(apart, steady()...)...)}
	}
	got := newComparer(t, 0).Compare(metrics...)
	want := []float64{got[0].P * 2, got[1].P * 4, got[2].P * 4 / 3, 1}
	for i, w := range want {
		if math.Abs(got[i].AdjustedP-w) > 1e-12 {
			t.Errorf("p %v of metric %d became %v: want %v", got[i].P, i, got[i].AdjustedP, w)
		}
	}
}

func TestSettingsOutOfRangeAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]compare.Settings{
		"confidence is 1":     {Confidence: 1},
		"min change is 1":     {MinChange: 1},
		"min change is -0.1":  {MinChange: -0.1},
		"min change is NaN":   {MinChange: math.NaN()},
		"confidence is 0.499": {Confidence: 0.499},
	} {
		if _, err := compare.New(s); err == nil || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%+v: %v: want %q", s, err, name)
		}
	}
}
