package summarise

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// there is how much of what a run wrote is stored.
type there struct {
	Samples int64 `json:"samples"`
	Lines   int64 `json:"lines"`
	Ended   int   `json:"ended"` // sources
}

func thereIs(streams []store.Stream) (t there) {
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

// step is what is to be done for a run.
type step int

const (
	wait  step = iota // look again
	say               // write down that more has come, and look again
	whole             // summarise it: all is there
	part              // summarise what is there, and wait for the rest
	leave             // nothing more is to be done
)

// next says what is to be done for a run of which so much is there. Samples that
// do not come are waited for as long as any data of the run come, and Patience
// longer. Then those that are there are summarised, and again if others come,
// until Late.
func next(d due, t there, complete bool, now time.Time, s Settings) step {
	quiet, late := now.Sub(d.Changed), now.Sub(d.Since) >= s.Late
	switch {
	case complete:
		return whole
	case t != d.There && quiet >= s.Patience/4 && !late: // not for each change: it is a write
		return say
	case quiet < s.Patience && !late:
		return wait
	case d.Summed == nil || *d.Summed != t.Samples:
		return part
	case late:
		return leave
	}
	return wait
}

// better says whether summaries tell more than those that are there, or the same
// where all is told.
func better(now, before store.Summaries) bool {
	return now.Complete || !before.Complete && now.Samples > before.Samples
}
