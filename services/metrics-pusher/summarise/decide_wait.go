package summarise

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// storedCounts is how much of what a run wrote is stored.
type storedCounts struct {
	Samples int64 `json:"samples"`
	Lines   int64 `json:"lines"`
	Ended   int   `json:"ended"` // sources
}

func countStored(streams []store.Stream) (t storedCounts) {
	for _, s := range streams {
		if s.Topic == event.TopicLogs {
			t.Lines += s.Stored
		} else {
			t.Samples += s.Stored
		}
		if s.End != nil {
			t.Ended++
		}
	}
	return t
}

// action is what is to be done for a run.
type action int

const (
	actionWait          action = iota // look again
	actionRecord                      // write down that more has come, and look again
	actionSummarise                   // summarise it: all is there
	actionSummarisePart               // summarise what is there, and wait for the rest
	actionForget                      // nothing more is to be done
)

// nextAction says what is to be done for a run of which so much is there. Samples that
// do not come are waited for as long as any data of the run come, and Patience
// longer. Then those that are there are summarised, and again if others come,
// until Late.
func nextAction(d pendingRun, t storedCounts, complete bool, now time.Time, s Settings) action {
	quiet, late := now.Sub(d.ChangedAt), now.Sub(d.Since) >= s.AllowedLateness
	switch {
	case complete:
		return actionSummarise
	case t != d.Stored && quiet >= s.GracePeriod/4 && !late: // not for each change: it is a write
		return actionRecord
	case quiet < s.GracePeriod && !late:
		return actionWait
	case d.Summed == nil || *d.Summed != t.Samples:
		return actionSummarisePart
	case late:
		return actionForget
	}
	return actionWait
}

// better says whether summaries tell more than those that are there, or the same
// where all is told.
func better(now, before store.Summaries) bool {
	return now.Complete || !before.Complete && now.Samples > before.Samples
}
