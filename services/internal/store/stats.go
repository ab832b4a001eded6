package store

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Stats is how many runs there are.
type Stats struct {
	Phases   map[event.Phase]int64   // in each phase; none where there are none
	Outcomes map[event.Outcome]int64 // that have come to each outcome
}

// Counter is the part of a store that counts runs.
type Counter interface {
	// Stats returns how many runs there are. What was written a moment ago may be
	// missing. It costs little, however many there are.
	Stats(ctx context.Context) (Stats, error)
}
