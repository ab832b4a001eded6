package kube

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// watcher is one caller of Watch. Its fields belong to the cache's lock.
type watcher struct {
	dirty map[attempt]struct{}
	wake  chan struct{} // holds one
}

func (k *cacheOf) notify(at attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for w := range k.watchers {
		w.dirty[at] = struct{}{}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (k *cacheOf) join() *watcher {
	w := &watcher{dirty: map[attempt]struct{}{}, wake: make(chan struct{}, 1)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watchers[w] = struct{}{}
	return w
}

func (k *cacheOf) leave(w *watcher) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.watchers, w)
}

// changes returns what has changed since it was called last.
func (k *cacheOf) changes(w *watcher) []attempt {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := make([]attempt, 0, len(w.dirty))
	for at := range w.dirty {
		changed = append(changed, at)
	}
	clear(w.dirty)
	return changed
}

// Watch implements cluster.Observer. What is handed over belongs to all that
// watch and must not be changed; volumes, environment and arguments are left out
// of it. While the cluster cannot be seen nothing is handed over, and nothing is
// said to have gone.
func (c *Cluster) Watch(ctx context.Context, see func(cluster.Seen)) error {
	k, err := c.watched() //nolint:contextcheck // it goes on for others
	if err != nil {
		return err
	}
	w := k.join()
	defer k.leave(w)
	if !k.begun(ctx) {
		return nil
	}
	again := time.NewTicker(c.resync())
	defer again.Stop()
	known := map[attempt]cluster.Ref{}
	changed := k.all()
	for {
		pods := 0
		for _, at := range changed {
			if ctx.Err() != nil {
				return nil
			}
			pods += k.handOver(at, known, see)
		}
		if !pause(ctx, time.Duration(pods)*perPod) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			changed = k.changes(w)
		case <-again.C:
			changed = nil
			if k.why() == nil {
				changed = k.all()
			}
		}
	}
}

// perPod is for how long nothing is handed over after a pod was, so that what
// changes about a run of many pods meanwhile costs as much as one change.
const perPod = 50 * time.Microsecond

// pause waits for d, and is false once ctx is done.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// begun waits until all is known that is there.
func (k *cacheOf) begun(ctx context.Context) bool {
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	for !k.synced() {
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// handOver hands an attempt over, or, where it was handed over before and is
// there no more, that it has gone, once or more often. It returns how many pods
// the attempt has.
func (k *cacheOf) handOver(at attempt, known map[attempt]cluster.Ref, see func(cluster.Seen)) int {
	var ref *cluster.Ref
	was, ok := known[at]
	if ok {
		ref = &was
	}
	seen, some := k.see(at, ref)
	switch {
	case some:
		known[at] = seen.Ref
		see(seen)
	case ok:
		if len(seen.Others) == 0 { // else one of them would be taken for the Job of the run
			delete(known, at)
		}
		see(cluster.Seen{Ref: was})
	}
	return len(seen.Pods)
}
