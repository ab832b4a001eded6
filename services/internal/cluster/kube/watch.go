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

func (k *clusterCache) notify(at attempt) {
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

func (k *clusterCache) addWatcher() *watcher {
	w := &watcher{dirty: map[attempt]struct{}{}, wake: make(chan struct{}, 1)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watchers[w] = struct{}{}
	return w
}

func (k *clusterCache) removeWatcher(w *watcher) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.watchers, w)
}

// takeDirty returns what has changed since it was called last.
func (k *clusterCache) takeDirty(w *watcher) []attempt {
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
func (c *Cluster) Watch(ctx context.Context, handle func(cluster.Snapshot)) error {
	k, err := c.sharedCache() //nolint:contextcheck // it goes on for others
	if err != nil {
		return err
	}
	w := k.addWatcher()
	defer k.removeWatcher(w)
	if !k.waitForSync(ctx) {
		return nil
	}
	resync := time.NewTicker(c.resync())
	defer resync.Stop()
	delivered := map[attempt]cluster.Ref{}
	changed := k.attempts()
	for {
		pods := 0
		for _, at := range changed {
			if ctx.Err() != nil {
				return nil
			}
			pods += k.deliver(at, delivered, handle)
		}
		if !sleep(ctx, time.Duration(pods)*throttlePerPod) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			changed = k.takeDirty(w)
		case <-resync.C:
			changed = nil
			if k.syncError() == nil {
				changed = k.attempts()
			}
		}
	}
}

// throttlePerPod is for how long nothing is handed over after a pod was, so that what
// changes about a run of many pods meanwhile costs as much as one change.
const throttlePerPod = 50 * time.Microsecond

// sleep waits for d, and is false once ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// waitForSync waits until all is known that is there.
func (k *clusterCache) waitForSync(ctx context.Context) bool {
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	for !k.hasSynced() {
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// deliver hands an attempt over, or, where it was handed over before and is
// there no more, that it has gone, once or more often. It returns how many pods
// the attempt has.
func (k *clusterCache) deliver(at attempt, delivered map[attempt]cluster.Ref, handle func(cluster.Snapshot)) int {
	var ref *cluster.Ref
	last, ok := delivered[at]
	if ok {
		ref = &last
	}
	seen, found := k.snapshot(at, ref)
	switch {
	case found:
		delivered[at] = seen.Ref
		handle(seen)
	case ok:
		if len(seen.Others) == 0 { // else one of them would be taken for the Job of the run
			delete(delivered, at)
		}
		handle(cluster.Snapshot{Ref: last})
	}
	return len(seen.Pods)
}
