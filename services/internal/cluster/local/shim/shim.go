//go:build linux

package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/pod/proc"
)

// Run runs the pod that dir describes, until all its processes have ended. A signal stops the pod: its containers get SIGTERM, and are
// killed after its grace.
//
// It must inherit the pod's lock as descriptor shimapi.LockFD, and runs a pod once: a pod that has a state is refused.
func Run(dir string, signals <-chan os.Signal) error {
	s := &shim{dir: dir, running: make(map[int]int)}
	if err := s.takeOver(); err != nil {
		return fmt.Errorf("supervise %s: %w", dir, err)
	}
	unix.Umask(0o022) // as in a container
	s.table = proc.NewTable()
	s.isolate()
	s.loop(signals)
	s.sweep()
	s.state.EndedAt = time.Now()
	s.saveFinal()
	return nil
}

// Probe returns why a pod in dir could not have namespaces of its own, nil if it could. It is run in such namespaces.
func Probe(dir string) error {
	_, err := newRootfs(dir, shimapi.Pod{})
	return err
}

type shim struct {
	dir         string
	pod         shimapi.Pod
	state       shimapi.State
	table       *proc.Table
	netStarter  *proc.Starter // in the pod's network; nil if it has none of its own
	running     map[int]int   // container by process ID
	logs        logs
	rootfs      *rootfs
	rootfsErr   error // why the pod has no roots
	initialOOMs int64 // that the kernel counted when the pod began
	dirty       bool  // the state was not saved
}

// takeOver reads the specification and writes the first state, before any container runs.
func (s *shim) takeOver() error {
	if err := shimapi.Read(filepath.Join(s.dir, shimapi.PodFile), &s.pod); err != nil {
		return err
	}
	if err := takeLock(s.pod.Lock); err != nil {
		return fmt.Errorf("take its lock: %w", err)
	}
	syscall.CloseOnExec(shimapi.LockFD)
	if _, err := os.Lstat(s.pod.State); err == nil {
		return fmt.Errorf("it was run before: %w", os.ErrExist)
	}
	pid, startTicks, err := ownProcess()
	if err != nil {
		return err
	}
	s.initialOOMs = oomKills()
	s.state = shimapi.State{
		PID: pid, StartTicks: startTicks, StartedAt: time.Now(),
		Containers: make([]shimapi.ContainerStatus, len(s.pod.Containers)),
	}
	return s.saveInitial()
}

// takeLock takes the lock that the shim inherited.
func takeLock(path string) error {
	var inherited, want unix.Stat_t
	if err := errors.Join(unix.Fstat(shimapi.LockFD, &inherited), unix.Stat(path, &want)); err != nil {
		return err
	}
	if inherited.Dev != want.Dev || inherited.Ino != want.Ino {
		return fmt.Errorf("descriptor %d is not %s: %w", shimapi.LockFD, path, syscall.EBADF)
	}
	return unix.Flock(shimapi.LockFD, unix.LOCK_EX|unix.LOCK_NB)
}

// saveInitial writes the first state, and retries while the disk has no room.
func (s *shim) saveInitial() error {
	for {
		err := shimapi.Write(s.pod.State, s.state)
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		time.Sleep(time.Second)
	}
}

// isolate creates the pod's own mounts and processes, as far as the kernel allows.
func (s *shim) isolate() {
	if !s.pod.Namespaces {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		return
	}
	if n := s.pod.Network; n != nil {
		syscall.CloseOnExec(shimapi.NetworkFD)
		s.netStarter, s.rootfsErr = s.table.Within(func() error { return joinNetwork(*n, shimapi.NetworkFD) })
		_ = unix.Close(shimapi.NetworkFD)
	}
	if s.rootfsErr == nil {
		s.rootfs, s.rootfsErr = newRootfs(s.dir, s.pod)
	}
}

// loop decides and acts until the pod is over.
func (s *shim) loop(signals <-chan os.Signal) {
	for {
		recheck := s.updateFrozen()
		actions := decide(s.pod, s.state, time.Now())
		if actions.Done {
			return
		}
		if !actions.isEmpty() {
			s.apply(actions)
			continue
		}
		s.save()
		s.await(earliest(actions.Wake, recheck), signals)
	}
}

func (s *shim) apply(actions actionSet) {
	s.dirty = true
	now := time.Now()
	if actions.Deadline {
		s.state.Stopped, s.state.Deadline = now, true
	}
	for _, i := range actions.Start {
		s.start(i)
	}
	for _, i := range actions.Term {
		st := &s.state.Containers[i]
		st.TermSentAt = now
		_ = unix.Kill(st.PID, unix.SIGTERM)
		_ = unix.Kill(-st.PID, unix.SIGCONT) // a stopped process cannot end
	}
	for _, i := range actions.Kill {
		st := &s.state.Containers[i]
		st.KillSentAt = now
		_ = unix.Kill(-st.PID, unix.SIGKILL)
	}
}

// updateFrozen records which of the containers that got SIGTERM are stopped by a signal, and returns when to check again, zero if none got
// it.
func (s *shim) updateFrozen() (recheck time.Time) {
	for i := range s.state.Containers {
		st := &s.state.Containers[i]
		if !st.Running() || st.TermSentAt.IsZero() || !st.KillSentAt.IsZero() {
			continue
		}
		st.Frozen = isFrozen(st.PID)
		recheck = time.Now().Add(time.Second)
	}
	return recheck
}

// isFrozen reports whether a signal has stopped a child of this process.
func isFrozen(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == int32(unix.SIGCHLD)
}

// await waits until a container ends, a signal stops the pod, or the wake time comes.
func (s *shim) await(wake time.Time, signals <-chan os.Signal) {
	if s.dirty {
		wake = earliest(wake, time.Now().Add(time.Second))
	}
	var alarm <-chan time.Time
	if !wake.IsZero() {
		t := time.NewTimer(time.Until(wake))
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-alarm:
	case e := <-s.table.Ends():
		s.onExit(e)
	case <-signals:
		if s.state.Stopped.IsZero() {
			s.state.Stopped, s.dirty = time.Now(), true
		}
	}
}

// onExit records how a container ended, and kills the rest of the first process group in its session.
func (s *shim) onExit(e proc.Exit) {
	i, ok := s.running[e.PID]
	if !ok {
		return
	}
	delete(s.running, e.PID)
	_ = unix.Kill(-e.PID, unix.SIGKILL)
	st := &s.state.Containers[i]
	st.PID, s.dirty = 0, true
	st.Termination = &shimapi.Termination{Code: e.Code, Signal: int(e.Signal), Started: st.Started, Ended: e.At}
	st.Termination.OOM = st.KillSentAt.IsZero() && isOOM(e.Code, groupKills(s.pod.Containers[i].Groups), oomKills()-s.initialOOMs)
	st.Termination.Message = s.terminationMessage(i, e.Code)
}

// save writes the state. If that fails for lack of room, the next call tries again.
func (s *shim) save() {
	if s.dirty {
		s.dirty = shimapi.Write(s.pod.State, s.state) != nil
	}
}

// saveFinal writes the last state, and retries until there is room for it.
func (s *shim) saveFinal() {
	for shimapi.Write(s.pod.State, s.state) != nil {
		time.Sleep(time.Second)
	}
}
