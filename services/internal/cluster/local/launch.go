//go:build linux

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/accept"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/status"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/translate"
)

// launch starts the supervisor of a locked job, or notes why it must wait. A
// pod is started once: one that has a state, or whose lock is held, has one.
func (c *Cluster) launch(j *job) {
	if j.launched || j.deleting != nil || j.rec.stillborn() {
		return
	}
	out, wait := c.translate(j)
	if wait == nil {
		if err := c.start(j, out); err != nil {
			c.log.Warn("cannot start a pod, trying again", zap.String("job", j.rec.Job.Name), zap.Error(err))
			wait = &status.Waiting{Container: out.Pod.Containers[0].Name, Reason: "CreateContainerError", Message: err.Error()}
			c.after(j, time.Second, c.launch)
		}
	}
	if wait != nil {
		c.release(j)
		c.wait(j, wait)
	} else {
		j.waiting = nil
		j.waits.Store(false)
		c.log.Info("a pod begins", zap.String("run", j.attempt.run), zap.String("job", j.rec.Job.Name), zap.String("pod", j.rec.PodName))
	}
	c.touch(j)
}

// wait notes why a job cannot be launched, and minds its deadline.
func (c *Cluster) wait(j *job, w *status.Waiting) {
	w.Since = time.Now()
	if j.waiting != nil {
		w.Since = j.waiting.Since
	} else if at := translate.Deadline(j.rec.Job); !at.IsZero() {
		c.after(j, time.Until(at), c.expire)
	}
	j.waiting = w
	j.waits.Store(true)
}

// expire ends a job that could not begin before its deadline.
func (c *Cluster) expire(j *job) {
	if j.launched || j.rec.stillborn() {
		return
	}
	j.rec.Expired = time.Now()
	if err := spec.Write(c.disk.record(j.id), j.rec); err != nil {
		c.log.Warn("cannot write a record", zap.String("job", j.rec.Job.Name), zap.Error(err))
	}
	c.retire(j)
	c.touch(j)
}

// translate makes what the supervisor is told.
func (c *Cluster) translate(j *job) (translate.Output, *status.Waiting) {
	gpus, ok := c.take(j)
	if !ok {
		return translate.Output{}, &status.Waiting{Reason: "Unschedulable", NoNode: true, Message: "0/1 nodes are available: 1 Insufficient " + accept.GPU + "."}
	}
	if !c.listen(j) {
		return translate.Output{}, &status.Waiting{Reason: "Unschedulable", NoNode: true, Message: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."}
	}
	around := c.around(j)
	out, missing := translate.Pod(translate.Input{
		Job: j.rec.Job, ID: j.id, Index: j.rec.Index, PodName: j.rec.PodName, PodUID: j.rec.PodUID,
		Labels: status.Labels(j.rec.Job, j.rec.Index), Annotations: status.Annotations(j.rec.Job, j.rec.Index),
		Network: j.rec.network(), Hosts: around.hosts, IP: j.rec.address(), HostIP: ip, Node: c.node, Env: c.env,
		Dir: c.disk.pod(j.id), State: c.disk.state(j.id), Lock: c.disk.lockFile(j.id), Binary: c.binary,
		Namespaces: c.machine.NoNamespaces == "", Private: c.settings.Private, HasGPUs: c.machine.GPUs > 0, GPUs: gpus, ConfigMaps: around.maps, Secrets: around.secrets,
	})
	switch {
	case missing == nil:
		return out, nil
	case missing.Container != "":
		if c.settings.Secrets != "" {
			c.after(j, time.Second, c.launch) // the user may put it there
			missing.Text += around.remedy
		}
		return out, &status.Waiting{Container: missing.Container, Reason: "CreateContainerConfigError", Message: missing.Text}
	}
	return out, &status.Waiting{Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", missing.Volume, missing.Text)}
}

// start writes what the supervisor needs and starts it.
func (c *Cluster) start(j *job, out translate.Output) error {
	if err := materialise(out); err != nil {
		return err
	}
	if len(j.rec.GPUs) > 0 {
		if err := spec.Write(c.disk.record(j.id), j.rec); err != nil {
			return err
		}
	}
	c.limit(&out.Pod)
	if err := spec.Write(filepath.Join(c.disk.pod(j.id), spec.PodFile), out.Pod); err != nil {
		return err
	}
	lock, err := c.disk.lock(j.id)
	if err != nil {
		return fmt.Errorf("take the pod's lock: %w", err)
	}
	defer lock.Close() //nolint:errcheck // the supervisor has it too
	if j.rec.Number > 0 {
		err = c.join(j, lock)
	} else {
		j.pid, err = c.isolated.supervise(c.binary, c.disk.pod(j.id), lock)
	}
	if err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	j.launched = true
	return nil
}

// materialise makes the volumes and what they begin with. It may be repeated.
func materialise(out translate.Output) error {
	for _, dir := range out.Dirs {
		if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // containers may have other users
			return err
		}
		if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // whatever the umask
			return err
		}
	}
	for _, f := range out.Files {
		if err := writeFile(f); err != nil {
			return err
		}
	}
	for at, to := range out.Links {
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil { //nolint:gosec // containers may have other users
			return err
		}
		if err := os.Symlink(to, at); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func writeFile(f translate.File) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil { //nolint:gosec // containers may have other users
		return err
	}
	if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
		return err
	}
	return os.Chmod(f.Path, fs.FileMode(f.Mode))
}

// launchWaiting tries again to launch what waits in a scope, or, where that is
// empty, anywhere.
func (c *Cluster) launchWaiting(scope string) {
	for _, j := range c.all() {
		if scope != "" && j.attempt.scope != scope || !j.waits.Load() {
			continue
		}
		j.mu.Lock()
		if j.waiting != nil && !j.leaving {
			c.launch(j)
		}
		j.mu.Unlock()
	}
}

// all returns all jobs, in no order.
func (c *Cluster) all() []*job {
	c.mu.Lock()
	defer c.mu.Unlock()
	js := make([]*job, 0, len(c.jobs))
	for _, j := range c.jobs {
		js = append(js, j)
	}
	return js
}

// take gives a locked job the GPUs that it asks for, if so many are free.
func (c *Cluster) take(j *job) ([]int, bool) {
	want := accept.GPUs(j.rec.Job)
	if want == 0 || len(j.rec.GPUs) == want {
		return j.rec.GPUs, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var free []int
	for id := 0; id < c.machine.GPUs && len(free) < want; id++ {
		if _, used := c.gpus[id]; !used {
			free = append(free, id)
		}
	}
	if len(free) < want {
		return nil, false
	}
	for _, id := range free {
		c.gpus[id] = j.id
	}
	j.rec.GPUs = free
	return free, true
}

// release takes back a locked job's GPUs and ports, and reports whether it had any.
func (c *Cluster) release(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	some := false
	for id, holder := range c.gpus {
		if holder == j.id {
			delete(c.gpus, id)
			some = true
		}
	}
	for n, p := range c.ports {
		delete(p.jobs, j.id)
		if len(p.jobs) == 0 {
			delete(c.ports, n)
			some = true
		}
	}
	if !j.launched {
		j.rec.GPUs = nil
	}
	return some
}
