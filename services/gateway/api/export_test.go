package api

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Tide is what comes in of what a run wrote.
type Tide struct{ tide }

// Look takes in what is stored.
func (t *Tide) Look(run store.Run, streams []store.Stream, now time.Time, timeout time.Duration) {
	t.look(run, streams, now, timeout)
}

// Out reports whether all has come that comes.
func (t *Tide) Out() bool { return t.out() }
