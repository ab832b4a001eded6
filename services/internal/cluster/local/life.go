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

	"github.com/benchmark-ai/bai/services/internal/cluster/local/accept"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
)

// adopt takes over what the cluster before left, and says how many jobs that is.
func (c *Cluster) adopt() (int, error) {
	c.adoptObjects()
	if err := c.adoptPods(); err != nil {
		return 0, err
	}
	c.tidy()
	c.tidyNetworks()
	jobs := c.all()
	for _, j := range jobs {
		j.mu.Lock()
		c.resume(j)
		j.mu.Unlock()
	}
	for _, at := range c.everything() {
		c.introduce(at)
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
	c.regroup()
	for _, j := range c.jobs {
		c.names[name{"Job", j.attempt.scope, j.rec.Job.Name}] = true
		for _, id := range j.rec.GPUs {
			c.gpus[id] = j.id
		}
		if j.launched && (j.state == nil || j.state.Over.IsZero()) {
			c.listen(j)
		}
	}
	return nil
}

func (c *Cluster) adoptObjects() {
	for _, path := range matching(filepath.Join(c.disk.objects(), "*.json")) {
		var o object
		if err := spec.Read(path, &o); err != nil || o.name().kind == "" {
			c.log.Error("an object cannot be read, it is removed", zap.String("path", path), zap.Error(err))
			_ = os.Remove(path)
			continue
		}
		c.objects[strings.TrimSuffix(filepath.Base(path), ".json")] = o
		c.names[o.name()] = true
	}
}

// load reads what the disk has of a job.
func (c *Cluster) load(id string) (*job, error) {
	var r record
	if err := spec.Read(c.disk.record(id), &r); err != nil {
		return nil, err
	}
	if r.Job == nil || r.id() != id {
		return nil, errors.New("its record is that of another")
	}
	j := newJob(id, r)
	var m mark
	if spec.Read(c.disk.mark(id), &m) == nil {
		j.deleting = &m
	}
	r.Job.CreationTimestamp = metav1.NewTime(r.Created)
	j.version = c.version
	var err error
	j.state, j.text, err = c.disk.readState(id)
	j.launched = j.state != nil || c.disk.held(id)
	return j, err
}

// tidy removes the states of pods that are not there. What a supervisor that
// lives is about to write stays.
func (c *Cluster) tidy() {
	entries, _ := os.ReadDir(c.disk.live())
	for _, e := range entries {
		id, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".")
		if c.jobs[id] == nil {
			_ = os.Remove(filepath.Join(c.disk.live(), e.Name()))
		}
	}
}

// resume goes on with a locked job where the process before was.
func (c *Cluster) resume(j *job) {
	switch {
	case !j.launched && j.deleting != nil:
		c.leave(j)
	case !j.launched && !j.rec.stillborn():
		j.rec.Stopped = time.Time{} // nothing of it had begun
		c.launch(j)
	case !j.launched:
		c.retire(j)
	default:
		c.follow(j)
		if !c.disk.held(j.id) {
			c.bury(j)
		}
	}
}

// changed is called for every change in the directory of states and locks.
func (c *Cluster) changed(ch change) {
	if ch.name == "" {
		for _, j := range c.all() {
			c.look(j)
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
		c.bury(j)
		return
	}
	c.look(j)
}

// look reads a job's state, and sees whether its supervisor lives.
func (c *Cluster) look(j *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.leaving || !j.launched {
		return
	}
	c.read(j)
	if !c.disk.held(j.id) {
		c.bury(j)
	}
}

// read takes note of a locked job's state.
func (c *Cluster) read(j *job) {
	state, text, err := c.disk.readState(j.id)
	if err != nil {
		c.log.Error("a pod's state cannot be read", zap.String("job", j.rec.Job.Name), zap.Error(err))
		return
	}
	if state == nil || bytes.Equal(text, j.text) {
		return
	}
	j.state, j.text = state, text
	c.touch(j)
	c.follow(j)
}

// follow does what follows from a locked job's state.
func (c *Cluster) follow(j *job) {
	if j.deleting != nil || j.halted || !j.rec.Stopped.IsZero() {
		c.tell(j)
	}
	if j.state != nil && !j.state.Over.IsZero() {
		c.retire(j)
	}
}

// retire does once what follows when a locked job has ended: others get its
// GPUs, and it goes when it was kept long enough.
func (c *Cluster) retire(j *job) {
	if j.retired {
		return
	}
	j.retired = true
	c.log.Info("a pod has ended", zap.String("run", j.attempt.run), zap.String("job", j.rec.Job.Name))
	if c.release(j) {
		c.spawn(func() { c.launchWaiting("") })
	}
	if accept.Indexed(j.rec.Job) {
		c.spawn(func() { c.settle(j.rec.Job.UID) })
		return
	}
	f := c.facts(j)
	if ttl := j.rec.Job.Spec.TTLSecondsAfterFinished; ttl != nil && f.Over() && j.deleting == nil {
		at := f.Ended().Add(time.Duration(*ttl) * time.Second)
		c.after(j, time.Until(at), func(j *job) {
			if err := c.remove(j, true); err != nil {
				c.log.Error("cannot remove a job that was kept long enough", zap.String("job", j.rec.Job.Name), zap.Error(err))
			}
		})
	}
}

// bury waits, beside everything else, until the supervisor of a locked job has
// ended, and all of its pod with it, and does what follows.
func (c *Cluster) bury(j *job) {
	if j.burying || j.leaving || !j.launched || j.ended {
		return
	}
	j.burying = true
	c.spawn(func() {
		ended := c.awaitEnd(j)
		if ended {
			c.killCutOff(j)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.burying = false
		if !ended {
			return
		}
		j.ended = true
		switch {
		case j.deleting != nil:
			c.leave(j)
		case !j.rec.Stopped.IsZero(): // its end is there to be seen, also where the supervisor was killed
			c.retire(j)
			c.touch(j)
		case j.state == nil || j.state.Over.IsZero():
			c.log.Warn("a pod's supervisor ended before its pod", zap.String("job", j.rec.Job.Name))
			c.leave(j)
			c.spawn(func() { c.removeBeside(j) })
		}
	})
}

// killCutOff kills what is left of a pod whose supervisor was killed when the platform
// was stopped.
func (c *Cluster) killCutOff(j *job) {
	j.mu.Lock()
	cutOff := !j.rec.Stopped.IsZero() && (j.state == nil || j.state.Over.IsZero())
	j.mu.Unlock()
	if cutOff {
		killLeftovers(j.id)
	}
}

// awaitEnd reports whether the supervisor has ended. The kernel lets go of its
// lock shortly before all of its pod has ended.
func (c *Cluster) awaitEnd(j *job) bool {
	pause := 100 * time.Microsecond
	for until := time.Now().Add(5 * time.Second); c.disk.held(j.id); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(until) || !c.pause(pause) {
			return false
		}
	}
	j.mu.Lock()
	c.read(j)
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
		for pause := 100 * time.Microsecond; alive(state.PID, state.Born); pause = min(2*pause, 50*time.Millisecond) {
			if !c.pause(pause) {
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
func alive(pid int, born uint64) bool {
	p, err := spec.Look(strconv.Itoa(pid))
	if err != nil || p.Born != born {
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
	needle := []byte(spec.Mark + "=" + id)
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		some := false
		for _, p := range spec.Processes() {
			env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "environ"))
			if err == nil && !p.Zombie && bytes.Contains(env, needle) {
				some = unix.Kill(p.PID, unix.SIGKILL) == nil || some
			}
		}
		if !some {
			return
		}
		time.Sleep(pause)
	}
}
