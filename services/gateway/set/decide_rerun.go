package set

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/gateway/set/results"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// listedRuns has the runs of a set that a list of the store shows, and whether they succeeded.
// Runs that have not ended there are missing.
type listedRuns map[sweep.Run]bool

// add adds a run of the cell with a number.
func (l listedRuns) add(cell int, r store.Run) {
	if r.Phase != event.PhaseFinished {
		return
	}
	at := sweep.Run{Cell: cell, Repetition: r.Repetition, Warmup: r.Warmup}
	l[at] = l[at] || r.Outcome == event.Succeeded
}

// decideRerun returns the ordinals of the runs of a finished set that did not succeed, as far as
// the list shows, and of those that must be read to be known. A run that was refused, deleted
// or never made did not succeed; a repetition that was skipped is no run. A list of the store
// may lack what has just changed; once the set ended results.MissingTime ago, a run that it does
// not show does not exist.
func decideRerun(s Set, l loaded, listed listedRuns, now time.Time) (again, unknown []int) {
	over := now.Sub(s.Ended) >= results.MissingTime
	for ordinal := range l.runs() {
		run := l.run(ordinal)
		succeeded, ended := listed[run]
		switch {
		case ended && succeeded:
		case ended, s.neverMade(ordinal):
			again = append(again, ordinal)
		case !over:
			unknown = append(unknown, ordinal)
		case !s.skips(run):
			again = append(again, ordinal)
		}
	}
	return again, unknown
}

// neverMade reports whether a finished set is known not to have made a run.
func (s Set) neverMade(ordinal int) bool {
	return ordinal >= s.Next || hasBit(s.Refused, ordinal) || slices.Contains(s.Withdrawn, ordinal)
}

// selection returns a bit for each run of the sweep that is one of the set with these ordinals.
func (l loaded) selection(ordinals []int) []byte {
	bits := make([]byte, (l.plan.Runs()+7)/8)
	for _, n := range ordinals {
		if l.selected != nil {
			n = l.selected[n]
		}
		bits[n/8] |= 1 << (n % 8)
	}
	return bits
}
