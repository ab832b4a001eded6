package watcher_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/watcher"
)

// entrypointEnded returns an attempt whose image's own entrypoint has succeeded.
func entrypointEnded() cluster.Snapshot {
	return cluster.Snapshot{Job: job(complete(11)), Pods: pods(newPod(ended(corev1.PodSucceeded), unwrapped(), collectorRunning(), exits(cluster.ContainerBenchmark, 0, "Completed", "")))}
}

// finishedEvent returns the end of the run if it was published, else nil.
func (w *fixture) finishedEvent() *event.Finished {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.published {
		if f, ok := e.(event.Finished); ok {
			return &f
		}
	}
	return nil
}

func TestTheEndOfAnEntrypointIsSaidOnceItsLogIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		defer p.stop()
		l := launchedRun("r1", 0)
		w.cluster.set(refOf(l), entrypointEnded())
		p.deliver(l)
		time.Sleep(5 * time.Second)
		if f := w.finishedEvent(); f != nil {
			t.Fatalf("its end was said: %+v", f)
		}
		if err := store.Create(t.Context(), w.store, store.KindLogProgress, store.LogShippedKey("uid-0"), "read"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		f := w.finishedEvent()
		if f == nil {
			t.Fatal("its end was not said")
		}
		if diff := cmp.Diff([]string{"uid-0", event.LogFollower("uid-0")}, f.Collectors); diff != "" {
			t.Errorf("whose data are awaited (-want +got):\n%s", diff)
		}
	})
}

func TestTheEndOfAnEntrypointWaitsForItsLogNoLongerThanSettingsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{LogGrace: 3 * time.Second})
		defer p.stop()
		l := launchedRun("r1", 0)
		w.cluster.set(refOf(l), entrypointEnded())
		p.deliver(l)
		time.Sleep(2 * time.Second)
		if f := w.finishedEvent(); f != nil {
			t.Fatalf("its end was said too early: %+v", f)
		}
		time.Sleep(2 * time.Second)
		if w.finishedEvent() == nil {
			t.Error("its end was not said")
		}
	})
}
