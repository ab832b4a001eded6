package store

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Stats has the numbers of runs.
type Stats struct {
	Phases   map[event.Phase]int64   // in each phase; phases without runs are missing
	Outcomes map[event.Outcome]int64 // that have come to each outcome
}

// Counter is the part of a store that counts runs.
type Counter interface {
	// Stats returns the numbers of runs. The latest writes may be missing. It is cheap for any number of runs.
	Stats(ctx context.Context) (Stats, error)
}
