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

	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// launch starts the supervisor of a locked job, or notes why it must wait. A
// pod is started once: one that has a state, or whose lock is held, has one.
func (c *Cluster) launch(j *job) {
	if j.launched || j.deleting != nil || j.record.neverStarts() {
		return
	}
	out, wait := c.lower(j)
	if wait == nil {
		if err := c.start(j, out); err != nil {
			c.log.Warn("cannot start a pod, trying again", zap.String("job", j.record.Job.Name), zap.Error(err))
			wait = &podstatus.Waiting{Container: out.Pod.Containers[0].Name, Reason: "CreateContainerError", Message: err.Error()}
			c.after(j, time.Second, c.launch)
		}
	}
	if wait != nil {
		c.releaseResources(j)
		c.setWaiting(j, wait)
	} else {
		j.waiting = nil
		j.isWaiting.Store(false)
		c.log.Info("a pod begins", zap.String("run", j.attempt.run), zap.String("job", j.record.Job.Name), zap.String("pod", j.record.PodName))
	}
	c.markChanged(j)
}

// setWaiting notes why a job cannot be launched, and minds its deadline.
func (c *Cluster) setWaiting(j *job, w *podstatus.Waiting) {
	w.Since = time.Now()
	if j.waiting != nil {
		w.Since = j.waiting.Since
	} else if at := lower.Deadline(j.record.Job); !at.IsZero() {
		c.after(j, time.Until(at), c.expire)
	}
	j.waiting = w
	j.isWaiting.Store(true)
}

// expire ends a job that could not begin before its deadline.
func (c *Cluster) expire(j *job) {
	if j.launched || j.record.neverStarts() {
		return
	}
	j.record.Expired = time.Now()
	if err := shimapi.Write(c.disk.record(j.id), j.record); err != nil {
		c.log.Warn("cannot write a record", zap.String("job", j.record.Job.Name), zap.Error(err))
	}
	c.finalize(j)
	c.markChanged(j)
}

// lower makes what the supervisor is told.
func (c *Cluster) lower(j *job) (lower.Output, *podstatus.Waiting) {
	gpus, ok := c.allocateGPUs(j)
	if !ok {
		return lower.Output{}, &podstatus.Waiting{Reason: "Unschedulable", NoNode: true, Message: "0/1 nodes are available: 1 Insufficient " + validate.GPU + "."}
	}
	if !c.claimPorts(j) {
		return lower.Output{}, &podstatus.Waiting{Reason: "Unschedulable", NoNode: true, Message: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."}
	}
	env := c.podEnv(j)
	out, missing := lower.Pod(lower.Input{
		Job: j.record.Job, ID: j.id, Index: j.record.Index, PodName: j.record.PodName, PodUID: j.record.PodUID,
		Labels: podstatus.Labels(j.record.Job, j.record.Index), Annotations: podstatus.Annotations(j.record.Job, j.record.Index),
		Network: j.record.network(), Hosts: env.hosts, IP: j.record.address(), HostIP: ip, Node: c.node, Env: c.env,
		Dir: c.disk.pod(j.id), State: c.disk.state(j.id), Lock: c.disk.lockFile(j.id), Binary: c.binary,
		Namespaces: c.machine.NoNamespaces == "", Private: c.settings.Private, HasGPUs: c.machine.GPUs > 0, GPUs: gpus, ConfigMaps: env.configMaps, Secrets: env.secrets,
	})
	switch {
	case missing == nil:
		return out, nil
	case missing.Container != "":
		if c.settings.Secrets != "" {
			c.after(j, time.Second, c.launch) // the user may put it there
			missing.Message += env.remedy
		}
		return out, &podstatus.Waiting{Container: missing.Container, Reason: "CreateContainerConfigError", Message: missing.Message}
	}
	return out, &podstatus.Waiting{Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", missing.Volume, missing.Message)}
}

// start writes what the supervisor needs and starts it.
func (c *Cluster) start(j *job, out lower.Output) error {
	if err := createVolumes(out); err != nil {
		return err
	}
	if len(j.record.GPUs) > 0 {
		if err := shimapi.Write(c.disk.record(j.id), j.record); err != nil {
			return err
		}
	}
	c.createGroups(&out.Pod)
	if err := shimapi.Write(filepath.Join(c.disk.pod(j.id), shimapi.PodFile), out.Pod); err != nil {
		return err
	}
	lock, err := c.disk.lock(j.id)
	if err != nil {
		return fmt.Errorf("take the pod's lock: %w", err)
	}
	defer lock.Close() //nolint:errcheck // the supervisor has it too
	if j.record.Number > 0 {
		err = c.startInNetwork(j, lock)
	} else {
		j.pid, err = c.isolation.startShim(c.binary, c.disk.pod(j.id), lock)
	}
	if err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	j.launched = true
	return nil
}

// createVolumes makes the volumes and what they begin with. It may be repeated.
func createVolumes(out lower.Output) error {
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

func writeFile(f lower.File) error {
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
	for _, j := range c.allJobs() {
		if scope != "" && j.attempt.scope != scope || !j.isWaiting.Load() {
			continue
		}
		j.mu.Lock()
		if j.waiting != nil && !j.removing {
			c.launch(j)
		}
		j.mu.Unlock()
	}
}

// allJobs returns all jobs, in no order.
func (c *Cluster) allJobs() []*job {
	c.mu.Lock()
	defer c.mu.Unlock()
	js := make([]*job, 0, len(c.jobs))
	for _, j := range c.jobs {
		js = append(js, j)
	}
	return js
}

// allocateGPUs gives a locked job the GPUs that it asks for, if so many are free.
func (c *Cluster) allocateGPUs(j *job) ([]int, bool) {
	want := validate.GPUCount(j.record.Job)
	if want == 0 || len(j.record.GPUs) == want {
		return j.record.GPUs, true
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
	j.record.GPUs = free
	return free, true
}

// releaseResources takes back a locked job's GPUs and ports, and reports whether it had any.
func (c *Cluster) releaseResources(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	released := false
	for id, holder := range c.gpus {
		if holder == j.id {
			delete(c.gpus, id)
			released = true
		}
	}
	for n, p := range c.ports {
		delete(p.jobs, j.id)
		if len(p.jobs) == 0 {
			delete(c.ports, n)
			released = true
		}
	}
	if !j.launched {
		j.record.GPUs = nil
	}
	return released
}
