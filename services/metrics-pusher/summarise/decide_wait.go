package summarise

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// storedCounts is how many samples and lines of a run are stored.
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

// action is the next step for a run.
type action int

const (
	actionWait          action = iota // check the run again
	actionRecord                      // store that more data have come, and check again
	actionSummarise                   // summarise it: all samples are stored
	actionSummarisePart               // summarise the stored samples, and wait for the rest
	actionForget                      // the run needs no more work
)

// nextAction returns the next action for a run with the stored counts t. It waits for missing samples as long as data of the run keep
// coming, and GracePeriod longer. Then it summarises the stored samples, and again if others come, until AllowedLateness after the end of
// the run.
func nextAction(d pendingRun, t storedCounts, complete bool, now time.Time, s Settings) action {
	quiet, late := now.Sub(d.ChangedAt), now.Sub(d.Since) >= s.AllowedLateness
	switch {
	case complete:
		return actionSummarise
	case t != d.Stored && quiet >= s.GracePeriod/4 && !late: // not for each change, because it is a write
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

// better reports whether summaries replace the earlier ones: these are incomplete, and the others are complete or have more samples.
func better(now, before store.Summaries) bool {
	return !before.Complete && (now.Complete || now.Samples > before.Samples)
}

// equal reports whether summaries are stored as the same text: to write them again would only make a revision of its own, with an event.
func equal(a, b store.Summaries) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
