package main

// How much the heap may grow between collections. A small heap grows to four times its size, which gives a tenth more runs per second for
// some MiB. A larger one grows by heapRoom, so that the memory of the process stays flat while a large set runs, and by its own size at
// least, so that collections do not take the processor.
const (
	maxGCPercent = 300
	minGCPercent = 100
	heapRoom     = 24 << 20
)

// gcPercent returns GOGC for a heap with so many live bytes, in steps of 10.
func gcPercent(live uint64) int {
	return int(min(max(heapRoom*10/max(live, 1)*10, minGCPercent), maxGCPercent))
}
