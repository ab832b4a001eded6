package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestTheGrowthOfTheHeapIsBoundedFromTheStart(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC is set, which bounds the heap as its user wants")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(minGCPercent / 2))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go boundHeap(ctx)
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for ctx.Err() == nil {
		if metrics.Read(percent); percent[0].Value.Uint64() >= minGCPercent {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("the heap may grow by %d %%", percent[0].Value.Uint64())
}
