//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// killTimeout is how much longer than its pod's grace a supervisor may take to end
// before it is killed.
const killTimeout = 5 * time.Second

func attemptOfRef(r cluster.Ref) attempt {
	return attempt{r.Scope, r.Run, strconv.Itoa(r.Attempt)}
}

// Delete implements cluster.Deleter.
func (c *Cluster) Delete(_ context.Context, r cluster.Ref) error {
	at, found := attemptOfRef(r), false
	for _, j := range c.allJobs() {
		if j.attempt != at {
			continue
		}
		if r.UID != "" && j.record.Job.Name == r.Job && string(j.record.Job.UID) != r.UID {
			return nil // another Job of that name: not what is meant
		}
		found = true
		j.mu.Lock()
		err := c.remove(j, true)
		j.mu.Unlock()
		if err != nil {
			return fmt.Errorf("delete job %s: %w", j.record.Job.Name, err)
		}
	}
	if found {
		return nil // the last of them takes the other objects along
	}
	return c.removeObjects(at)
}

// Stop implements cluster.Stopper. The pods stay to be seen.
func (c *Cluster) Stop(_ context.Context, r cluster.Ref) error {
	at := attemptOfRef(r)
	for _, j := range c.allJobs() {
		if j.attempt != at {
			continue
		}
		j.mu.Lock()
		if !j.removing && j.deleting == nil {
			c.halt(j)
		}
		j.mu.Unlock()
	}
	return nil
}

// remove marks a locked job, so that it goes also if this process ends, and
// begins to end it. It may be repeated.
func (c *Cluster) remove(j *job, whole bool) error {
	if j.removing && whole { // what it takes along may have been taken before the last object came
		return c.removeObjects(j.attempt)
	}
	if j.removing || j.deleting != nil && (j.deleting.Attempt || !whole) {
		return nil
	}
	m := deletionMark{At: time.Now(), Attempt: whole}
	if err := shimapi.Write(c.disk.mark(j.id), m); err != nil {
		return err
	}
	j.deleting = &m
	c.markChanged(j)
	if !j.launched || j.shimEnded {
		c.removeAsync(j)
		return nil
	}
	c.terminate(j)
	return nil
}

// terminate tells the supervisor of a locked job to end its pod, once, and kills it
// should it not obey. Before its first state it would not hear; that brings it
// here again.
func (c *Cluster) terminate(j *job) {
	if j.shimEnded {
		return
	}
	if !j.killScheduled {
		j.killScheduled = true
		c.after(j, grace(j.record.Job)+lastGrace+killTimeout, func(j *job) {
			if !j.shimEnded {
				c.log.Warn("a pod's supervisor does not end, it is killed", zap.String("job", j.record.Job.Name))
				c.signal(j, unix.SIGKILL)
			}
		})
		c.killFrozen(j)
	}
	if !j.termSent && j.state != nil {
		j.termSent = true
		c.signal(j, unix.SIGTERM)
		c.signal(j, unix.SIGCONT) // what is stopped cannot end
	}
}

// killFrozen kills the supervisor of a locked job, which was told to end, once it is
// found stopped by a signal for too long: it cannot use its grace.
func (c *Cluster) killFrozen(j *job) {
	c.after(j, shimapi.FrozenGrace, func(j *job) {
		switch {
		case j.shimEnded:
		case c.isFrozen(j):
			c.log.Warn("a pod's supervisor is stopped by a signal, it is killed", zap.String("job", j.record.Job.Name))
			c.signal(j, unix.SIGKILL)
		default:
			c.killFrozen(j)
		}
	})
}

// isFrozen reports whether a signal has stopped the supervisor of a locked job.
func (c *Cluster) isFrozen(j *job) bool {
	pid := j.pid
	if pid == 0 && j.state != nil && alive(j.state.PID, j.state.StartTicks) {
		pid = j.state.PID
	}
	p, err := shimapi.ReadProcess(strconv.Itoa(pid))
	return pid != 0 && err == nil && p.Frozen
}

// lastGrace is what a pod's supervisor may add to its grace.
const lastGrace = 2 * time.Second

// signal sends a signal to the supervisor of a locked job, and to nobody else.
func (c *Cluster) signal(j *job, s unix.Signal) {
	var err error
	switch {
	case j.pid != 0: // a child that was not reaped keeps its ID
		err = unix.Kill(j.pid, s)
	case j.state != nil:
		err = signalProcess(j.state.PID, j.state.StartTicks, s)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		c.log.Error("cannot signal a pod's supervisor", zap.String("job", j.record.Job.Name), zap.Error(err))
	}
}

func signalProcess(pid int, startTicks uint64, s unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd) //nolint:errcheck // only a handle
	}
	if !alive(pid, startTicks) {
		return nil
	}
	if err != nil {
		return unix.Kill(pid, s)
	}
	return unix.PidfdSendSignal(fd, s, nil, 0)
}

// removeAsync removes, beside everything else, all that there is of a locked job
// whose supervisor has ended or never was.
func (c *Cluster) removeAsync(j *job) {
	if j.removing {
		return
	}
	j.removing = true
	for _, t := range j.timers {
		t.Stop()
	}
	lost := j.launched && (j.state == nil || j.state.EndedAt.IsZero())
	objects := j.deleting != nil && j.deleting.Attempt
	c.spawn(func() {
		if lost {
			killLeftovers(j.id)
		}
		c.removeFromDisk(j, objects)
		j.mu.Lock()
		j.removed = true
		j.mu.Unlock()
		c.forget(j)
	})
}

// removeFromDisk removes a job from the disk: first what depends on it, last its place.
func (c *Cluster) removeFromDisk(j *job, objects bool) {
	if last, objects := c.lastOfAttempt(j, objects); last {
		if objects {
			if err := c.removeObjects(j.attempt); err != nil {
				c.log.Error("cannot remove objects", zap.String("job", j.record.Job.Name), zap.Error(err))
			}
		}
		if j.record.Number > 0 {
			c.removeNetwork(c.disk.network(j.attempt))
		}
	}
	if err := c.disk.removePod(j.id); err != nil {
		c.log.Error("cannot remove a pod's directory", zap.String("job", j.record.Job.Name), zap.Error(err))
	}
}

func (c *Cluster) forget(j *job) {
	c.log.Info("a job is gone", zap.String("run", j.attempt.run), zap.String("job", j.record.Job.Name), zap.Bool("deleted", j.deleting != nil))
	freed := c.releaseResources(j)
	c.mu.Lock()
	delete(c.jobs, j.id)
	if len(c.podsOfJob(j.record.Job.UID)) == 0 {
		delete(c.names, objectKey{"Job", j.attempt.scope, j.record.Job.Name})
	}
	c.mu.Unlock()
	c.notify(j.attempt)
	if freed {
		c.spawn(func() { c.launchWaiting("") })
	}
}

// lastOfAttempt reports whether all others of a job's attempt have come this far, and
// whether one of them, this one too, was to take the attempt's objects along.
func (c *Cluster) lastOfAttempt(j *job, objects bool) (last, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j.removingFromDisk = true
	a := c.attempts[j.attempt]
	a.deleteObjects = a.deleteObjects || objects
	c.attempts[j.attempt] = a
	for _, o := range c.jobs {
		if o.attempt == j.attempt && !o.removingFromDisk {
			return false, false
		}
	}
	delete(c.attempts, j.attempt)
	return true, a.deleteObjects
}

// removeObjects removes the ConfigMaps and Secrets of an attempt.
func (c *Cluster) removeObjects(at attempt) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, o := range c.objects {
		if o.attempt() != at {
			continue
		}
		if err := os.Remove(c.disk.object(uid)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		delete(c.objects, uid)
		delete(c.names, o.key())
	}
	return nil
}

// endAll ends all that runs, and returns when nothing of it runs any more. That the
// platform ended it is written down first, so that it is known however this process
// ends; the next one finishes what this one began.
func (c *Cluster) endAll(ctx context.Context) error {
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
			c.signal(j, unix.SIGKILL)
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

// running returns the jobs whose supervisor lives.
func (c *Cluster) running() []*job {
	return slices.DeleteFunc(c.allJobs(), func(j *job) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return !j.launched || j.removed || j.shimEnded
	})
}

// stop ends a locked job because the platform is stopped. One that ends for another
// reason already is left to end.
func (c *Cluster) stop(j *job) {
	if over := j.state != nil && !j.state.EndedAt.IsZero(); !over && j.deleting == nil && j.record.Stopped.IsZero() {
		j.record.Stopped = time.Now()
		if err := shimapi.Write(c.disk.record(j.id), j.record); err != nil {
			c.log.Error("cannot write down that the platform ended a job", zap.String("job", j.record.Job.Name), zap.Error(err))
		}
	}
	c.terminate(j)
}

// awaitEnded reports whether jobs ended, or went, before ctx was done.
func (c *Cluster) awaitEnded(ctx context.Context, js []*job) bool {
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

func (o object) key() objectKey {
	kind, m := o.meta()
	return objectKey{kind, m.Namespace, m.Name}
}

func (o object) attempt() attempt {
	_, m := o.meta()
	return attemptOf(m)
}

// meta returns the kind of an object, empty where it is none, and what names it.
func (o object) meta() (string, *metav1.ObjectMeta) {
	switch {
	case o.ConfigMap != nil:
		return "ConfigMap", &o.ConfigMap.ObjectMeta
	case o.Secret != nil:
		return "Secret", &o.Secret.ObjectMeta
	case o.Service != nil:
		return "Service", &o.Service.ObjectMeta
	}
	return "", &metav1.ObjectMeta{}
}
