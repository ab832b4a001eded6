package changepoint_test

import (
	"math/rand/v2"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
)

func noise(n int, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	values := make([]float64, n)
	for i := range values {
		values[i] = 100 + r.NormFloat64()
	}
	return values
}

// stepped is noise of standard deviation 1 around 100, which is higher from rows on.
func stepped(n int, seed uint64, by float64, rows ...int) []float64 {
	values := noise(n, seed)
	for _, row := range rows {
		for i := row; i < n; i++ {
			values[i] += by
		}
	}
	return values
}

func BenchmarkAThousandSeriesOf200Points(b *testing.B) {
	var all [][]float64
	for i := range 1000 {
		all = append(all, stepped(200, uint64(i), float64(i%4), 50+i%100))
	}
	d := detector(b)
	for b.Loop() {
		for _, values := range all {
			d.Analyse(values)
		}
	}
}

func BenchmarkTenThousandPoints(b *testing.B) {
	values := stepped(10_000, 1, 2, 900, 2100, 4040, 7000, 9500)
	d := detector(b)
	for b.Loop() {
		d.Analyse(values)
	}
}

func BenchmarkOneMorePoint(b *testing.B) {
	values := stepped(10_000, 1, 2, 900, 2100, 4040, 7000, 9500)
	r := detector(b).Replay()
	for _, v := range values {
		r.Add(v)
	}
	more := noise(1000, 3)
	i := 0
	for b.Loop() {
		r.Add(more[i%1000] + 10)
		i++
	}
}

func detector(tb testing.TB) changepoint.Detector {
	tb.Helper()
	d, err := changepoint.New(judge.Settings{})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}
