package otava_test

import (
	"fmt"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge/otava"
)

func BenchmarkFind(b *testing.B) {
	for _, rows := range []int{200, 365, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d rows", rows), func(b *testing.B) {
			values := noisy(1, rows)
			for b.Loop() {
				find(b, values, otava.Options{})
			}
		})
	}
}

// BenchmarkFindInManySeries has the bar of the package: 150 ms on one core.
func BenchmarkFindInManySeries(b *testing.B) {
	series := make([][]float64, 1_000)
	for seed := range series {
		series[seed] = noisy(uint64(seed), 200) //nolint:gosec // seeds are small
	}
	for b.Loop() {
		for _, values := range series {
			find(b, values, otava.Options{})
		}
	}
}
