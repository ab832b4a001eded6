//go:build linux

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
)

// Observe implements cluster.Observer.
func (c *Cluster) Observe(_ context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	at := attemptOfRef(r)
	for _, j := range c.registry.of(at) {
		c.kubelet.refresh(j)
	}
	seen := c.snapshot(at, func(f podstatus.Facts) bool { return r.UID == "" || f.Job.Name != r.Job || string(f.Job.UID) == r.UID })
	if seen.Job != nil && seen.Job.Name != r.Job {
		seen.Job, seen.Others = nil, append([]batchv1.Job{*seen.Job}, seen.Others...)
	}
	if seen.Job == nil && len(seen.Pods) == 0 {
		return cluster.Snapshot{}, fmt.Errorf("job %s: %w", r.Job, cluster.ErrNotFound)
	}
	uid := r.UID
	if seen.Job != nil {
		uid = string(seen.Job.UID)
	}
	seen.Ref = cluster.Ref{Run: r.Run, Attempt: r.Attempt, Scope: r.Scope, Job: r.Job, UID: uid}
	return seen, nil
}

// Occupancy implements cluster.Occupier.
func (c *Cluster) Occupancy(context.Context) (cluster.Occupancy, error) {
	all := cluster.Occupancy{Nodes: []corev1.Node{c.asNode()}, OneMachine: true}
	for _, at := range c.registry.attempts() {
		for _, p := range c.snapshot(at, func(podstatus.Facts) bool { return true }).Pods {
			if cluster.Alive(p) {
				all.Pods = append(all.Pods, p)
			}
		}
	}
	return all, nil
}

// snapshot returns the jobs of an attempt that include accepts, and their pods.
func (c *Cluster) snapshot(at disk.Attempt, include func(podstatus.Facts) bool) cluster.Snapshot {
	var all []podstatus.Facts
	for _, j := range c.registry.of(at) {
		j.mu.Lock()
		if f := j.facts(); !j.removed && include(f) {
			all = append(all, f)
		}
		j.mu.Unlock()
	}
	// The main Job, whose end ends the run, has the attempt's own name; the names of other Jobs extend it.
	slices.SortFunc(all, func(a, b podstatus.Facts) int {
		return cmp.Or(cmp.Compare(len(a.Job.Name), len(b.Job.Name)), cmp.Compare(a.Job.Name, b.Job.Name), cmp.Compare(a.Index, b.Index))
	})
	var seen cluster.Snapshot
	if jobs := jobStatuses(all); len(jobs) > 0 {
		seen.Job, seen.Others = &jobs[0], jobs[1:]
		number, _ := strconv.Atoi(at.Number)
		seen.Ref = cluster.Ref{Run: at.Run, Attempt: number, Scope: at.Scope, Job: seen.Job.Name, UID: string(seen.Job.UID)}
	}
	for _, f := range all {
		seen.Pods = append(seen.Pods, podstatus.Pod(f))
		if e, ok := podstatus.Event(f); ok {
			seen.Events = append(seen.Events, e)
		}
	}
	slices.SortFunc(seen.Pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return seen
}

// jobStatuses returns the Jobs that facts are about, which are sorted by their Jobs.
func jobStatuses(all []podstatus.Facts) []batchv1.Job {
	var jobs []batchv1.Job
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(f podstatus.Facts) bool { return f.Job.UID != all[0].Job.UID })
		if n < 0 {
			n = len(all)
		}
		jobs = append(jobs, *podstatus.Job(all[:n]...))
		all = all[n:]
	}
	return jobs
}

// Watch implements cluster.Observer.
func (c *Cluster) Watch(ctx context.Context, handle func(cluster.Snapshot)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var resync sync.WaitGroup
	defer resync.Wait()
	defer cancel(nil)
	defer c.background.onClose(func() { cancel(errClosed) })()
	changes := queue.New[disk.Attempt](c.log, queue.Settings[disk.Attempt]{})
	defer c.registry.watch(changes)()
	addAll := func(context.Context) (time.Duration, error) {
		for _, at := range c.registry.attempts() {
			changes.Add(at)
		}
		return 0, nil
	}
	loop := control.NewLoop("cluster/resync", c.settings.Resync, c.log, addAll, control.LoopSettings{})
	resync.Go(func() { _ = loop.Run(ctx) }) // nil always
	delivered := map[disk.Attempt]cluster.Ref{}
	err := changes.Run(ctx, 1, func(_ context.Context, at disk.Attempt) (queue.Result, error) {
		c.deliver(at, delivered, handle)
		return queue.Result{}, nil
	})
	if errors.Is(context.Cause(ctx), errClosed) {
		return errClosed
	}
	return err
}

// deliver passes the snapshot of an attempt to handle, or an empty one if the attempt is gone and was delivered before.
func (c *Cluster) deliver(at disk.Attempt, delivered map[disk.Attempt]cluster.Ref, handle func(cluster.Snapshot)) {
	seen := c.snapshot(at, func(podstatus.Facts) bool { return true })
	ref, ok := delivered[at]
	switch {
	case seen.Job != nil:
		delivered[at] = seen.Ref
		handle(seen)
	case ok:
		delete(delivered, at)
		handle(cluster.Snapshot{Ref: ref})
	}
}
