package projection_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestDecide(t *testing.T) {
	s := projection.Settings{NoProgress: 15 * time.Minute, CancelAgain: 30 * time.Second}
	seen := func(minutes float64, tries int) projection.StallState {
		return projection.StallState{Revision: 3, Since: noon().Add(-time.Duration(minutes * float64(time.Minute))), Tries: tries}
	}
	for name, tt := range map[string]struct {
		phase  event.Phase
		marked bool
		last   projection.StallState
		want   projection.Action
		seen   projection.StallState
	}{
		"a run that is seen for the first time is left alone":     {event.PhaseFetching, false, projection.StallState{}, projection.Wait, seen(0, 0)},
		"a run that has changed is left alone":                    {event.PhaseFetching, false, projection.StallState{Revision: 2, Since: noon().Add(-time.Hour), Tries: 1}, projection.Wait, seen(0, 0)},
		"a run that said again what it waits for is left alone":   {event.PhaseFetching, false, projection.StallState{Revision: 2, Since: noon().Add(-16 * time.Minute)}, projection.Wait, seen(0, 0)},
		"a run that has stood still for a moment is left alone":   {event.PhaseFetching, false, seen(14, 0), projection.Wait, seen(14, 0)},
		"a run that stands still is submitted again":              {event.PhaseFetching, false, seen(15, 0), projection.Resubmit, seen(0, 1)},
		"it is given time then":                                   {event.PhaseFetching, false, seen(14, 1), projection.Wait, seen(14, 1)},
		"a run that stands still in spite of that is given up":    {event.PhaseFetching, false, seen(15, 1), projection.GiveUp, seen(0, 2)},
		"so is one that was not even begun":                       {event.PhaseSubmitted, false, seen(15, 1), projection.GiveUp, seen(0, 2)},
		"so is one whose launch hangs":                            {event.PhaseLaunching, false, seen(15, 1), projection.GiveUp, seen(0, 2)},
		"a run may wait in the queue for ever, and is said again": {event.PhaseQueued, false, seen(15, 9), projection.Resubmit, seen(0, 10)},
		"a launched run is the watcher's":                         {event.PhasePending, false, seen(1e6, 1), projection.Wait, seen(1e6, 1)},
		"a running run is the watcher's":                          {event.PhaseRunning, false, seen(1e6, 1), projection.Wait, seen(1e6, 1)},
		"a finished run is left alone":                            {event.PhaseFinished, true, seen(1e6, 1), projection.Wait, projection.StallState{}},
		"a canceled run that stands still is canceled again":      {event.PhaseRunning, true, seen(0.5, 7), projection.CancelAgain, seen(0, 8)},
		"a canceled run is given time":                            {event.PhaseCanceling, true, seen(0.4, 0), projection.Wait, seen(0.4, 0)},
		"a canceled run is never given up":                        {event.PhaseSubmitted, true, seen(1e6, 9), projection.CancelAgain, seen(0, 10)},
	} {
		t.Run(name, func(t *testing.T) {
			remedy, next := projection.Decide(store.Run{Phase: tt.phase, Revision: 3}, tt.marked, tt.last, noon(), s)
			if remedy != tt.want {
				t.Errorf("remedy %q, want %q", remedy, tt.want)
			}
			if diff := cmp.Diff(tt.seen, next); diff != "" {
				t.Errorf("seen (-want +got):\n%s", diff)
			}
		})
	}
}
