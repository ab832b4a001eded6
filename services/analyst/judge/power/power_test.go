package power_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/power"
)

func newPlanner(tb testing.TB) power.Planner {
	tb.Helper()
	p, err := power.New(power.Settings{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// seeded returns a source of random numbers that gives the same numbers in each test.
func seeded(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(20240607, stream))
}

// noises are distributions of logarithms, by their quantiles.
func noises() map[string]func(float64) float64 {
	student := distuv.StudentsT{Mu: 0, Sigma: 0.01, Nu: 3}
	return map[string]func(float64) float64{
		"normal":      distuv.Normal{Mu: 0, Sigma: 0.01}.Quantile,
		"long tails":  student.Quantile,
		"exponential": func(p float64) float64 { return -0.01 * math.Log(1-p) },
		"two modes": func(p float64) float64 {
			if p < 0.3 {
				return distuv.Normal{Mu: 0, Sigma: 0.01}.Quantile(p / 0.3)
			}
			return distuv.Normal{Mu: 0.06, Sigma: 0.01}.Quantile((p - 0.3) / 0.7)
		},
		"spikes": func(p float64) float64 {
			if p > 0.97 {
				return 0.1 + p - 0.97
			}
			return distuv.Normal{Mu: 0, Sigma: 0.01}.Quantile(p / 0.97)
		},
	}
}

// exactly returns a history that has the form of a distribution.
func exactly(quantile func(float64) float64) []float64 {
	values := make([]float64, 1000)
	for i := range values {
		values[i] = 100 * math.Exp(quantile((float64(i)+0.5)/1000))
	}
	return values
}

// runs returns the values of n runs.
func runs(r *rand.Rand, quantile func(float64) float64, n int, factor float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = 100 * factor * math.Exp(quantile(r.Float64()))
	}
	return values
}

// found returns the share of simulated comparisons that find a change.
func found(t *testing.T, quantile func(float64) float64, n int, change float64) float64 {
	t.Helper()
	const comparisons = 2000
	j, err := judge.New(judge.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	r, count := seeded(40), 0
	for range comparisons {
		if j.Compare("", runs(r, quantile, n, 1), runs(r, quantile, n, 1+change)).Verdict == judge.Different {
			count++
		}
	}
	return float64(count) / comparisons
}

func TestRunsShowTheSmallestChangeIn80PercentOfComparisons(t *testing.T) {
	t.Parallel()
	p := newPlanner(t)
	for name, quantile := range noises() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, d := range p.Smallest(p.History(exactly(quantile)), 4, 5, 6, 7, 8, 10, 20) {
				share := found(t, quantile, d.Runs, d.Change.Value)
				t.Logf("%d runs a side show %.4f in %.4f", d.Runs, d.Change.Value, share)
				if math.Abs(share-0.8) > 0.03 {
					t.Errorf("%d runs a side show %.4f in %.3f of comparisons: want 0.77 to 0.83", d.Runs, d.Change.Value, share)
				}
			}
		})
	}
}

func TestTheNumberOfRunsForAChangeIsTheLeastThatShowsIt(t *testing.T) {
	t.Parallel()
	p := newPlanner(t)
	h := p.History(exactly(noises()["normal"]))
	for change, want := range map[float64]int{0.03: 4, 0.02: 6, 0.01: 19, 0.005: 68, 0.001: 1650} {
		n := p.Needed(h, change)
		if math.Abs(float64(n.Runs-want)) > 0.02*float64(want) || n != p.Needed(h, -change) {
			t.Errorf("%d runs show %v: want %d", n.Runs, change, want)
		}
		if n.Low > n.Runs || n.High < n.Runs {
			t.Errorf("%+v: the interval does not contain the number", n)
		}
		around := p.Smallest(h, n.Runs, n.Runs-1)
		if around[0].Change.Value > change || around[1].Change != nil && around[1].Change.Value < change {
			t.Errorf("%d runs show %v, one fewer %+v: want %v between", n.Runs, around[0].Change.Value, around[1].Change, change)
		}
	}
	if n := p.Needed(h, 0.01); n.Runs < 17 || math.Abs(found(t, noises()["normal"], n.Runs, 0.01)-0.8) > 0.03 {
		t.Errorf("%d runs show 1 %% in %.3f of comparisons", n.Runs, found(t, noises()["normal"], n.Runs, 0.01))
	}
}

func TestTheIntervalOfTheSmallestChangeCoversIt(t *testing.T) {
	t.Parallel()
	p := newPlanner(t)
	for name, quantile := range noises() {
		if name == "two modes" || name == "spikes" {
			continue // 30 values do not say how often the other mode comes
		}
		truth := p.Smallest(p.History(exactly(quantile)), 10)[0].Change.Value
		r, covered, mean := seeded(42), 0, 0.0
		const histories = 1000
		for range histories {
			c := p.Smallest(p.History(runs(r, quantile, 30, 1)), 10)[0].Change
			if c.Interval.Low <= truth && truth <= c.Interval.High {
				covered++
			}
			mean += c.Value / histories
		}
		t.Logf("%s: covered by %d of %d, %.4f instead of %.4f", name, covered, histories, mean, truth)
		if covered < 0.88*histories || math.Abs(mean/truth-1) > 0.06 {
			t.Errorf("%s: covered by %d of %d, %.4f instead of %.4f", name, covered, histories, mean, truth)
		}
	}
}

func TestRoundedValuesShowTheirSmallestChangeAtLeastAsOften(t *testing.T) {
	t.Parallel()
	p, r := newPlanner(t), seeded(43)
	j, err := judge.New(judge.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	whole := func(n int, mean float64) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Round(mean + 1.5*r.NormFloat64())
		}
		return values
	}
	for _, d := range p.Smallest(p.History(whole(2000, 100)), 5, 10, 20) {
		count := 0
		for range 2000 {
			base := 100 + r.Float64()
			if j.Compare("", whole(d.Runs, base), whole(d.Runs, base*(1+d.Change.Value))).Verdict == judge.Different {
				count++
			}
		}
		if share := float64(count) / 2000; share < 0.77 || share > 0.87 {
			t.Errorf("%d runs a side show %.4f in %.3f of comparisons: want 0.77 to 0.87", d.Runs, d.Change.Value, share)
		}
	}
}

func TestWhatCannotBeShownHasNoChange(t *testing.T) {
	t.Parallel()
	p, values := newPlanner(t), exactly(noises()["normal"])
	for name, all := range map[string][]power.Detectable{
		"3 runs a side":   p.Smallest(p.History(values), 3, 1, 0, -1, power.MaxRuns+1),
		"a history of 9":  p.Smallest(p.History(values[:9]), 10),
		"no history":      p.Smallest(p.History(nil), 10),
		"infinite values": p.Smallest(p.History([]float64{math.Inf(1), math.NaN()}), 10),
	} {
		for _, d := range all {
			if d.Change != nil {
				t.Errorf("%s: %d runs show %v", name, d.Runs, d.Change)
			}
		}
	}
	if h := p.History(values[:7]); h.Lacking != 3 || p.Needed(h, 0.1) != (power.Needed{}) || p.Runs(judge.Noise{}, 1) != 0 {
		t.Errorf("%+v: want 3 values more, and no number of runs", h)
	}
	h := p.History(values)
	for _, change := range []float64{0, math.NaN(), 1e-9} {
		if n := p.Needed(h, change); n != (power.Needed{}) {
			t.Errorf("%+v runs show %v: want none", n, change)
		}
	}
}

func TestEqualValuesShowAnyChangeFromTheFirstRunsOnThatAreCompared(t *testing.T) {
	t.Parallel()
	p := newPlanner(t)
	h := p.History(make([]float64, 12))
	d := p.Smallest(h, 3, 4)
	if d[0].Change != nil || d[1].Change.Value != 0 || p.Needed(h, 0.001).Runs != 4 || h.Scale.Kind != judge.Absolute {
		t.Errorf("%+v with %+v", d, p.Needed(h, 0.001))
	}
}

func TestAutocorrelationWidensTheInterval(t *testing.T) {
	t.Parallel()
	p, r := newPlanner(t), seeded(44)
	alone, at := make([]float64, 60), 0.0
	for i := range alone {
		at = 0.8*at + r.NormFloat64()
		alone[i] = 100 + at
	}
	shuffled := append([]float64{}, alone...)
	r.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	a, b := p.History(alone), p.History(shuffled)
	wide, narrow := p.Smallest(a, 10)[0].Change, p.Smallest(b, 10)[0].Change
	if a.Noise.Autocorrelation < 0.5 || b.Noise.Autocorrelation != 0 || wide.Value != narrow.Value || wide.Interval.High <= narrow.Interval.High {
		t.Errorf("%+v with %v, %+v with %v", wide, a.Noise.Autocorrelation, narrow, b.Noise.Autocorrelation)
	}
}

func TestSettingsOutOfRangeAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]power.Settings{
		"confidence is 1": {Confidence: 1},
		"power is 1":      {Power: 1},
		"power is NaN":    {Power: math.NaN()},
		"power is 0.01":   {Power: 0.01},
	} {
		if _, err := power.New(s); err == nil || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%+v: %v: want %q", s, err, name)
		}
	}
}
