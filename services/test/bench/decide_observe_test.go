package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

const few = 1000

// drawing returns random numbers that are the same in each run of a test.
func drawing() func(int) int {
	return rand.New(rand.NewPCG(1, 2)).IntN //nolint:gosec // statistics
}

func TestACaseIsJudgedByTheWholeInterval(t *testing.T) {
	t.Parallel()
	usual := limits{within: 0.01, touches: 0.005}
	for name, c := range map[string]struct {
		comparison
		want string
	}{
		"around one and narrow":                     {comparison{Low: 0.997, High: 1.004}, passed},
		"within one percent, touching half of one":  {comparison{Low: 1.004, High: 1.009}, passed},
		"within one percent, beside half of one":    {comparison{Low: 1.006, High: 1.009}, notShown},
		"around one and wide":                       {comparison{Low: 0.98, High: 1.02}, notShown},
		"reaching out":                              {comparison{Low: 1.002, High: 1.011}, notShown},
		"wholly slower":                             {comparison{Low: 1.011, High: 1.02}, failed},
		"wholly faster":                             {comparison{Low: 0.95, High: 0.98}, failed},
		"as fast, but surely spread out":            {comparison{Low: 0.999, High: 1.001, SpreadLow: 1.2, Spread: 1.5}, failed},
		"as fast, and perhaps more spread than one": {comparison{Low: 0.999, High: 1.001, SpreadLow: 1.05, Spread: 1.5}, passed},
	} {
		if got, why := judge(c.comparison, usual); got != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got, why, c.want)
		}
	}
}

func TestIntervalsCoverTheTruthAsOftenAsTheySay(t *testing.T) {
	t.Parallel()
	const trials, pairs = 150, 30
	covered := 0
	for seed := range uint64(trials) {
		random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // statistics
		times := make([]pair, pairs)
		for i := range times {
			weather := 1 + 0.05*random.Float64() // that both of a pair have
			times[i] = pair{weather * (1 + 0.01*random.NormFloat64()), weather * 1.02 * (1 + 0.01*random.NormFloat64())}
		}
		if c := compare(times, few, drawing()); c.Low <= 1.02 && 1.02 <= c.High {
			covered++
		}
	}
	// 95 % of 150 are 142.5; fewer than 132 come by chance once in 10,000.
	if covered < 132 {
		t.Errorf("%d of %d intervals of 95 %% hold the true ratio", covered, trials)
	}
}

func TestASpreadThatGrewIsFound(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 7)) //nolint:gosec // statistics
	times := make([]pair, 80)
	for i := range times {
		times[i] = pair{1 + 0.002*random.NormFloat64(), 1 + 0.006*random.NormFloat64()}
	}
	if verdict, why := judge(compare(times, few, drawing()), limits{0.03, 0.02}); verdict != failed {
		t.Errorf("three times the spread is %q: %s", verdict, why)
	}
}

func TestEqualTimesAreNoDifference(t *testing.T) {
	t.Parallel()
	c := compare([]pair{{2, 2}, {2, 2}, {2, 2}}, few, drawing())
	if c.Ratio != 1 || c.Low != 1 || c.High != 1 || c.Spread != 1 || math.IsNaN(c.SpreadLow) {
		t.Errorf("%+v", c)
	}
	if one := compare([]pair{{1, 3}}, few, drawing()); one.Ratio != 3 {
		t.Errorf("%+v", one)
	}
}
