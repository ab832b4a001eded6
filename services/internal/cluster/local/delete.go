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
	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
)

// patience is how much longer than its pod's grace a supervisor may take to end
// before it is killed.
const patience = 5 * time.Second

func attemptOfRef(r cluster.Ref) attempt {
	return attempt{r.Scope, r.Run, strconv.Itoa(r.Attempt)}
}

// Delete implements cluster.Deleter.
func (c *Cluster) Delete(_ context.Context, r cluster.Ref) error {
	at, some := attemptOfRef(r), false
	for _, j := range c.all() {
		if j.attempt != at {
			continue
		}
		if r.UID != "" && j.rec.Job.Name == r.Job && string(j.rec.Job.UID) != r.UID {
			return nil // another Job of that name: not what is meant
		}
		some = true
		j.mu.Lock()
		err := c.remove(j, true)
		j.mu.Unlock()
		if err != nil {
			return fmt.Errorf("delete job %s: %w", j.rec.Job.Name, err)
		}
	}
	if some {
		return nil // the last of them takes the other objects along
	}
	return c.removeObjects(at)
}

// Stop implements cluster.Stopper. The pods stay to be seen.
func (c *Cluster) Stop(_ context.Context, r cluster.Ref) error {
	at := attemptOfRef(r)
	for _, j := range c.all() {
		if j.attempt != at {
			continue
		}
		j.mu.Lock()
		if !j.leaving && j.deleting == nil {
			c.halt(j)
		}
		j.mu.Unlock()
	}
	return nil
}

// remove marks a locked job, so that it goes also if this process ends, and
// begins to end it. It may be repeated.
func (c *Cluster) remove(j *job, whole bool) error {
	if j.leaving && whole { // what it takes along may have been taken before the last object came
		return c.removeObjects(j.attempt)
	}
	if j.leaving || j.deleting != nil && (j.deleting.Attempt || !whole) {
		return nil
	}
	m := mark{At: time.Now(), Attempt: whole}
	if err := spec.Write(c.disk.mark(j.id), m); err != nil {
		return err
	}
	j.deleting = &m
	c.touch(j)
	if !j.launched || j.ended {
		c.leave(j)
		return nil
	}
	c.tell(j)
	return nil
}

// tell tells the supervisor of a locked job to end its pod, once, and kills it
// should it not obey. Before its first state it would not hear; that brings it
// here again.
func (c *Cluster) tell(j *job) {
	if j.ended {
		return
	}
	if !j.watched {
		j.watched = true
		c.after(j, grace(j.rec.Job)+lastGrace+patience, func(j *job) {
			if !j.ended {
				c.log.Warn("a pod's supervisor does not end, it is killed", zap.String("job", j.rec.Job.Name))
				c.signal(j, unix.SIGKILL)
			}
		})
		c.killFrozen(j)
	}
	if !j.told && j.state != nil {
		j.told = true
		c.signal(j, unix.SIGTERM)
		c.signal(j, unix.SIGCONT) // what is stopped cannot end
	}
}

// killFrozen kills the supervisor of a locked job, which was told to end, once it is
// found stopped by a signal for too long: it cannot use its grace.
func (c *Cluster) killFrozen(j *job) {
	c.after(j, spec.FrozenGrace, func(j *job) {
		switch {
		case j.ended:
		case c.frozen(j):
			c.log.Warn("a pod's supervisor is stopped by a signal, it is killed", zap.String("job", j.rec.Job.Name))
			c.signal(j, unix.SIGKILL)
		default:
			c.killFrozen(j)
		}
	})
}

// frozen reports whether a signal has stopped the supervisor of a locked job.
func (c *Cluster) frozen(j *job) bool {
	pid := j.pid
	if pid == 0 && j.state != nil && alive(j.state.PID, j.state.Born) {
		pid = j.state.PID
	}
	p, err := spec.Look(strconv.Itoa(pid))
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
		err = signalStranger(j.state.PID, j.state.Born, s)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		c.log.Error("cannot signal a pod's supervisor", zap.String("job", j.rec.Job.Name), zap.Error(err))
	}
}

func signalStranger(pid int, born uint64, s unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd) //nolint:errcheck // only a handle
	}
	if !alive(pid, born) {
		return nil
	}
	if err != nil {
		return unix.Kill(pid, s)
	}
	return unix.PidfdSendSignal(fd, s, nil, 0)
}

// leave removes, beside everything else, all that there is of a locked job
// whose supervisor has ended or never was.
func (c *Cluster) leave(j *job) {
	if j.leaving {
		return
	}
	j.leaving = true
	for _, t := range j.timers {
		t.Stop()
	}
	lost := j.launched && (j.state == nil || j.state.Over.IsZero())
	objects := j.deleting != nil && j.deleting.Attempt
	c.spawn(func() {
		if lost {
			killLeftovers(j.id)
		}
		c.clear(j, objects)
		j.mu.Lock()
		j.gone = true
		j.mu.Unlock()
		c.forget(j)
	})
}

// clear removes a job from the disk: first what depends on it, last its place.
func (c *Cluster) clear(j *job, objects bool) {
	if last, objects := c.last(j, objects); last {
		if objects {
			if err := c.removeObjects(j.attempt); err != nil {
				c.log.Error("cannot remove objects", zap.String("job", j.rec.Job.Name), zap.Error(err))
			}
		}
		if j.rec.Number > 0 {
			c.removeNetwork(c.disk.network(j.attempt))
		}
	}
	if err := c.disk.removePod(j.id); err != nil {
		c.log.Error("cannot remove a pod's directory", zap.String("job", j.rec.Job.Name), zap.Error(err))
	}
}

func (c *Cluster) forget(j *job) {
	c.log.Info("a job is gone", zap.String("run", j.attempt.run), zap.String("job", j.rec.Job.Name), zap.Bool("deleted", j.deleting != nil))
	freed := c.release(j)
	c.mu.Lock()
	delete(c.jobs, j.id)
	if len(c.group(j.rec.Job.UID)) == 0 {
		delete(c.names, name{"Job", j.attempt.scope, j.rec.Job.Name})
	}
	c.mu.Unlock()
	c.notify(j.attempt)
	if freed {
		c.spawn(func() { c.launchWaiting("") })
	}
}

// last reports whether all others of a job's attempt have come this far, and
// whether one of them, this one too, was to take the attempt's objects along.
func (c *Cluster) last(j *job, objects bool) (last, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j.cleared = true
	a := c.attempts[j.attempt]
	a.doomed = a.doomed || objects
	c.attempts[j.attempt] = a
	for _, o := range c.jobs {
		if o.attempt == j.attempt && !o.cleared {
			return false, false
		}
	}
	delete(c.attempts, j.attempt)
	return true, a.doomed
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
		delete(c.names, o.name())
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
		if !j.gone && !j.ended {
			c.signal(j, unix.SIGKILL)
		}
		j.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if !c.awaitEnded(ctx, running) {
		return errors.New("close the local cluster: some pods do not end")
	}
	return nil
}

// running returns the jobs whose supervisor lives.
func (c *Cluster) running() []*job {
	return slices.DeleteFunc(c.all(), func(j *job) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return !j.launched || j.gone || j.ended
	})
}

// stop ends a locked job because the platform is stopped. One that ends for another
// reason already is left to end.
func (c *Cluster) stop(j *job) {
	if over := j.state != nil && !j.state.Over.IsZero(); !over && j.deleting == nil && j.rec.Stopped.IsZero() {
		j.rec.Stopped = time.Now()
		if err := spec.Write(c.disk.record(j.id), j.rec); err != nil {
			c.log.Error("cannot write down that the platform ended a job", zap.String("job", j.rec.Job.Name), zap.Error(err))
		}
	}
	c.tell(j)
}

// awaitEnded reports whether jobs ended, or went, before ctx was done.
func (c *Cluster) awaitEnded(ctx context.Context, js []*job) bool {
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for _, j := range js {
		for {
			j.mu.Lock()
			ended := j.gone || j.ended && j.deleting == nil
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

func (o object) name() name {
	kind, m := o.meta()
	return name{kind, m.Namespace, m.Name}
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
