//go:build linux

package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
)

// Observe implements cluster.Observer.
func (c *Cluster) Observe(_ context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	at := attemptOfRef(r)
	for _, j := range c.jobsOf(at) {
		c.refresh(j)
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

// jobsOf returns the jobs of an attempt.
func (c *Cluster) jobsOf(at attempt) []*job {
	return slices.DeleteFunc(c.allJobs(), func(j *job) bool { return j.attempt != at })
}

// snapshot returns what there is of an attempt and meant.
func (c *Cluster) snapshot(at attempt, include func(podstatus.Facts) bool) cluster.Snapshot {
	var all []podstatus.Facts
	for _, j := range c.jobsOf(at) {
		j.mu.Lock()
		if f := c.facts(j); !j.removed && include(f) {
			all = append(all, f)
		}
		j.mu.Unlock()
	}
	// The Job whose end ends the run has the attempt's own name, others have
	// more behind it.
	slices.SortFunc(all, func(a, b podstatus.Facts) int {
		return cmp.Or(cmp.Compare(len(a.Job.Name), len(b.Job.Name)), cmp.Compare(a.Job.Name, b.Job.Name), cmp.Compare(a.Index, b.Index))
	})
	var seen cluster.Snapshot
	if jobs := jobStatuses(all); len(jobs) > 0 {
		seen.Job, seen.Others = &jobs[0], jobs[1:]
		number, _ := strconv.Atoi(at.number)
		seen.Ref = cluster.Ref{Run: at.run, Attempt: number, Scope: at.scope, Job: seen.Job.Name, UID: string(seen.Job.UID)}
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

// watcher is one caller of Watch. Its fields belong to the cluster's lock.
type watcher struct {
	dirty map[attempt]struct{}
	wake  chan struct{} // holds one
}

// notify lets all watchers know of a change.
func (c *Cluster) notify(at attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w.dirty[at] = struct{}{}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Watch implements cluster.Observer.
func (c *Cluster) Watch(ctx context.Context, handle func(cluster.Snapshot)) error {
	w := &watcher{dirty: map[attempt]struct{}{}, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	c.watchers[w] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, w)
	}()
	resync := time.NewTicker(cmp.Or(c.settings.Resync, 30*time.Second))
	defer resync.Stop()
	delivered := map[attempt]cluster.Ref{}
	changed := c.allAttempts()
	for {
		for _, at := range changed {
			if ctx.Err() != nil {
				return nil
			}
			c.deliver(at, delivered, handle)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.done:
			return errClosed
		case <-w.wake:
			changed = c.takeDirty(w)
		case <-resync.C:
			changed = c.allAttempts()
		}
	}
}

// deliver hands an attempt over, or, where it was handed over before and is
// there no more, that it has gone.
func (c *Cluster) deliver(at attempt, delivered map[attempt]cluster.Ref, handle func(cluster.Snapshot)) {
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

// takeDirty returns what has changed since it was called last.
func (c *Cluster) takeDirty(w *watcher) []attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := make([]attempt, 0, len(w.dirty))
	for at := range w.dirty {
		changed = append(changed, at)
	}
	clear(w.dirty)
	return changed
}

// allAttempts returns all attempts that have a job.
func (c *Cluster) allAttempts() []attempt {
	var all []attempt
	seen := map[attempt]bool{}
	for _, j := range c.allJobs() {
		if !seen[j.attempt] {
			seen[j.attempt] = true
			all = append(all, j.attempt)
		}
	}
	return all
}
