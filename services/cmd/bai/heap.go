package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapSpan is how often the heap is looked at.
const heapSpan = 500 * time.Millisecond

// boundHeap sets GOGC anew as the heap and the rate of its collections change, until ctx ends. A GOGC of the environment stays as it is.
func boundHeap(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	read := func() heapState {
		metrics.Read(samples)
		return heapState{live: samples[0].Value.Uint64(), cycles: samples[1].Value.Uint64()}
	}
	tick := time.NewTicker(heapSpan)
	defer tick.Stop()
	for before, set := read(), 0; ; {
		now := read()
		if percent := gcPercent(before, now, heapSpan, set); percent != set { // to set it stops the program for a short time
			debug.SetGCPercent(percent)
			set = percent
		}
		before = now
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
