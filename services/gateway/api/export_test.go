package api

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// FollowState is what comes in of what a run wrote.
type FollowState struct{ followState }

// Observe takes in what is stored.
func (t *FollowState) Observe(run store.Run, streams []store.Stream, now time.Time, timeout time.Duration) {
	t.observe(run, streams, now, timeout)
}

// Complete reports whether all has come that comes.
func (t *FollowState) Complete() bool { return t.complete() }
