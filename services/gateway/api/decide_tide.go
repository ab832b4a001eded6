package api

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// tide is what comes in of what a run wrote, as who follows it sees it.
type tide struct {
	there int64     // samples, lines, and sources that have ended
	grew  time.Time // when more was seen last; zero before the run's end
	ended time.Time // when all was seen to be there, or that no more comes; zero before
}

// look takes in what is stored. The tide is out once the run is over and all that
// it wrote is there, or nothing more has come for as long as is waited: what is
// missing then does not come.
func (t *tide) look(run store.Run, streams []store.Stream, now time.Time, timeout time.Duration) {
	if run.Phase != event.PhaseFinished || t.out() {
		return
	}
	there := int64(0)
	for _, s := range streams {
		if there += s.Stored; s.End != nil {
			there++
		}
	}
	if t.grew.IsZero() || there != t.there {
		t.there, t.grew = there, now
	}
	over := now.Sub(run.Updated)
	if store.Complete(run, streams).Complete || over > store.Patience || min(over, now.Sub(t.grew)) > timeout {
		t.ended = now
	}
}

func (t *tide) out() bool { return !t.ended.IsZero() }

// waited reports whether those who follow have waited, since the tide is out, as
// long as they do for lines that are there and cannot be read yet.
func (t *tide) waited(now time.Time, timeout time.Duration) bool { return now.Sub(t.ended) > timeout }
