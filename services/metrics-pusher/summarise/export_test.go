package summarise

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Summary returns what values come to.
func Summary(values []float64) store.Summary { return summary(values) }

// Ranks returns the ranks of an interval.
func Ranks(n int) (low, high int, covered float64) { return ranks(n) }

// WaitCase is what is noted of a run that is to be summarised.
type WaitCase struct {
	Since, Changed time.Duration // ago
	Seen, Now      int64         // samples
	Summed         int64         // below 0: none yet
	Complete       bool
}

// Next says, in words, what is to be done for a run.
func Next(w WaitCase, s Settings) string {
	now := time.Unix(1_000_000, 0)
	d := pendingRun{Since: now.Add(-w.Since), ChangedAt: now.Add(-w.Changed), Stored: storedCounts{Samples: w.Seen}}
	if w.Summed >= 0 {
		d.Summed = &w.Summed
	}
	return []string{"wait", "say", "whole", "part", "leave"}[nextAction(d, storedCounts{Samples: w.Now}, w.Complete, now, s)]
}

// Better is better.
func Better(now, before store.Summaries) bool { return better(now, before) }
