package api

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// followState is what comes in of what a run wrote, as who follows it sees it.
type followState struct {
	stored      int64     // samples, lines, and sources that have ended
	lastGrowth  time.Time // when more was seen last; zero before the run's end
	completedAt time.Time // when all was seen to be there, or that no more comes; zero before
}

// observe takes in what is stored. The tide is out once the run is over and all that
// it wrote is there, or nothing more has come for as long as is waited: what is
// missing then does not come.
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

// readTimedOut reports whether those who follow have waited, since the tide is out, as
// long as they do for lines that are there and cannot be read yet.
func (t *followState) readTimedOut(now time.Time, timeout time.Duration) bool {
	return now.Sub(t.completedAt) > timeout
}
