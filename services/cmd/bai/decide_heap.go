package main

import "time"

// How much the heap may grow between collections. A small heap grows to four times its size, which gives a tenth more runs per second for
// some MiB. A larger one grows by heapRoom, so that the memory of the process stays flat while a large set runs, and by its own size at
// least. While collections follow each other closely, as when samples stream in, it grows to four times its size whatever that is: smaller
// growth would take a tenth of the processor.
const (
	maxGCPercent = 300
	minGCPercent = 100
	heapRoom     = 24 << 20
	manyCycles   = 10 // collections per second from which on the heap may grow
	fewCycles    = 2  // collections per second up to which it is bounded again
)

// heapState is what a program knows of its heap.
type heapState struct {
	live   uint64 // bytes after the last collection
	cycles uint64 // collections since the start
}

// gcPercent returns GOGC, in steps of 10, from the state of the heap now and a span before, and the GOGC that was set meanwhile.
func gcPercent(before, now heapState, span time.Duration, set int) int {
	rate := float64(now.cycles-before.cycles) / span.Seconds()
	if rate >= manyCycles || set == maxGCPercent && rate > fewCycles {
		return maxGCPercent
	}
	return int(min(max(heapRoom*10/max(now.live, 1)*10, minGCPercent), maxGCPercent))
}
