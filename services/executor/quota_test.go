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

func TestAUserAtTheLimitDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = time.Minute
		stop := w.start(executor.Settings{Slots: 2, PerUser: 1})
		other := fetched("r3")
		other.Owner = "bob"
		w.publish(fetched("r1"), fetched("r2"), other)
		time.Sleep(3 * time.Second)
		if diff := cmp.Diff([]string{"r1/1", "r3/1"}, w.slots()); diff != "" {
			t.Errorf("slots (-want +got):\n%s", diff)
		}
		for _, run := range []string{"r1", "r2", "r3"} {
			w.cancel(run)
		}
		time.Sleep(5 * time.Minute)
		stop()
		w.assertClean(t)
	})
}

// TestALaunchIsSaidOnce: a pass that took its snapshot before the transition of a
// launch was recorded does not launch again.
func TestALaunchIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = time.Second
		w.readDelay = func(kind store.Kind) time.Duration {
			if kind == store.KindSlotTable {
				return 50 * time.Millisecond
			}
			return 0
		}
		stop := w.start(executor.Settings{Slots: 3, Poll: time.Millisecond})
		runs := []string{"r1", "r2", "r3", "r4", "r5", "r6"}
		for _, run := range runs {
			w.publish(fetched(run))
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		stop()
		w.assertClean(t)
		w.assertCreatedOnce(t)
		w.broker.mu.Lock()
		defer w.broker.mu.Unlock()
		if n := len(w.broker.topics[event.TopicLaunched]); n != len(runs) {
			t.Errorf("%d launches were said of %d", n, len(runs))
		}
	})
}
