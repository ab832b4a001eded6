package api

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// RunOf exports runOf.
var RunOf = runOf

// FollowState exports followState.
type FollowState struct{ followState }

// Observe exports observe.
func (t *FollowState) Observe(run store.Run, streams []store.Stream, now time.Time, timeout time.Duration) {
	t.observe(run, streams, now, timeout)
}

// Complete exports complete.
func (t *FollowState) Complete() bool { return t.complete() }
