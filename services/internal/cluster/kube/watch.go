package kube

import (
	"context"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
)

// notify adds an attempt to the queues of all watchers.
func (k *clusterCache) notify(at attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for w := range k.watchers {
		w.Add(at)
	}
}

// watch adds attempts to a queue when they change, until stop is called.
func (k *clusterCache) watch(w *queue.Queue[attempt]) (stop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watchers[w] = struct{}{}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.watchers, w)
	}
}

// Watch implements cluster.Observer. All watchers share a snapshot, which must not be changed; it lacks volumes, environment and the
// arguments of containers other than cluster.ContainerWait.
// While the cluster cannot be read, Watch delivers no snapshots and reports no attempt as gone.
func (c *Cluster) Watch(ctx context.Context, handle func(cluster.Snapshot)) error {
	k, err := c.sharedCache() //nolint:contextcheck // it goes on for others
	if err != nil {
		return err
	}
	changes := queue.New[attempt](c.log, queue.Settings[attempt]{})
	defer k.watch(changes)()
	if !k.waitForSync(ctx) {
		return nil
	}
	for _, at := range k.attempts() {
		changes.Add(at)
	}
	var resync sync.WaitGroup
	defer resync.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resync.Go(func() { k.resync(ctx, c.resync(), changes) })
	delivered := map[attempt]cluster.Ref{}
	return changes.Run(ctx, 1, func(ctx context.Context, at attempt) (queue.Result, error) {
		pods := k.deliver(at, delivered, handle)
		control.Sleep(ctx, time.Duration(pods)*throttlePerPod)
		return queue.Result{}, nil
	})
}

// resync adds all attempts to a watcher's queue every so often while the cluster can be read, until ctx is done.
func (k *clusterCache) resync(ctx context.Context, every time.Duration, w *queue.Queue[attempt]) {
	for control.Sleep(ctx, every) {
		if k.syncError() != nil {
			continue
		}
		for _, at := range k.attempts() {
			w.Add(at)
		}
	}
}

// throttlePerPod is the wait after the snapshot of an attempt, for each of its pods, so
// that many changes of a large run cost as much as one.
const throttlePerPod = 50 * time.Microsecond

// waitForSync waits until the cache has all objects.
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

// deliver passes the snapshot of an attempt to handle. If the attempt is gone and was delivered before, it passes an empty snapshot, once
// or more often. It returns the number of pods of the attempt.
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
		if len(seen.Others) == 0 { // else another Job would be taken for the main Job of the run
			delete(delivered, at)
		}
		handle(cluster.Snapshot{Ref: last})
	}
	return len(seen.Pods)
}
