package api

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// followState tracks how much of a run's output is stored, for a client that follows
// the run.
type followState struct {
	stored      int64     // samples, lines, and streams that have ended
	lastGrowth  time.Time // time at which stored grew last; zero before the run's end
	completedAt time.Time // time at which the output was found complete or given up; zero before
}

// observe updates the state from the stored streams. The output is complete once the
// run has finished and either everything is stored or nothing more was stored for
// timeout. It is also complete after store.DataTimeout, however much is missing.
func (t *followState) observe(run store.Run, streams []store.Stream, now time.Time, timeout time.Duration) {
	if run.Phase != event.PhaseFinished || t.complete() {
		return
	}
	stored := int64(0)
	for _, s := range streams {
		if stored += s.Stored; s.End != nil {
			stored++
		}
	}
	if t.lastGrowth.IsZero() || stored != t.stored {
		t.stored, t.lastGrowth = stored, now
	}
	sinceEnd := now.Sub(run.Updated)
	if store.Complete(run, streams).Complete || sinceEnd > store.DataTimeout || min(sinceEnd, now.Sub(t.lastGrowth)) > timeout {
		t.completedAt = now
	}
}

func (t *followState) complete() bool { return !t.completedAt.IsZero() }

// readTimedOut reports whether the output has been complete for longer than timeout. A
// follower waits no longer than that for stored lines that cannot be read yet.
func (t *followState) readTimedOut(now time.Time, timeout time.Duration) bool {
	return now.Sub(t.completedAt) > timeout
}
