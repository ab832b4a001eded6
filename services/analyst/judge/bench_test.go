package judge_test

import (
	"fmt"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// BenchmarkSummariseAPivot summarises 10,000 cells with 10 metrics.
func BenchmarkSummariseAPivot(b *testing.B) {
	for _, n := range []int{5, 10, 50} {
		b.Run(fmt.Sprintf("%d repetitions", n), func(b *testing.B) {
			values := normal(seeded(30), 100_000+n, 100)
			j := newJudge(b)
			for b.Loop() {
				for cell := range 100_000 {
					j.Summarise(values[cell : cell+n])
				}
			}
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{5, 10, 25, 100} {
		x, y := normal(seeded(31), n, 0), normal(seeded(32), n, 0.5)
		b.Run(fmt.Sprintf("%d repetitions", n), func(b *testing.B) {
			j := newJudge(b)
			for b.Loop() {
				j.Compare(judge.Higher, x, y)
			}
		})
	}
}

func BenchmarkRank(b *testing.B) {
	for _, k := range []int{10, 100, 10_000} {
		for name, unit := range map[string]float64{"": 0, " with ties": 0.5} {
			r := seeded(33)
			cells := make([][]float64, k)
			for i := range cells {
				cells[i] = rounded(normal(r, 10, float64(i)), unit)
			}
			b.Run(fmt.Sprintf("%d cells%s", k, name), func(b *testing.B) {
				j := newJudge(b)
				for b.Loop() {
					if _, err := j.Rank(judge.Lower, cells); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkStopping(b *testing.B) {
	j := newJudge(b)
	when := judge.StopWhen{HalfWidth: 0.01, Min: 5, Max: 10_000}
	for b.Loop() {
		if _, err := j.Stopping(when); err != nil {
			b.Fatal(err)
		}
	}
}
