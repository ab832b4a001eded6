package power_test

import (
	"fmt"
	"testing"
)

func BenchmarkPlanner(b *testing.B) {
	p := newPlanner(b)
	h := p.History(runs(seeded(41), noises()["normal"], 30, 1))
	for _, n := range []int{4, 5, 7, 10, 20, 100} {
		b.Run(fmt.Sprintf("smallest change of %d runs", n), func(b *testing.B) {
			for b.Loop() {
				p.Smallest(h, n)
			}
		})
	}
	for _, change := range []float64{0.001, 0.01, 0.03} {
		b.Run(fmt.Sprintf("runs for %v", change), func(b *testing.B) {
			for b.Loop() {
				p.Needed(h, change)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newPlanner(b)
	}
}
