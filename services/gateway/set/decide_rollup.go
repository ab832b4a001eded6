package set

import (
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set/results"
)

// A set whose results cannot all be stored yet is looked at again after half of the time since its end.
const (
	minRollupWait  = 5 * time.Second
	maxRollupWait  = 5 * time.Minute
	rollupTime     = 30 * time.Minute // after which it is looked at only if a request has read its runs
	idleRollupWait = 10 * time.Minute // between two of these looks
)

// results returns what the results of a set depend on.
func (s Set) results() results.SetState {
	return results.SetState{
		ID: s.ID, Cells: s.Cells, Repetitions: s.Repetitions, Warmup: s.Warmup, IsStopped: s.isStopped,
		Finished: s.State == StateFinished, Ended: s.Ended, EndedRuns: s.Counts.Succeeded + s.Counts.Failed + s.Counts.Canceled,
	}
}

// lastOrdinals returns the ordinal of the last run of each block of a set.
func lastOrdinals(s Set, l loaded) []int {
	size := s.results().BlockSize()
	all := make([]int, (s.Cells+size-1)/size)
	for ordinal := range l.runs() {
		all[l.run(ordinal).Cell/size] = ordinal
	}
	return all
}

// madeBlocks reports for each block of a set whether all its runs were made and have ended, as
// far as the set knows.
func madeBlocks(s Set, l loaded, last []int) []bool {
	made, size := make([]bool, len(last)), s.results().BlockSize()
	for i := range made {
		made[i] = s.State == StateFinished || last[i] < s.Next
	}
	for _, a := range s.Active {
		made[l.run(a.Ordinal).Cell/size] = false
	}
	if s.State != StateFinished {
		for _, ordinal := range s.Withdrawn {
			made[l.run(ordinal).Cell/size] = false
		}
	}
	for _, c := range s.Open {
		made[c.Cell/size] = false
	}
	return made
}

// rollupWait returns the time after which a set whose results are not all stored is looked at
// again, and whether that is in any case. The Runner adds a set that goes on whenever it
// changes.
func rollupWait(s Set, now time.Time) (wait time.Duration, again bool) {
	since := now.Sub(s.Ended)
	switch {
	case s.State != StateFinished:
		return minRollupWait, false
	case since >= rollupTime:
		return idleRollupWait, false
	}
	return min(max(since/2, minRollupWait), maxRollupWait), true
}
