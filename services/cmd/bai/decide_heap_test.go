package main

import (
	"testing"
	"time"
)

func TestALargerHeapGrowsByLessOfItsSize(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 300, 1 << 20: 300, 8 << 20: 300, 12 << 20: 200, 24 << 20: 100, 1 << 30: 100} {
		if got := gcPercent(heapState{}, heapState{live: live}, time.Second, minGCPercent); got != want {
			t.Errorf("GOGC of a heap with %d live bytes is %d, want %d", live, got, want)
		}
	}
}

func TestAHeapThatIsCollectedOftenMayGrow(t *testing.T) {
	t.Parallel()
	const live = 24 << 20
	for name, tt := range map[string]struct {
		cycles uint64
		set    int
		want   int
	}{
		"few collections":                     {cycles: 1, set: 100, want: 100},
		"many collections":                    {cycles: 5, set: 100, want: 300},
		"fewer of them, because it has grown": {cycles: 2, set: 300, want: 300},
		"few of them although it has grown":   {cycles: 1, set: 300, want: 100},
		"as few, and it has not grown":        {cycles: 2, set: 100, want: 100},
		"none, although it has grown":         {cycles: 0, set: 300, want: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := heapState{live: live, cycles: 100}
			got := gcPercent(before, heapState{live, before.cycles + tt.cycles}, 500*time.Millisecond, tt.set)
			if got != tt.want {
				t.Errorf("GOGC is %d, want %d", got, tt.want)
			}
		})
	}
}
