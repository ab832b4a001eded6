package summarise

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestWhatIsToBeDoneForARunThatIsOver(t *testing.T) {
	s := Settings{GracePeriod: 10 * time.Minute, AllowedLateness: 24 * time.Hour}
	const m, h = time.Minute, time.Hour
	for name, tt := range map[string]struct {
		waited waitCase
		want   string
	}{
		"all is there": {waitCase{since: m, changed: m, seen: 1, now: 5, summed: -1, complete: true}, "whole"},
		"all is there after part of it was summarised":              {waitCase{since: 20 * h, changed: 19 * h, seen: 5, now: 9, summed: 5, complete: true}, "whole"},
		"nothing has come for a while":                              {waitCase{since: 9 * m, changed: 9 * m, seen: 5, now: 5, summed: -1}, "wait"},
		"nothing has come for long":                                 {waitCase{since: 10 * m, changed: 10 * m, seen: 5, now: 5, summed: -1}, "part"},
		"of a run without samples nothing has come for long":        {waitCase{since: 10 * m, changed: 10 * m, summed: -1}, "part"},
		"more comes, long after the end":                            {waitCase{since: 5 * h, changed: 9 * m, seen: 5, now: 6, summed: -1}, "say"},
		"more comes after nothing came for long":                    {waitCase{since: 5 * h, changed: h, seen: 5, now: 6, summed: -1}, "say"},
		"more comes, a moment after it was said":                    {waitCase{since: 5 * h, changed: m, seen: 5, now: 6, summed: -1}, "wait"},
		"more came, and was said, not long ago":                     {waitCase{since: 5 * h, changed: 9 * m, seen: 6, now: 6, summed: -1}, "wait"},
		"part of it is summarised":                                  {waitCase{since: 5 * h, changed: 4 * h, seen: 5, now: 5, summed: 5}, "wait"},
		"more comes after part of it was summarised":                {waitCase{since: 5 * h, changed: 4 * h, seen: 5, now: 6, summed: 5}, "say"},
		"more came after part of it was summarised, and no more":    {waitCase{since: 5 * h, changed: h, seen: 6, now: 6, summed: 5}, "part"},
		"it is late, and what is there is summarised":               {waitCase{since: 24 * h, changed: 4 * h, seen: 5, now: 5, summed: 5}, "leave"},
		"it is late, and not all that is there is summarised":       {waitCase{since: 24 * h, changed: m, seen: 5, now: 6, summed: 5}, "part"},
		"it is late, and all is there":                              {waitCase{since: 30 * h, changed: m, seen: 5, now: 6, summed: 5, complete: true}, "whole"},
		"an earlier version has noted it, and not what there was":   {waitCase{since: h, changed: 1000 * h, now: 6, summed: -1}, "say"},
		"an earlier version has noted it, and there is nothing yet": {waitCase{since: h, changed: 1000 * h, summed: -1}, "part"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nextWord(tt.waited, s); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestSummariesNeverTellLessThanBefore(t *testing.T) {
	part, more, all := store.Summaries{Samples: 3}, store.Summaries{Samples: 5}, store.Summaries{Samples: 5, Complete: true}
	for name, tt := range map[string]struct {
		now, before store.Summaries
		want        bool
	}{
		"more samples": {more, part, true}, "fewer samples": {part, more, false}, "as many": {part, part, false},
		"all of them": {all, more, true}, "all of them again": {all, all, false}, "part, where all were there": {more, all, false},
	} {
		if got := better(tt.now, tt.before); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// waitCase is the document of a run that is to be summarised.
type waitCase struct {
	since, changed time.Duration // ago
	seen, now      int64         // samples
	summed         int64         // below 0: none yet
	complete       bool
}

// nextWord returns the next action for a run, as a word.
func nextWord(w waitCase, s Settings) string {
	now := time.Unix(1_000_000, 0)
	d := pendingRun{Since: now.Add(-w.since), ChangedAt: now.Add(-w.changed), Stored: storedCounts{Samples: w.seen}}
	if w.summed >= 0 {
		d.Summed = &w.summed
	}
	return []string{"wait", "say", "whole", "part", "leave"}[nextAction(d, storedCounts{Samples: w.now}, w.complete, now, s)]
}
