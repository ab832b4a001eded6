package compare_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
)

func newComparer(tb testing.TB, minChange float64) compare.Comparer {
	tb.Helper()
	c, err := compare.New(compare.Settings{MinChange: minChange})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// compareOne compares one metric.
func compareOne(tb testing.TB, minChange float64, m compare.Metric) compare.Comparison {
	tb.Helper()
	return newComparer(tb, minChange).Compare(m)[0]
}

// runs returns runs of 10 samples that have values.
func runs(values ...float64) []compare.Point {
	all := make([]compare.Point, len(values))
	for i, v := range values {
		all[i] = compare.Point{Value: v, Samples: 10}
	}
	return all
}

// times returns values, each multiplied by a factor.
func times(factor float64, values ...float64) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = factor * v
	}
	return all
}

// steady returns ten values around 100 that differ by up to 0.9.
func steady() []float64 {
	return []float64{100.1, 99.8, 100.4, 99.6, 100.2, 100, 99.9, 100.3, 99.7, 100.5}
}

// seeded returns a source of random numbers that gives the same numbers in each test.
func seeded(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(20240607, stream))
}

// share fails unless a share of all comparisons, which a simulation counted, is between two
// bounds.
func share(t *testing.T, what string, count, all int, least, most float64) {
	t.Helper()
	s := float64(count) / float64(all)
	t.Logf("%s: %.4f of %d", what, s, all)
	if s < least || s > most {
		t.Errorf("%s: %.4f of %d, want %.4f to %.4f", what, s, all, least, most)
	}
}

// noises draw deviations from a level, most of which are 1 in size.
func noises() map[string]func(*rand.Rand) float64 {
	square := func(r *rand.Rand) float64 { x := r.NormFloat64(); return x * x }
	return map[string]func(*rand.Rand) float64{
		"normal":     func(r *rand.Rand) float64 { return r.NormFloat64() },
		"skew":       func(r *rand.Rand) float64 { return r.ExpFloat64() },
		"whole":      func(r *rand.Rand) float64 { return math.Round(r.NormFloat64()) },
		"long tails": func(r *rand.Rand) float64 { return r.NormFloat64() / math.Sqrt((square(r)+square(r)+square(r))/3) },
		"spikes": func(r *rand.Rand) float64 {
			if r.Float64() < 0.03 {
				return 10 + r.NormFloat64()
			}
			return r.NormFloat64()
		},
		"two modes": func(r *rand.Rand) float64 {
			if r.Float64() < 0.2 {
				return 10 + r.NormFloat64()
			}
			return r.NormFloat64()
		},
	}
}
