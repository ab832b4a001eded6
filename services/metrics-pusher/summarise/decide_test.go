package summarise

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// near compares numbers that were computed in another order.
func near() cmp.Option {
	return cmpopts.AcyclicTransformer("number", func(f store.Float) string { return fmt.Sprintf("%.12g", float64(f)) })
}

func TestTheNumbersOfASummary(t *testing.T) {
	nan, inf := store.Float(math.NaN()), store.Float(math.Inf(1))
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, tt := range map[string]struct {
		values []float64
		want   store.Summary
	}{
		"of nothing there is nothing to say": {nil, store.Summary{Min: nan, Max: nan, Median: nan, P90: nan, P95: nan, P99: nan, Mean: nan, SD: nan, First: nan, Last: nan}},
		"one value has no deviation and no interval": {
			[]float64{7}, store.Summary{N: 1, Min: 7, Max: 7, Median: 7, P90: 7, P95: 7, P99: 7, Mean: 7, SD: nan, First: nan, Last: nan},
		},
		"five values are too few for an interval": {
			[]float64{5, 1, 4, 2, 3},
			store.Summary{N: 5, Min: 1, Max: 5, Median: 3, P90: 4.6, P95: 4.8, P99: 4.96, Mean: 3, SD: store.Float(math.Sqrt(2.5)), First: nan, Last: nan},
		},
		"six values have one, of all of them": {
			[]float64{1, 2, 3, 4, 5, 6},
			store.Summary{
				N: 6, Min: 1, Max: 6, Median: 3.5, P90: 5.5, P95: 5.75, P99: 5.95, Mean: 3.5, SD: store.Float(math.Sqrt(3.5)), First: nan, Last: nan,
				Interval: &store.Interval{Low: 1, High: 6, Level: 0.96875},
			},
		},
		"of a hundred it is from the 40th to the 61st": {
			hundred,
			store.Summary{
				N: 100, Min: 1, Max: 100, Median: 50.5, P90: 90.1, P95: 95.05, P99: 99.01, Mean: 50.5, SD: 29.0114919758820, First: nan, Last: nan,
				Interval: &store.Interval{Low: 40, High: 61, Level: 0.9647997997822956},
			},
		},
		"an infinite value makes the mean infinite, not the median": {
			[]float64{1, math.Inf(1), 3}, store.Summary{N: 3, Min: 1, Max: inf, Median: 3, P90: inf, P95: inf, P99: inf, Mean: inf, SD: nan, First: nan, Last: nan},
		},
		"a large mean does not hide a small deviation": {
			[]float64{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16},
			store.Summary{N: 4, Min: 1e9 + 4, Max: 1e9 + 16, Median: 1e9 + 10, P90: 1e9 + 15.1, P95: 1e9 + 15.55, P99: 1e9 + 15.91, Mean: 1e9 + 10, SD: store.Float(math.Sqrt(30)), First: nan, Last: nan},
		},
		"a sum that no number holds has a mean": {
			[]float64{1.5e308, 1.5e308}, store.Summary{N: 2, Min: 1.5e308, Max: 1.5e308, Median: 1.5e308, P90: 1.5e308, P95: 1.5e308, P99: 1.5e308, Mean: 1.5e308, SD: 0, First: nan, Last: nan},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, summary(slices.Clone(tt.values)), near(), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRanks compares the ranks with a table: Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, table A.1 (95
// %, median).
func TestRanks(t *testing.T) {
	for n, want := range map[int][2]int{6: {1, 6}, 7: {1, 7}, 8: {1, 8}, 9: {2, 8}, 10: {2, 9}, 12: {3, 10}, 15: {4, 12}, 17: {5, 13}, 20: {6, 15}, 25: {8, 18}, 30: {10, 21}, 40: {14, 27}, 50: {18, 33}, 60: {22, 39}, 70: {27, 44}} {
		low, high, covered := ranks(n)
		if got := [2]int{low, high}; got != want || covered < 0.95 {
			t.Errorf("n = %d: ranks %v with %g, want %v", n, got, covered, want)
		}
	}
	for _, n := range []int{1, 2, 3, 4, 5} {
		if _, _, covered := ranks(n); covered >= 0.95 {
			t.Errorf("n = %d: %g, want too little", n, covered)
		}
	}
	// For many values the ranks are close to those of the normal distribution: n/2 -+ 1.96·sqrt(n)/2.
	const many = 10_000_000
	low, high, covered := ranks(many)
	if want := many/2 - 0.979982*math.Sqrt(many); math.Abs(float64(low)-want) > 3 || high != many+1-low || covered < 0.95 || covered > 0.9502 {
		t.Errorf("n = %d: ranks %d and %d with %g, want about %g", many, low, high, covered, want)
	}
}

func TestAnySummaryIsInOrderAndSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64(), 1, 200).Draw(t, "values")
		s := summary(slices.Clone(values))
		in := []store.Float{s.Min, s.Median, s.P90, s.P95, s.P99, s.Max}
		if !slices.IsSorted(in) || !math.IsInf(float64(s.Mean), 0) && (s.Mean < s.Min || s.Mean > s.Max) && !closeTo(s.Mean, s.Min) && !closeTo(s.Mean, s.Max) {
			t.Fatalf("%v, mean %v of %v", in, s.Mean, values)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back store.Summary
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, back, cmp.Comparer(func(a, b store.Float) bool { return a == b || a != a && b != b })); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func closeTo(a, b store.Float) bool {
	return math.Abs(float64(a-b)) <= 1e-9*math.Max(math.Abs(float64(a)), math.Abs(float64(b)))
}

// emitted returns samples of a metric, each with the label i and the value of its number.
func emitted(metric string, n int) []store.Sample {
	all := make([]store.Sample, n)
	for i := range all {
		all[i].Name, all[i].Labels = metric, map[string]string{"i": fmt.Sprint(i)}
		all[i].Set(float64(i))
	}
	return all
}

func TestACountOfAPartOfTheSamplesIsNotKnown(t *testing.T) {
	const part = "not all samples of images are summarised: emit fewer series or samples"
	for name, tt := range map[string]struct {
		samples []store.Sample
		full    bool // no further number is held
		want    string
	}{
		"all samples":                         {emitted("images", 3), false, "3"},
		"all, and a part of another metric":   {append(emitted("images", 3), emitted("loss", maxSeries)...), false, "3"},
		"more series than are summarised":     {emitted("images", maxSeries+1), false, part},
		"more samples than are summarised":    {append(emitted("images", 3), emitted("images", 3)...), true, part},
		"no samples, as there are too many":   {append(emitted("loss", 3), emitted("images", 3)...), true, part},
		"series after all that are":           {append(emitted("loss", maxSeries), emitted("images", 1)...), false, "no series of images is among the first ones of the run, which are summarised: emit fewer series"},
		"a metric that the run does not emit": {emitted("loss", 3), false, "the run has no values of images"},
	} {
		t.Run(name, func(t *testing.T) {
			all := newAccumulator(0)
			all.add(tt.samples[:3])
			if tt.full {
				all.valueCount = maxSamples
			}
			all.add(tt.samples[3:])
			n, reason := all.count("images", descriptors.SumOfSamples)
			got := reason
			if reason == "" {
				got = fmt.Sprint(n)
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
