package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
	"github.com/benchmark-ai/bai/services/internal/simtest"
)

// Simulations have fixed seeds: 2,000 comparisons or 500, or as many as BAI_SIMULATIONS says.

// sampled returns n runs of samples that depend on each other by AR(1), around levels of runs
// that have a spread of their own, relative to that of samples. Their standard errors take
// the samples for independent.
func sampled(r *rand.Rand, n int, between float64) []compare.Point {
	const samples, rho = 15, 0.6
	all := make([]compare.Point, n)
	for i := range all {
		level, deviation := between*r.NormFloat64(), r.NormFloat64()
		values := make([]float64, samples)
		for k := range values {
			deviation = rho*deviation + math.Sqrt(1-rho*rho)*r.NormFloat64()
			values[k] = 100 + level + deviation
		}
		slices.Sort(values)
		all[i] = compare.Point{Value: values[samples/2], Samples: samples, StandardError: 1.25 / math.Sqrt(samples)}
	}
	return all
}

// isChange reports whether a verdict says that the sides differ.
func isChange(v compare.Verdict) bool {
	return v == compare.Better || v == compare.Worse || v == compare.Changed
}

func TestRunsOfTheSameThingAreRarelyWorseOrBetter(t *testing.T) {
	t.Parallel()
	for _, between := range []float64{0, 0.25, 0.5, 1} {
		for _, n := range []int{5, 10} {
			t.Run(fmt.Sprintf("%d runs that differ by %v of the spread within them", n, between), func(t *testing.T) {
				t.Parallel()
				all := simtest.Count(t, 2000)
				wrong := changes(newComparer(t, 0), seeded(1), all, func(r *rand.Rand) compare.Metric {
					return compare.Metric{Direction: judge.Lower, Base: sampled(r, n, between), Other: sampled(r, n, between)}
				})
				share(t, "worse or better", wrong, all, 0.01, 0.06)
			})
		}
	}
}

func TestSingleRunsOfTheSameThingAreRarelyWorseOrBetterBesideAHistory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		runs, history int
		noise         string
		most          float64
	}{
		"1 run a side":                {1, 30, "normal", 0.06},
		"1 run a side, skewed":        {1, 30, "skew", 0.075},
		"1 run a side, long tails":    {1, 30, "long tails", 0.08},
		"1 run a side, two modes":     {1, 30, "two modes", 0.07},
		"1 run a side, whole numbers": {1, 30, "whole", 0.07},
		"1 run a side, 3 % spikes":    {1, 30, "spikes", 0.1},
		"3 runs a side":               {3, 30, "normal", 0.07},
		"3 runs a side, long tails":   {3, 30, "long tails", 0.07},
		"a history of 10":             {1, 10, "normal", 0.07},
		"a history of 10, skewed":     {1, 10, "skew", 0.11},
		"a history of 10, long tails": {1, 10, "long tails", 0.11},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			draw := noises()[test.noise]
			all := simtest.Count(t, 500)
			if name == "1 run a side" {
				all = simtest.Count(t, 2000)
			}
			wrong := changes(newComparer(t, 0), seeded(2), all, func(r *rand.Rand) compare.Metric {
				return compare.Metric{
					Direction: judge.Higher, History: drawn(r, draw, test.history, 1),
					Base: runs(drawn(r, draw, test.runs, 1)...), Other: runs(drawn(r, draw, test.runs, 1)...),
				}
			})
			share(t, "worse or better", wrong, all, 0, test.most)
		})
	}
}

// changes returns how many of the comparisons of metrics find one.
func changes(c compare.Comparer, r *rand.Rand, all int, next func(*rand.Rand) compare.Metric) (count int) {
	for range all {
		if isChange(c.Compare(next(r))[0].Verdict) {
			count++
		}
	}
	return count
}

func TestAHistoryThatDependsOnItselfIsWorthLess(t *testing.T) {
	t.Parallel()
	for _, rho := range []float64{0.6, 0.8} {
		c, r, all, wrong := newComparer(t, 0), seeded(3), simtest.Count(t, 500), 0
		for range all {
			at := r.NormFloat64()
			next := func(n int) (values []float64) {
				for range n {
					at = rho*at + math.Sqrt(1-rho*rho)*r.NormFloat64()
					values = append(values, 100*math.Exp(0.01*at))
				}
				return values
			}
			m := compare.Metric{Direction: judge.Higher, History: next(30), Base: runs(next(1)...)}
			next(20)
			m.Other = runs(next(1)...)
			if isChange(c.Compare(m)[0].Verdict) {
				wrong++
			}
		}
		share(t, fmt.Sprintf("worse or better with AR(1) %v", rho), wrong, all, 0, 0.07)
	}
}

// drawn returns n values with noise of 1 % around a level of 100, times a factor.
func drawn(r *rand.Rand, noise func(*rand.Rand) float64, n int, factor float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = 100 * factor * math.Exp(0.01*noise(r))
	}
	return values
}

func TestTheIntervalCoversTheChange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		base, other, history int
		simulated            int
		least                float64
	}{
		"5 runs a side":                 {5, 5, 0, 2000, 0.94},
		"10 runs a side":                {10, 10, 0, 2000, 0.94},
		"5 and 12 runs":                 {5, 12, 0, 2000, 0.94},
		"a run a side beside a history": {1, 1, 30, 500, 0.92},
		"3 and 2 runs beside a history": {3, 2, 30, 500, 0.92},
		"a run beside 20 of the base":   {20, 1, 0, 500, 0.92},
	}
	for name, test := range tests {
		for noise, draw := range noises() {
			if noise != "normal" && noise != "long tails" && (min(test.base, test.other) < 5 || noise == "whole") {
				continue // few runs do not say how often another mode comes
			}
			t.Run(name+", "+noise, func(t *testing.T) {
				t.Parallel()
				all := simtest.Count(t, test.simulated)
				count := covered(newComparer(t, 0), seeded(4), all, func(r *rand.Rand) compare.Metric {
					return compare.Metric{
						Base: runs(drawn(r, draw, test.base, 1)...), Other: runs(drawn(r, draw, test.other, 1.05)...),
						History: drawn(r, draw, test.history, 1.2),
					}
				})
				share(t, "covered", count, all, test.least, 1)
			})
		}
	}
}

// covered returns how many intervals contain a change of 5 %, but for rounding.
func covered(c compare.Comparer, r *rand.Rand, all int, next func(*rand.Rand) compare.Metric) (count int) {
	for range all {
		if at := c.Compare(next(r))[0].Change.Interval; at.Low <= 0.05+1e-9 && 0.05-1e-9 <= at.High {
			count++
		}
	}
	return count
}

func TestOfManyMetricsThatDidNotChangeFewSetsHaveOneThatDid(t *testing.T) {
	t.Parallel()
	c, r, all, wrong := newComparer(t, 0), seeded(5), simtest.Count(t, 500), 0
	for range all {
		metrics := make([]compare.Metric, 5)
		for i := range metrics {
			metrics[i] = compare.Metric{Base: runs(drawn(r, noises()["normal"], 6, 1)...), Other: runs(drawn(r, noises()["normal"], 6, 1)...)}
		}
		if slices.ContainsFunc(c.Compare(metrics...), func(c compare.Comparison) bool { return isChange(c.Verdict) }) {
			wrong++
		}
	}
	share(t, "sets of 5 metrics with a change", wrong, all, 0, 0.07)
}
