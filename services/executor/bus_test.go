package executor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// TestEveryEventTwice plays runs on a bus that delivers each event twice and checks
// that events with one ID are equal. Then it replays everything.
func TestEveryEventTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, depot, pods := eventtest.NewBus(t), storetest.NewMemory(), newCluster()
		parts := executor.New(executor.Settings{Slots: 1, Positions: time.Hour}, executor.Deps{Bus: bus, Store: depot, Cluster: pods, Token: func(string) string { return "t" }})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, part := range parts {
			all.Go(func() { _ = part(ctx) })
		}
		defer all.Wait()
		defer stop()

		bus.PublishAndWait(fetched("r1"))
		time.Sleep(time.Second)
		bus.PublishAndWait(fetched("r2"))
		time.Sleep(time.Second)
		assertPublished(t, bus, "bai.fetched r1", "bai.status r1 queued: waiting for a free slot",
			"bai.status r1 launching: starting the command with this machine's own programs (no image)",
			"bai.launched r1", "bai.fetched r2", "bai.status r2 queued: waiting for a free slot")

		if err := store.Create(t.Context(), depot, store.KindCancel, "r2", struct{}{}); err != nil {
			t.Fatal(err)
		}
		bus.PublishAndWait(event.Command{Header: header("r2").Cause("cancel", ""), Kind: event.CommandCancel})
		bus.PublishAndWait(event.Finished{Header: header("r1").Cause("end", ""), Outcome: event.Succeeded, Message: "fine"})
		time.Sleep(time.Second)
		assertPublished(t, bus, "bai.commands r2 cancel", "bai.finished r2 canceled: canceled before it was launched", "bai.finished r1 succeeded: fine")

		writes := pods.writeCount()
		bus.Replay()
		time.Sleep(10 * time.Second)
		assertPublished(t, bus)
		if left := pods.objectKeys(); len(left) > 0 || pods.writeCount() != writes {
			t.Errorf("after a replay %q is in the cluster, which was asked %d times more", left, pods.writeCount()-writes)
		}
	})
}

func assertPublished(t *testing.T, bus *eventtest.Bus, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, bus.TakeLines()); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
}
