package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Stats implements store.Counter.
func (m *Memory) Stats(context.Context) (store.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := store.Stats{Phases: make(map[event.Phase]int64), Outcomes: make(map[event.Outcome]int64)}
	for _, r := range m.runs {
		c.Phases[r.Phase]++
		if r.Outcome != "" {
			c.Outcomes[r.Outcome]++
		}
	}
	return c, nil
}

// testStats has runs go their ways, and counts them.
func testStats(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	count := func() (string, error) {
		c, err := s.Stats(ctx)
		return fmt.Sprint(c.Phases, c.Outcomes), err
	}
	eventually(t, "where there are no runs", "map[] map[]", count)
	for i, way := range [][]event.Phase{
		{event.PhaseSubmitted},
		{event.PhaseSubmitted, event.PhaseQueued},
		{event.PhaseSubmitted, event.PhaseQueued},
		{event.PhaseSubmitted, event.PhaseRunning, event.PhaseFinished},
		{event.PhaseFinished},
		{event.PhaseFinished},
	} {
		r, c := NewRun(fmt.Sprint("census", i), at(i))
		for n, phase := range way {
			r.Phase, r.Revision, c.Revision, c.Event, c.Phase = phase, int64(n+1), int64(n+1), fmt.Sprint("e", n), phase
			if phase == event.PhaseFinished {
				r.Outcome = []event.Outcome{event.Failed, event.Succeeded}[i%2]
			}
			must(t, s.PutRun(ctx, r, c))
		}
	}
	eventually(t, "every run counts where it is", "map[finished:3 queued:2 submitted:1] map[failed:1 succeeded:2]", count)
}
