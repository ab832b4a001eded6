package projection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestARunThatWaitsInTheClusterIsTheWatchers(t *testing.T) {
	midday := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	last := stallState{Revision: 3, Since: midday.Add(-1e6 * time.Minute), Tries: 1}
	run := store.Run{Phase: event.PhaseQueued, Reason: event.NodesInUse, Revision: 3}
	if remedy, _ := decideStall(run, false, last, midday, Settings{NoProgress: 15 * time.Minute, CancelAgain: 30 * time.Second}); remedy != Wait {
		t.Errorf("remedy %q, want %q", remedy, Wait)
	}
}

func TestDecide(t *testing.T) {
	midday := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := Settings{NoProgress: 15 * time.Minute, CancelAgain: 30 * time.Second}
	seen := func(minutes float64, tries int) stallState {
		return stallState{Revision: 3, Since: midday.Add(-time.Duration(minutes * float64(time.Minute))), Tries: tries}
	}
	for name, tt := range map[string]struct {
		phase  event.Phase
		marked bool
		last   stallState
		want   action
		seen   stallState
	}{
		"a run that is seen for the first time is left alone":     {event.PhaseFetching, false, stallState{}, Wait, seen(0, 0)},
		"a run that has changed is left alone":                    {event.PhaseFetching, false, stallState{Revision: 2, Since: midday.Add(-time.Hour), Tries: 1}, Wait, seen(0, 0)},
		"a run that said again what it waits for is left alone":   {event.PhaseFetching, false, stallState{Revision: 2, Since: midday.Add(-16 * time.Minute)}, Wait, seen(0, 0)},
		"a run that has stood still for a moment is left alone":   {event.PhaseFetching, false, seen(14, 0), Wait, seen(14, 0)},
		"a run that stands still is submitted again":              {event.PhaseFetching, false, seen(15, 0), Resubmit, seen(0, 1)},
		"it is given time then":                                   {event.PhaseFetching, false, seen(14, 1), Wait, seen(14, 1)},
		"a run that stands still in spite of that is given up":    {event.PhaseFetching, false, seen(15, 1), GiveUp, seen(0, 2)},
		"so is one that was not even begun":                       {event.PhaseSubmitted, false, seen(15, 1), GiveUp, seen(0, 2)},
		"so is one whose launch hangs":                            {event.PhaseLaunching, false, seen(15, 1), GiveUp, seen(0, 2)},
		"a run may wait in the queue for ever, and is said again": {event.PhaseQueued, false, seen(15, 9), Resubmit, seen(0, 10)},
		"a launched run is the watcher's":                         {event.PhasePending, false, seen(1e6, 1), Wait, seen(1e6, 1)},
		"a running run is the watcher's":                          {event.PhaseRunning, false, seen(1e6, 1), Wait, seen(1e6, 1)},
		"a finished run is left alone":                            {event.PhaseFinished, true, seen(1e6, 1), Wait, stallState{}},
		"a canceled run that stands still is canceled again":      {event.PhaseRunning, true, seen(0.5, 7), CancelAgain, seen(0, 8)},
		"a canceled run is given time":                            {event.PhaseCanceling, true, seen(0.4, 0), Wait, seen(0.4, 0)},
		"a canceled run is never given up":                        {event.PhaseSubmitted, true, seen(1e6, 9), CancelAgain, seen(0, 10)},
	} {
		t.Run(name, func(t *testing.T) {
			remedy, next := decideStall(store.Run{Phase: tt.phase, Revision: 3}, tt.marked, tt.last, midday, s)
			if remedy != tt.want {
				t.Errorf("remedy %q, want %q", remedy, tt.want)
			}
			if diff := cmp.Diff(tt.seen, next); diff != "" {
				t.Errorf("seen (-want +got):\n%s", diff)
			}
		})
	}
}
