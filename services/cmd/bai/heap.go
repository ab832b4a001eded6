package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// boundHeap sets GOGC anew each second as the live heap grows and shrinks, until ctx ends. A GOGC of the environment stays as it is.
func boundHeap(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		<-ctx.Done()
		return nil
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for set := 0; ; {
		metrics.Read(live)
		if percent := gcPercent(live[0].Value.Uint64()); percent != set { // to set it stops the program for a short time
			debug.SetGCPercent(percent)
			set = percent
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
