package clustertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func deletes(b *bench) {
	b.create(b.configMap(nil), b.secret(nil), b.job("exec sleep 60"))
	b.await("the benchmark", running)
	for range 2 { // the second time it is on its way
		if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
			b.Fatal(err)
		}
	}
	b.gone()
	for _, o := range []cluster.Object{b.configMap(nil), b.secret(nil), b.job("exit 0")} {
		if err := b.cluster.Create(b.Context(), o); err != nil {
			b.Errorf("create %s after it was deleted: %v", o.GetName(), err)
		}
	}
}

func deletesNothing(b *bench) {
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

func grace(b *bench) {
	j, long := b.job("trap '' TERM; touch $D/ready; while true; do sleep 0.05; done"), int64(2)
	s := &j.Spec.Template.Spec
	s.TerminationGracePeriodSeconds = &long
	s.Containers = append(s.Containers, b.sh("waits", "until test -e $D/ready; do sleep 0.02; done"))
	shared(j)
	b.create(j)
	b.await("that it ignores SIGTERM", func(s cluster.Seen) bool { return state(s, "waits").Terminated != nil })
	began := time.Now()
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Fatal(err)
	}
	b.await("its deletion", func(s cluster.Seen) bool { return s.Job == nil || s.Job.DeletionTimestamp != nil })
	b.gone()
	if took := time.Since(began); took < time.Duration(long)*time.Second-200*time.Millisecond {
		b.Errorf("a pod that ignores SIGTERM was gone after %s, its grace is %d s", took, long)
	}
}

func otherUID(b *bench) {
	b.create(b.job("exec sleep 60"))
	b.await("the benchmark", running)
	other := b.ref()
	other.UID = "00000000-0000-4000-8000-000000000000"
	if _, err := b.cluster.Observe(b.Context(), other); !errors.Is(err, cluster.ErrNotFound) {
		b.Errorf("observe another UID: %v, want ErrNotFound", err)
	}
	if err := b.cluster.Delete(b.Context(), other); err != nil {
		b.Errorf("delete another UID: %v", err)
	}
	if seen := b.await("the benchmark", running); seen.Job.DeletionTimestamp != nil {
		b.Error("deleting another UID deleted this one")
	}
}

// log is what a watcher saw of one run.
type log struct {
	mu   sync.Mutex
	seen []cluster.Seen
}

func (l *log) last() (cluster.Seen, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) == 0 {
		return cluster.Seen{}, 0
	}
	return l.seen[len(l.seen)-1], len(l.seen)
}

// watch watches the bench's run until the test is over.
func (b *bench) watch() *log {
	b.Helper()
	l, done := &log{}, make(chan error, 1)
	ctx, cancel := context.WithCancel(b.Context())
	go func() {
		done <- b.cluster.Watch(ctx, func(s cluster.Seen) {
			if s.Ref.Run != b.run {
				return
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.seen = append(l.seen, s)
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

// until waits until the last that was seen is ok.
func (b *bench) until(l *log, what string, ok func(cluster.Seen) bool) cluster.Seen {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), b.suite.Patience)
	defer cancel()
	for {
		seen, n := l.last()
		if n > 0 && ok(seen) {
			return seen
		}
		if !pause(ctx) {
			b.Fatalf("%s: not handed over in time; the last of %d was %s", what, n, describe(seen))
		}
	}
}

func isGone(s cluster.Seen) bool { return s.Job == nil && len(s.Pods) == 0 }

func watches(b *bench) {
	j := b.job("until test -e $D/go; do sleep 0.02; done; exit 3")
	shared(j)
	b.create(j)
	b.await("the benchmark", running)
	l := b.watch()
	b.until(l, "what is there", running)
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Fatal(err)
	}
	seen := b.until(l, "that it has gone", isGone)
	if want := b.ref(); seen.Ref.Job != want.Job || seen.Ref.Run != want.Run || seen.Ref.Attempt != 1 || seen.Ref.Scope != want.Scope || seen.Ref.UID != string(j.UID) {
		b.Errorf("what has gone is %+v, want %+v and UID %s", seen.Ref, want, j.UID)
	}
}

func watchesTwice(b *bench) {
	logs := []*log{b.watch(), b.watch()}
	b.create(b.job("exit 3"))
	for _, l := range logs {
		seen := b.until(l, "the end", ended)
		if got := resultOf(seen).Exit; got != 3 {
			b.Errorf("exit code %d, want 3", got)
		}
	}
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Fatal(err)
	}
	for _, l := range logs {
		b.until(l, "that it has gone", isGone)
	}
}
