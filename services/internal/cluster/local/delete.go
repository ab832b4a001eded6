//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/runner"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// attemptOfRef returns the attempt that a Ref names.
func attemptOfRef(r cluster.Ref) disk.Attempt {
	return disk.Attempt{Scope: r.Scope, Run: r.Run, Number: strconv.Itoa(r.Attempt)}
}

// Delete implements cluster.Deleter.
func (c *Cluster) Delete(_ context.Context, r cluster.Ref) error {
	at, found := attemptOfRef(r), false
	for _, j := range c.registry.of(at) {
		if r.UID != "" && j.record.Job.Name == r.Job && string(j.record.Job.UID) != r.UID {
			return nil // another Job of that name has another UID
		}
		found = true
		j.mu.Lock()
		err := c.controller.remove(j, true)
		j.mu.Unlock()
		if err != nil {
			return fmt.Errorf("delete job %s: %w", j.record.Job.Name, err)
		}
	}
	if found {
		return nil // the removal of the last pod removes the other objects
	}
	return c.objects.removeAll(at)
}

// Stop implements cluster.Stopper. The pods stay visible.
func (c *Cluster) Stop(_ context.Context, r cluster.Ref) error {
	at := attemptOfRef(r)
	for _, j := range c.registry.of(at) {
		j.mu.Lock()
		if !j.removing && j.deleting == nil {
			c.controller.halt(j)
		}
		j.mu.Unlock()
	}
	return nil
}

// remove marks a locked job as deleted on disk, so that the next process completes the deletion, and starts to end its pod. It can be
// repeated.
func (c *controller) remove(j *job, whole bool) error {
	if j.removing && whole { // an object may have been created after the other ones were removed
		return c.objects.removeAll(j.attempt)
	}
	if j.removing || j.deleting != nil && (j.deleting.Attempt || !whole) {
		return nil
	}
	m := disk.DeletionMark{At: time.Now(), Attempt: whole}
	if err := shimapi.Write(c.folder.MarkFile(j.id), m); err != nil {
		return err
	}
	j.deleting = &m
	c.registry.changed(j)
	if !j.launched || j.shimEnded {
		c.removeAsync(j)
		return nil
	}
	c.kubelet.terminate(j)
	return nil
}

// removeAsync removes, in the background, a locked job whose shim has ended or was never started.
func (c *controller) removeAsync(j *job) {
	if j.removing {
		return
	}
	j.removing = true
	for _, t := range j.timers {
		t.Stop()
	}
	lost := j.launched && !j.over()
	objects := j.deleting != nil && j.deleting.Attempt
	c.background.spawn(func(ctx context.Context) {
		if lost {
			runner.KillLeftovers(ctx, j.id)
		}
		c.removeFromDisk(ctx, j, objects)
		j.mu.Lock()
		j.removed = true
		j.mu.Unlock()
		c.forget(j)
	})
}

// removeFromDisk removes a job from the disk: first its dependents, last its folder.
func (c *controller) removeFromDisk(ctx context.Context, j *job, objects bool) {
	if last, objects := c.registry.leave(j, objects); last {
		if objects {
			if err := c.objects.removeAll(j.attempt); err != nil {
				c.log.Error("cannot remove objects", zap.String("job", j.record.Job.Name), zap.Error(err))
			}
		}
		if j.record.Number > 0 {
			c.runner.RemoveNetwork(ctx, c.folder.Network(j.attempt))
		}
	}
	if err := c.folder.RemovePod(j.id); err != nil {
		c.log.Error("cannot remove a pod's directory", zap.String("job", j.record.Job.Name), zap.Error(err))
	}
}

// forget frees the name and the resources of a removed job.
func (c *controller) forget(j *job) {
	c.log.Info("a job is gone", zap.String("run", j.attempt.Run), zap.String("job", j.record.Job.Name),
		zap.Bool("deleted", j.deleting != nil))
	freed := c.resources.release(j)
	if c.registry.remove(j) {
		c.objects.release(disk.Key{Kind: "Job", Scope: j.attempt.Scope, Name: j.record.Job.Name})
	}
	c.registry.notify(j.attempt)
	if freed {
		c.background.spawn(func(context.Context) { c.kubelet.launchWaiting("") })
	}
}

// endAll ends all pods, and returns when none runs any more. It first stores that the platform ended them, so that the next process
// completes the work if this one is killed.
func (c *controller) endAll(ctx context.Context) error {
	running := c.running()
	for _, j := range running {
		j.mu.Lock()
		c.stop(j)
		j.mu.Unlock()
	}
	if c.awaitEnded(ctx, running) {
		return nil
	}
	for _, j := range running {
		j.mu.Lock()
		if !j.removed && !j.shimEnded {
			c.kubelet.signal(j, unix.SIGKILL)
		}
		j.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
	defer cancel()
	if !c.awaitEnded(ctx, running) {
		return errors.New("close the local cluster: some pods do not end")
	}
	return nil
}

// running returns the jobs whose shim runs.
func (c *controller) running() []*job {
	return slices.DeleteFunc(c.registry.all(), func(j *job) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return !j.launched || j.removed || j.shimEnded
	})
}

// stop ends a locked job because the platform is stopped. A job that is ending for another reason ends with that reason.
func (c *controller) stop(j *job) {
	if !j.over() && j.deleting == nil && j.record.Stopped.IsZero() {
		j.record.Stopped = time.Now()
		if err := shimapi.Write(c.folder.RecordFile(j.id), j.record); err != nil {
			c.log.Error("cannot write down that the platform ended a job", zap.String("job", j.record.Job.Name), zap.Error(err))
		}
	}
	c.kubelet.terminate(j)
}

// awaitEnded reports whether jobs have ended, or were removed, before ctx was done.
func (c *controller) awaitEnded(ctx context.Context, js []*job) bool {
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for _, j := range js {
		for {
			j.mu.Lock()
			ended := j.removed || j.shimEnded && j.deleting == nil
			j.mu.Unlock()
			if ended {
				break
			}
			select {
			case <-t.C:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}
