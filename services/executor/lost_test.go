package executor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// A lost node never reports that its pods have ended.

func TestTheSlotOfARunThatEndedOnALostNodeIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.redeleteAfter = time.Minute
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r1"))
		time.Sleep(50 * time.Second)
		if diff := cmp.Diff([]string{"r1/1"}, w.slots()); diff != "" {
			t.Errorf("slots while the node may come back (-want +got):\n%s", diff)
		}
		time.Sleep(30 * time.Second)
		stop()
		w.assertClean(t)
	})
}

func TestTheSlotOfARunThatIsCanceledOnALostNodeIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.redeleteAfter, w.runDuration = time.Minute, time.Hour
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r1"))
		time.Sleep(time.Second)
		w.cancel("r1")
		run := store.Run{ID: "r1", Phase: event.PhaseCanceling, Attempt: 1, Revision: 1}
		if err := w.store.PutRun(t.Context(), run, store.Change{Run: "r1", Revision: 1, Event: "e1"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		stop()
		w.assertClean(t)
		if diff := cmp.Diff(map[string]string{"r1": "canceled"}, w.runOutcomes()); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
	})
}
