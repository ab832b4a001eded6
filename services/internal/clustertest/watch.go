package clustertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func deletes(b *fixture) {
	b.create(b.configMap(nil), b.secret(nil), b.job("exec sleep 60"))
	b.await("the benchmark", isRunning)
	for range 2 { // the second time the deletion is in progress
		if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
			b.Fatal(err)
		}
	}
	b.awaitGone()
	for _, o := range []cluster.Object{b.configMap(nil), b.secret(nil), b.job("exit 0")} {
		if err := b.cluster.Create(b.Context(), o); err != nil {
			b.Errorf("create %s after it was deleted: %v", o.GetName(), err)
		}
	}
}

func deletesNothing(b *fixture) {
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Error(err)
	}
	b.create(b.configMap(nil))
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Error(err)
	}
	if err := b.cluster.Create(b.Context(), b.configMap(nil)); err != nil {
		b.Errorf("create a ConfigMap after it was deleted without a Job: %v", err)
	}
}

func grace(b *fixture) {
	j, long := b.job("trap '' TERM; touch $D/ready; while true; do sleep 0.05; done"), int64(2)
	s := &j.Spec.Template.Spec
	s.TerminationGracePeriodSeconds = &long
	s.Containers = append(s.Containers, b.sh("waits", "until test -e $D/ready; do sleep 0.02; done"))
	shareVolume(j)
	b.create(j)
	b.await("that it ignores SIGTERM", func(s cluster.Snapshot) bool { return containerState(s, "waits").Terminated != nil })
	began := time.Now()
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Fatal(err)
	}
	b.await("its deletion", func(s cluster.Snapshot) bool { return s.Job == nil || s.Job.DeletionTimestamp != nil })
	b.awaitGone()
	if took := time.Since(began); took < time.Duration(long)*time.Second-200*time.Millisecond {
		b.Errorf("a pod that ignores SIGTERM was gone after %s, its grace is %d s", took, long)
	}
}

func otherUID(b *fixture) {
	b.create(b.job("exec sleep 60"))
	b.await("the benchmark", isRunning)
	other := b.ref()
	other.UID = "00000000-0000-4000-8000-000000000000"
	if _, err := b.cluster.Observe(b.Context(), other); !errors.Is(err, cluster.ErrNotFound) {
		b.Errorf("observe another UID: %v, want ErrNotFound", err)
	}
	if err := b.cluster.Delete(b.Context(), other); err != nil {
		b.Errorf("delete another UID: %v", err)
	}
	if seen := b.await("the benchmark", isRunning); seen.Job.DeletionTimestamp != nil {
		b.Error("deleting another UID deleted this one")
	}
}

// watchLog has the snapshots of one run that a watcher got.
type watchLog struct {
	mu        sync.Mutex
	snapshots []cluster.Snapshot
}

func (l *watchLog) last() (cluster.Snapshot, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.snapshots) == 0 {
		return cluster.Snapshot{}, 0
	}
	return l.snapshots[len(l.snapshots)-1], len(l.snapshots)
}

// watch watches the bench's run until the test is over.
func (b *fixture) watch() *watchLog {
	b.Helper()
	l, done := &watchLog{}, make(chan error, 1)
	ctx, cancel := context.WithCancel(b.Context())
	go func() {
		done <- b.cluster.Watch(ctx, func(s cluster.Snapshot) {
			if s.Ref.Run != b.run {
				return
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.snapshots = append(l.snapshots, s)
		})
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("watch: %v", err)
		}
	})
	return l
}

// awaitWatched waits until ok returns true for the last snapshot.
func (b *fixture) awaitWatched(l *watchLog, what string, ok func(cluster.Snapshot) bool) cluster.Snapshot {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), b.suite.Timeout)
	defer cancel()
	for {
		seen, n := l.last()
		if n > 0 && ok(seen) {
			return seen
		}
		if !sleep(ctx) {
			b.Fatalf("%s: not handed over in time; the last of %d was %s", what, n, describe(seen))
		}
	}
}

func isGone(s cluster.Snapshot) bool { return s.Job == nil && len(s.Pods) == 0 }

func watches(b *fixture) {
	j := b.job("until test -e $D/go; do sleep 0.02; done; exit 3")
	shareVolume(j)
	b.create(j)
	b.await("the benchmark", isRunning)
	l := b.watch()
	b.awaitWatched(l, "what is there", isRunning)
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Fatal(err)
	}
	seen := b.awaitWatched(l, "that it has gone", isGone)
	if want := b.ref(); seen.Ref.Job != want.Job || seen.Ref.Run != want.Run || seen.Ref.Attempt != 1 || seen.Ref.Scope != want.Scope ||
		seen.Ref.UID != string(j.UID) {
		b.Errorf("what has gone is %+v, want %+v and UID %s", seen.Ref, want, j.UID)
	}
}

func watchesTwice(b *fixture) {
	logs := []*watchLog{b.watch(), b.watch()}
	b.create(b.job("exit 3"))
	for _, l := range logs {
		seen := b.awaitWatched(l, "the end", hasEnded)
		if got := resultOf(seen).Exit; got != 3 {
			b.Errorf("exit code %d, want 3", got)
		}
	}
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Fatal(err)
	}
	for _, l := range logs {
		b.awaitWatched(l, "that it has gone", isGone)
	}
}
