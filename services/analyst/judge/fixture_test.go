package judge_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/internal/simtest"
)

// newJudge returns a Judge with a confidence of 0.95.
func newJudge(tb testing.TB) judge.Judge {
	tb.Helper()
	return withConfidence(tb, 0)
}

func withConfidence(tb testing.TB, confidence float64) judge.Judge {
	tb.Helper()
	j, err := judge.New(judge.Settings{Confidence: confidence})
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

// sets returns how many sets a simulation has: 2,000 unless simtest says another number.
func sets(tb testing.TB) int {
	tb.Helper()
	return simtest.Count(tb, 2000)
}

// seeded returns a source of random numbers that gives the same numbers in each test.
func seeded(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(20240607, stream))
}

// distribution is one that simulations draw repetitions from, with its median.
type distribution struct {
	median float64
	draw   func(*rand.Rand) float64
}

// distributions have standard deviations as repetitions of benchmarks have.
func distributions() map[string]distribution {
	return map[string]distribution{
		"normal":      {100, func(r *rand.Rand) float64 { return 100 + 10*r.NormFloat64() }},
		"lognormal":   {100, func(r *rand.Rand) float64 { return 100 * math.Exp(0.3*r.NormFloat64()) }},
		"exponential": {100 * math.Ln2, func(r *rand.Rand) float64 { return 100 * r.ExpFloat64() }},
	}
}

// values returns n values of a distribution.
func (d distribution) values(r *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = d.draw(r)
	}
	return values
}

// normal returns n values around a mean, with a standard deviation of 1.
func normal(r *rand.Rand, n int, mean float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = mean + r.NormFloat64()
	}
	return values
}

// rounded returns values rounded to multiples of a unit, or as they are if it is 0.
func rounded(values []float64, unit float64) []float64 {
	if unit == 0 {
		return values
	}
	for i, v := range values {
		values[i] = math.Round(v/unit) * unit
	}
	return values
}

// share fails unless a share of all, which a simulation counted, is between two bounds.
func share(t *testing.T, what string, count, all int, least, most float64) {
	t.Helper()
	s := float64(count) / float64(all)
	t.Logf("%s: %.4f of %d", what, s, all)
	if s < least || s > most {
		t.Errorf("%s: %.4f of %d, want %.4f to %.4f", what, s, all, least, most)
	}
}
