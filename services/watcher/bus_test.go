package watcher_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/watcher"
)

// TestEveryEventTwice watches runs over a bus that delivers each event twice and checks events by their IDs, then delivers everything once
// more.
func TestEveryEventTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, w := eventtest.NewBus(t), newFixture(t)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, part := range watcher.New(watcher.Settings{}, watcher.Deps{Bus: bus, Store: storetest.NewMemory(), Cluster: w.cluster}) {
			all.Go(func() { _ = part(ctx) })
		}
		defer all.Wait()
		defer stop()

		good, bad := launchedRun("r1", 1), launchedRun("r2", 1)
		bus.PublishAndWait(good)
		bus.PublishAndWait(bad)
		for _, s := range [][2]cluster.Snapshot{{preparing(), preparing()}, {running(), running()}, {done(), lostNode()}, {}} {
			w.cluster.set(refOf(good), s[0])
			time.Sleep(time.Second)
			w.cluster.set(refOf(bad), s[1])
			time.Sleep(time.Second)
		}
		want := []string{
			"bai.launched r1", "bai.launched r2",
			"bai.status r1 pending: preparing the pod on n1", "bai.status r2 pending: preparing the pod on n1",
			"bai.status r1 running: running the benchmark", "bai.status r2 running: running the benchmark",
			"bai.finished r1 succeeded: the benchmark finished (exit code 0)",
			"bai.retried r2 attempt 2 after infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: gone",
		}
		if diff := cmp.Diff(want, bus.TakeLines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		bus.Replay()
		time.Sleep(time.Hour)
		if got := bus.TakeLines(); len(got) > 0 {
			t.Errorf("after a replay: %q", got)
		}
	})
}
