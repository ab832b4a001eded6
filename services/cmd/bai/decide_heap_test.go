package main

import "testing"

func TestALargerHeapGrowsByLessOfItsSize(t *testing.T) {
	for live, want := range map[uint64]int{0: 300, 1 << 20: 300, 8 << 20: 300, 12 << 20: 200, 24 << 20: 100, 1 << 30: 100} {
		if got := gcPercent(live); got != want {
			t.Errorf("GOGC of a heap with %d live bytes is %d, want %d", live, got, want)
		}
	}
}
