//go:build linux

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/runner"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// jobEvents is the part of the job controller that the kubelet calls, each time with
// the job locked.
type jobEvents interface {
	stateChanged(j *job)   // the state of its pod is another
	shimEnded(j *job)      // its shim and all processes of its pod have ended
	deadlinePassed(j *job) // the deadline passed before its pod was launched
}

// kubelet launches pods and observes them, each by its shim.
type kubelet struct {
	registry   *registry
	objects    *objects
	resources  *resources
	background *background
	runner     *runner.Runner
	events     jobEvents
	folder     disk.Folder
	log        *zap.Logger
	node       string
	env        []string // that all containers inherit
	private    string   // see Settings
	secrets    userSecrets
}

const (
	killTimeout = 5 * time.Second // beyond its pod's grace, until a shim that has not ended is killed
	lastGrace   = 2 * time.Second // that a shim may add to its pod's grace
)

// launch starts the shim of a locked job, or records why the job must wait. A shim is started once: a pod that has a state, or whose lock
// is held, has a shim.
func (k *kubelet) launch(j *job) {
	if j.launched || j.deleting != nil || j.neverStarts() {
		return
	}
	out, wait := k.lower(j)
	if wait == nil {
		if err := k.start(j, out); err != nil {
			k.log.Warn("cannot start a pod, trying again", zap.String("job", j.record.Job.Name), zap.Error(err))
			wait = &podstatus.Waiting{Container: out.Pod.Containers[0].Name, Reason: "CreateContainerError", Message: err.Error()}
			k.background.after(j, launchTimer, time.Second, k.launch)
		}
	}
	if wait != nil {
		k.resources.release(j)
		k.setWaiting(j, wait)
	} else {
		j.waiting = nil
		j.isWaiting.Store(false)
		k.awaitDeadline(j)
		k.log.Info("a pod begins", zap.String("run", j.attempt.Run), zap.String("job", j.record.Job.Name),
			zap.String("pod", j.record.PodName))
	}
	k.registry.changed(j)
}

// setWaiting records why a job cannot be launched, and schedules its deadline.
func (k *kubelet) setWaiting(j *job, w *podstatus.Waiting) {
	w.Since = time.Now()
	if j.waiting != nil {
		w.Since = j.waiting.Since
	} else {
		k.awaitDeadline(j)
	}
	j.waiting = w
	j.isWaiting.Store(true)
}

// awaitDeadline schedules what happens at the deadline of a locked job. A shim ends its pod by itself, unless a signal has stopped the
// shim: it is continued, and killed if it is stopped again.
func (k *kubelet) awaitDeadline(j *job) {
	at := lower.Deadline(j.record.Job)
	if at.IsZero() {
		return
	}
	k.background.after(j, deadlineTimer, time.Until(at), func(j *job) {
		switch {
		case !j.launched:
			k.events.deadlinePassed(j)
		case !j.over():
			k.signal(j, unix.SIGCONT)
			k.killFrozen(j)
		}
	})
}

// lower returns the specification that the shim runs, or why there is none yet.
func (k *kubelet) lower(j *job) (lower.Output, *podstatus.Waiting) {
	gpus, ok := k.resources.claimGPUs(j)
	if !ok {
		return lower.Output{}, &podstatus.Waiting{
			Reason: "Unschedulable", NoNode: true,
			Message: "0/1 nodes are available: 1 Insufficient " + validate.GPU + ".",
		}
	}
	if !k.resources.claimPorts(j) {
		return lower.Output{}, &podstatus.Waiting{
			Reason: "Unschedulable", NoNode: true,
			Message: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
		}
	}
	env := k.podEnv(j)
	out, missing := lower.Pod(lower.Input{
		Job: j.record.Job, ID: j.id, Index: j.record.Index, PodName: j.record.PodName, PodUID: j.record.PodUID,
		Labels: podstatus.Labels(j.record.Job, j.record.Index), Annotations: podstatus.Annotations(j.record.Job, j.record.Index),
		Network: j.network(), Hosts: env.hosts, IP: j.address(), HostIP: ip, Node: k.node, Env: k.env,
		Dir: k.folder.Pod(j.id), State: k.folder.StateFile(j.id), Lock: k.folder.LockFile(j.id), Binary: k.runner.Binary,
		Namespaces: k.runner.NoNamespaces == "", Private: k.private, HasGPUs: k.resources.count > 0, GPUs: gpus, ConfigMaps: env.configMaps,
		Secrets: env.secrets, SecretFiles: env.files,
	})
	switch {
	case missing == nil:
		return out, nil
	case missing.Container != "":
		if k.secrets != "" {
			k.background.after(j, launchTimer, time.Second, k.launch) // the user may add the secret
			missing.Message += env.remedy
		}
		return out, &podstatus.Waiting{Container: missing.Container, Reason: "CreateContainerConfigError", Message: missing.Message}
	}
	return out, &podstatus.Waiting{Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", missing.Volume, missing.Message)}
}

// start starts the shim of a locked job.
func (k *kubelet) start(j *job, out lower.Output) (err error) {
	if len(j.record.GPUs) > 0 {
		if err := shimapi.Write(k.folder.RecordFile(j.id), j.record); err != nil {
			return err
		}
	}
	network := ""
	if j.record.Number > 0 {
		network = k.folder.Network(j.attempt)
	}
	if j.pid, err = k.runner.Start(j.id, out, network); err == nil {
		j.launched = true
	}
	return err
}

// launchWaiting tries to launch the waiting jobs in a scope again; an empty scope means all.
func (k *kubelet) launchWaiting(scope string) {
	for _, j := range k.registry.all() {
		if scope != "" && j.attempt.Scope != scope || !j.isWaiting.Load() {
			continue
		}
		j.mu.Lock()
		if j.waiting != nil && !j.removing {
			k.launch(j)
		}
		j.mu.Unlock()
	}
}

// podEnv returns the objects of a locked job's scope, the user's own secrets,
// and the names in the network of its attempt.
func (k *kubelet) podEnv(j *job) podEnv {
	s := podEnv{configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}, files: map[string]*corev1.Secret{}}
	s.remedy = k.secrets.add(j, s.secrets, s.files)
	k.objects.values(j.attempt.Scope, s.configMaps, s.secrets)
	if j.record.Number > 0 {
		s.hosts = strings.Join(k.hostLines(j.attempt), "\n") + "\n"
	}
	return s
}

// hostLines returns the names in the network of an attempt.
func (k *kubelet) hostLines(at disk.Attempt) []string {
	return k.registry.hostLines(at, k.objects.services(at))
}

// onFileEvent is called for every change in the directory of states and locks.
func (k *kubelet) onFileEvent(ch disk.FileEvent) {
	if ch.Name == "" {
		for _, j := range k.registry.all() {
			k.refresh(j)
		}
		return
	}
	id, kind, _ := strings.Cut(ch.Name, ".")
	if ch.Closed != (kind == "lock") || kind != "lock" && kind != "json" {
		return
	}
	j := k.registry.get(id)
	if j == nil {
		return
	}
	if ch.Closed {
		j.mu.Lock()
		defer j.mu.Unlock()
		k.reap(j)
		return
	}
	k.refresh(j)
}

// refresh locks a job and checks it.
func (k *kubelet) refresh(j *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k.check(j)
}

// check reads a locked job's state, and checks whether its shim runs.
func (k *kubelet) check(j *job) {
	if j.removing || !j.launched {
		return
	}
	k.readState(j)
	switch locked, err := k.folder.IsLocked(j.id); {
	case err != nil:
		k.log.Error("a pod's lock cannot be read, trying again", zap.String("job", j.record.Job.Name), zap.Error(err))
		k.checkLater(j)
	case !locked:
		k.reap(j)
	}
}

// checkLater checks a locked job again after a second.
func (k *kubelet) checkLater(j *job) { k.background.after(j, checkTimer, time.Second, k.check) }

// readState reads a locked job's state from disk. It is false if the state cannot be read now; then it is read again later.
func (k *kubelet) readState(j *job) bool {
	state, text, err := k.folder.ReadState(j.id)
	if err != nil {
		k.log.Error("a pod's state cannot be read", zap.String("job", j.record.Job.Name), zap.Error(err))
		if disk.Unknown(err) {
			k.checkLater(j)
			return false
		}
		return true
	}
	if state == nil || bytes.Equal(text, j.stateText) {
		return true
	}
	j.state, j.stateText = state, text
	k.registry.changed(j)
	k.events.stateChanged(j)
	return true
}

// reap waits, in the background, until the shim of a locked job has ended, and all processes of its pod with it.
func (k *kubelet) reap(j *job) {
	if j.reaping || j.removing || !j.launched || j.shimEnded {
		return
	}
	j.reaping = true
	k.background.spawn(func(ctx context.Context) {
		ended := k.awaitEnd(ctx, j)
		if ended {
			killCutOff(ctx, j)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.reaping = false; !ended {
			k.checkLater(j)
			return
		}
		j.shimEnded = true
		k.events.shimEnded(j)
	})
}

// killCutOff kills the remaining processes of a pod whose shim was killed when the platform was stopped.
func killCutOff(ctx context.Context, j *job) {
	j.mu.Lock()
	cutOff := !j.record.Stopped.IsZero() && !j.over()
	j.mu.Unlock()
	if cutOff {
		runner.KillLeftovers(ctx, j.id)
	}
}

// awaitEnd reports whether the shim has ended and its last state is known. The kernel lets go of its lock shortly
// before all processes of its pod have ended.
func (k *kubelet) awaitEnd(ctx context.Context, j *job) bool {
	if !k.runner.AwaitUnlocked(ctx, j.id) {
		return false
	}
	j.mu.Lock()
	known := k.readState(j)
	child, state := j.pid, j.state
	j.mu.Unlock()
	switch {
	case !known:
		return false
	case child != 0:
		runner.AwaitChild(child)
		j.mu.Lock()
		j.pid = 0 // another process may get this ID from here on
		_, _ = unix.Wait4(child, nil, 0, nil)
		j.mu.Unlock()
	case state != nil:
		return runner.AwaitGone(ctx, state)
	}
	return true
}

// terminate sends SIGTERM to the shim of a locked job, once, and kills the shim if it does not end. A shim without a state might miss the
// signal: terminate is called again with its first state.
func (k *kubelet) terminate(j *job) {
	if j.shimEnded {
		return
	}
	if !j.killScheduled {
		j.killScheduled = true
		k.background.after(j, killTimer, grace(j.record.Job)+lastGrace+killTimeout, func(j *job) {
			if !j.shimEnded {
				k.log.Warn("a pod's supervisor does not end, it is killed", zap.String("job", j.record.Job.Name))
				k.signal(j, unix.SIGKILL)
			}
		})
		k.killFrozen(j)
	}
	if !j.termSent && j.state != nil {
		j.termSent = true
		k.signal(j, unix.SIGTERM)
		k.signal(j, unix.SIGCONT) // a stopped process cannot end
	}
}

// killFrozen kills the shim of a locked job that has to end, or whose deadline has passed, if a signal has stopped the shim: it
// cannot use its grace. It checks again
// every shimapi.FrozenGrace.
func (k *kubelet) killFrozen(j *job) {
	k.background.after(j, frozenTimer, shimapi.FrozenGrace, func(j *job) {
		switch {
		case j.shimEnded:
		case runner.Frozen(j.pid, j.state):
			k.log.Warn("a pod's supervisor is stopped by a signal, it is killed", zap.String("job", j.record.Job.Name))
			k.signal(j, unix.SIGKILL)
		default:
			k.killFrozen(j)
		}
	})
}

// signal sends a signal to the shim of a locked job, and to no other process.
func (k *kubelet) signal(j *job, s unix.Signal) {
	if err := runner.Signal(j.pid, j.state, s); err != nil {
		k.log.Error("cannot signal a pod's supervisor", zap.String("job", j.record.Job.Name), zap.Error(err))
	}
}

// updateHostsFiles adds the names of later pods to the hosts files of the pods of an
// attempt. Lines are only added, by one write, so that no pod reads half of one.
func (k *kubelet) updateHostsFiles(at disk.Attempt) {
	lines := k.hostLines(at)
	for _, j := range k.registry.of(at) {
		if j.record.Number == 0 {
			continue
		}
		j.mu.Lock()
		if j.launched && !j.removing && !j.over() {
			if err := appendMissingLines(lower.HostsFile(k.folder.Pod(j.id)), lines); err != nil {
				k.log.Error("cannot tell a pod of others", zap.String("job", j.record.Job.Name), zap.Error(err))
			}
		}
		j.mu.Unlock()
	}
}

// appendMissingLines appends the lines that a file lacks.
func appendMissingLines(path string, lines []string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	existing := strings.Split(string(b), "\n")
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(existing, l) })
	if len(lines) == 0 {
		return nil
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // its pod reads it, whatever its user
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}
