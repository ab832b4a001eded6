//go:build linux

package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// adopt takes over what the cluster before left, and says how many jobs that is.
func (c *Cluster) adopt() (int, error) {
	c.adoptObjects()
	if err := c.adoptPods(); err != nil {
		return 0, err
	}
	c.removeOrphanedStates()
	c.removeOrphanedNetworks()
	jobs := c.allJobs()
	for _, j := range jobs {
		j.mu.Lock()
		c.resume(j)
		j.mu.Unlock()
	}
	for _, at := range c.allAttempts() {
		c.updateHostsFiles(at)
	}
	return len(jobs), nil
}

// adoptPods takes over pods, and what they hold.
func (c *Cluster) adoptPods() error {
	entries, err := os.ReadDir(c.disk.pods())
	if err != nil {
		return err
	}
	for _, e := range entries {
		j, err := c.load(e.Name())
		if err != nil {
			c.log.Error("a pod's directory cannot be read, it is removed", zap.String("id", e.Name()), zap.Error(err))
			_ = c.disk.removePod(e.Name())
			continue
		}
		c.jobs[j.id] = j
	}
	c.repairIndexedJobs()
	for _, j := range c.jobs {
		c.names[objectKey{"Job", j.attempt.scope, j.record.Job.Name}] = true
		for _, id := range j.record.GPUs {
			c.gpus[id] = j.id
		}
		if j.launched && (j.state == nil || j.state.EndedAt.IsZero()) {
			c.claimPorts(j)
		}
	}
	return nil
}

func (c *Cluster) adoptObjects() {
	for _, path := range matching(filepath.Join(c.disk.objects(), "*.json")) {
		var o object
		if err := shimapi.Read(path, &o); err != nil || o.key().kind == "" {
			c.log.Error("an object cannot be read, it is removed", zap.String("path", path), zap.Error(err))
			_ = os.Remove(path)
			continue
		}
		c.objects[strings.TrimSuffix(filepath.Base(path), ".json")] = o
		c.names[o.key()] = true
	}
}

// load reads what the disk has of a job.
func (c *Cluster) load(id string) (*job, error) {
	var r record
	if err := shimapi.Read(c.disk.record(id), &r); err != nil {
		return nil, err
	}
	if r.Job == nil || r.id() != id {
		return nil, errors.New("its record is that of another")
	}
	j := newJob(id, r)
	var m deletionMark
	if shimapi.Read(c.disk.mark(id), &m) == nil {
		j.deleting = &m
	}
	r.Job.CreationTimestamp = metav1.NewTime(r.Created)
	j.version = c.version
	var err error
	j.state, j.stateText, err = c.disk.readState(id)
	j.launched = j.state != nil || c.disk.isLocked(id)
	return j, err
}

// removeOrphanedStates removes the states of pods that are not there. What a supervisor that
// lives is about to write stays.
func (c *Cluster) removeOrphanedStates() {
	entries, _ := os.ReadDir(c.disk.stateDir())
	for _, e := range entries {
		id, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".")
		if c.jobs[id] == nil {
			_ = os.Remove(filepath.Join(c.disk.stateDir(), e.Name()))
		}
	}
}

// resume goes on with a locked job where the process before was.
func (c *Cluster) resume(j *job) {
	switch {
	case !j.launched && j.deleting != nil:
		c.removeAsync(j)
	case !j.launched && !j.record.neverStarts():
		j.record.Stopped = time.Time{} // nothing of it had begun
		c.launch(j)
	case !j.launched:
		c.finalize(j)
	default:
		c.applyState(j)
		if !c.disk.isLocked(j.id) {
			c.reap(j)
		}
	}
}

// onFileEvent is called for every change in the directory of states and locks.
func (c *Cluster) onFileEvent(ch fileEvent) {
	if ch.name == "" {
		for _, j := range c.allJobs() {
			c.refresh(j)
		}
		return
	}
	id, kind, _ := strings.Cut(ch.name, ".")
	if ch.closed != (kind == "lock") || kind != "lock" && kind != "json" {
		return
	}
	c.mu.Lock()
	j := c.jobs[id]
	c.mu.Unlock()
	if j == nil {
		return
	}
	if ch.closed {
		j.mu.Lock()
		defer j.mu.Unlock()
		c.reap(j)
		return
	}
	c.refresh(j)
}

// refresh reads a job's state, and sees whether its supervisor lives.
func (c *Cluster) refresh(j *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.removing || !j.launched {
		return
	}
	c.readState(j)
	if !c.disk.isLocked(j.id) {
		c.reap(j)
	}
}

// readState takes note of a locked job's state.
func (c *Cluster) readState(j *job) {
	state, text, err := c.disk.readState(j.id)
	if err != nil {
		c.log.Error("a pod's state cannot be read", zap.String("job", j.record.Job.Name), zap.Error(err))
		return
	}
	if state == nil || bytes.Equal(text, j.stateText) {
		return
	}
	j.state, j.stateText = state, text
	c.markChanged(j)
	c.applyState(j)
}

// applyState does what follows from a locked job's state.
func (c *Cluster) applyState(j *job) {
	if j.deleting != nil || j.halted || !j.record.Stopped.IsZero() {
		c.terminate(j)
	}
	if j.state != nil && !j.state.EndedAt.IsZero() {
		c.finalize(j)
	}
}

// finalize does once what follows when a locked job has ended: others get its
// GPUs, and it goes when it was kept long enough.
func (c *Cluster) finalize(j *job) {
	if j.finalized {
		return
	}
	j.finalized = true
	c.log.Info("a pod has ended", zap.String("run", j.attempt.run), zap.String("job", j.record.Job.Name))
	if c.releaseResources(j) {
		c.spawn(func() { c.launchWaiting("") })
	}
	if validate.IsIndexed(j.record.Job) {
		c.spawn(func() { c.reconcileIndexedJob(j.record.Job.UID) })
		return
	}
	f := c.facts(j)
	if ttl := j.record.Job.Spec.TTLSecondsAfterFinished; ttl != nil && f.HasEnded() && j.deleting == nil {
		at := f.EndedAt().Add(time.Duration(*ttl) * time.Second)
		c.after(j, time.Until(at), func(j *job) {
			if err := c.remove(j, true); err != nil {
				c.log.Error("cannot remove a job that was kept long enough", zap.String("job", j.record.Job.Name), zap.Error(err))
			}
		})
	}
}

// reap waits, beside everything else, until the supervisor of a locked job has
// ended, and all of its pod with it, and does what follows.
func (c *Cluster) reap(j *job) {
	if j.reaping || j.removing || !j.launched || j.shimEnded {
		return
	}
	j.reaping = true
	c.spawn(func() {
		ended := c.awaitEnd(j)
		if ended {
			c.killCutOff(j)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.reaping = false
		if !ended {
			return
		}
		j.shimEnded = true
		switch {
		case j.deleting != nil:
			c.removeAsync(j)
		case !j.record.Stopped.IsZero(): // its end is there to be seen, also where the supervisor was killed
			c.finalize(j)
			c.markChanged(j)
		case j.state == nil || j.state.EndedAt.IsZero():
			c.log.Warn("a pod's supervisor ended before its pod", zap.String("job", j.record.Job.Name))
			c.removeAsync(j)
			c.spawn(func() { c.removeSiblings(j) })
		}
	})
}

// killCutOff kills what is left of a pod whose supervisor was killed when the platform
// was stopped.
func (c *Cluster) killCutOff(j *job) {
	j.mu.Lock()
	cutOff := !j.record.Stopped.IsZero() && (j.state == nil || j.state.EndedAt.IsZero())
	j.mu.Unlock()
	if cutOff {
		killLeftovers(j.id)
	}
}

// awaitEnd reports whether the supervisor has ended. The kernel lets go of its
// lock shortly before all of its pod has ended.
func (c *Cluster) awaitEnd(j *job) bool {
	pause := 100 * time.Microsecond
	for until := time.Now().Add(5 * time.Second); c.disk.isLocked(j.id); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(until) || !c.sleep(pause) {
			return false
		}
	}
	j.mu.Lock()
	c.readState(j)
	child, state := j.pid, j.state
	j.mu.Unlock()
	switch {
	case child != 0:
		awaitChild(child)
		j.mu.Lock()
		j.pid = 0 // from here on it may be that of another
		_, _ = unix.Wait4(child, nil, 0, nil)
		j.mu.Unlock()
	case state != nil:
		for pause := 100 * time.Microsecond; alive(state.PID, state.StartTicks); pause = min(2*pause, 50*time.Millisecond) {
			if !c.sleep(pause) {
				return false
			}
		}
	}
	return true
}

// awaitChild waits until a child has ended, and leaves it to be reaped.
func awaitChild(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// alive reports whether a process still is the one that was born then.
func alive(pid int, startTicks uint64) bool {
	p, err := shimapi.ReadProcess(strconv.Itoa(pid))
	if err != nil || p.StartTicks != startTicks {
		return false
	}
	if p.Zombie { // ours, where a cluster before in this process started it
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	return !p.Zombie
}

// killLeftovers kills what a pod without namespaces left behind when its
// supervisor was killed.
func killLeftovers(id string) {
	marker := []byte(shimapi.EnvPodID + "=" + id)
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		killed := false
		for _, p := range shimapi.Processes() {
			env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "environ"))
			if err == nil && !p.Zombie && bytes.Contains(env, marker) {
				killed = unix.Kill(p.PID, unix.SIGKILL) == nil || killed
			}
		}
		if !killed {
			return
		}
		time.Sleep(pause)
	}
}
