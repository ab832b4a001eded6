//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
	"github.com/benchmark-ai/bai/services/internal/pod/proc"
)

// Run runs the pod that dir describes, until nothing of it is left. A signal
// stops the pod: its containers are told to end, and killed after its grace.
//
// It must be given the pod's lock as descriptor spec.LockFD, and runs a pod
// once: one that has a state is refused.
func Run(dir string, signals <-chan os.Signal) error {
	s := &supervisor{dir: dir, running: make(map[int]int)}
	if err := s.begin(); err != nil {
		return fmt.Errorf("supervise %s: %w", dir, err)
	}
	unix.Umask(0o022) // as in a container
	s.table = proc.NewTable()
	s.isolate()
	s.loop(signals)
	s.sweep()
	s.state.Over = time.Now()
	s.saveAtLast()
	return nil
}

// Probe says why a pod in dir could not have namespaces of its own, nil if it
// could. It is run in such namespaces.
func Probe(dir string) error {
	_, err := newRoots(dir, spec.Pod{})
	return err
}

type supervisor struct {
	dir     string
	pod     spec.Pod
	state   spec.State
	table   *proc.Table
	inside  *proc.Starter // in the pod's network; nil where it has none of its own
	running map[int]int   // container by process ID
	logs    logs
	roots   *roots
	broken  error // why the pod has no roots
	ooms    int64 // that the kernel counted when the pod began
	dirty   bool  // the state was not saved
}

// begin reads what to run and says who runs it, before anything runs.
func (s *supervisor) begin() error {
	if err := spec.Read(filepath.Join(s.dir, spec.PodFile), &s.pod); err != nil {
		return err
	}
	if err := lock(s.pod.Lock); err != nil {
		return fmt.Errorf("take its lock: %w", err)
	}
	syscall.CloseOnExec(spec.LockFD)
	if _, err := os.Lstat(s.pod.State); err == nil {
		return fmt.Errorf("it was run before: %w", os.ErrExist)
	}
	pid, born, err := whoAmI()
	if err != nil {
		return err
	}
	s.ooms = oomKills()
	s.state = spec.State{PID: pid, Born: born, Began: time.Now(), Containers: make([]spec.Status, len(s.pod.Containers))}
	return s.saveFirst()
}

// lock takes the lock that the supervisor was born with.
func lock(path string) error {
	var born, want unix.Stat_t
	if err := errors.Join(unix.Fstat(spec.LockFD, &born), unix.Stat(path, &want)); err != nil {
		return err
	}
	if born.Dev != want.Dev || born.Ino != want.Ino {
		return fmt.Errorf("descriptor %d is not %s: %w", spec.LockFD, path, syscall.EBADF)
	}
	return unix.Flock(spec.LockFD, unix.LOCK_EX|unix.LOCK_NB)
}

// saveFirst writes the first state, and waits while there is no room for it.
func (s *supervisor) saveFirst() error {
	for {
		err := spec.Write(s.pod.State, s.state)
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		time.Sleep(time.Second)
	}
}

// isolate makes the pod a world of its own, as far as the kernel allows.
func (s *supervisor) isolate() {
	if !s.pod.Namespaces {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		return
	}
	if n := s.pod.Network; n != nil {
		syscall.CloseOnExec(spec.NetworkFD)
		s.inside, s.broken = s.table.Within(func() error { return join(*n, spec.NetworkFD) })
		_ = unix.Close(spec.NetworkFD)
	}
	if s.broken == nil {
		s.roots, s.broken = newRoots(s.dir, s.pod)
	}
}

// loop decides and acts until the pod is over.
func (s *supervisor) loop(signals <-chan os.Signal) {
	for {
		wake := s.lookForFrozen()
		plan := Decide(s.pod, s.state, time.Now())
		if plan.Over {
			return
		}
		if !plan.idle() {
			s.act(plan)
			continue
		}
		s.save()
		s.await(soonest(plan.Wake, wake), signals)
	}
}

func (s *supervisor) act(plan Plan) {
	s.dirty = true
	now := time.Now()
	if plan.Deadline {
		s.state.Stopped, s.state.Deadline = now, true
	}
	for _, i := range plan.Start {
		s.start(i)
	}
	for _, i := range plan.Term {
		st := &s.state.Containers[i]
		st.Termed = now
		_ = unix.Kill(st.PID, unix.SIGTERM)
		_ = unix.Kill(-st.PID, unix.SIGCONT) // what is stopped cannot end
	}
	for _, i := range plan.Kill {
		st := &s.state.Containers[i]
		st.Killed = now
		_ = unix.Kill(-st.PID, unix.SIGKILL)
	}
}

// lookForFrozen notes which of the containers that were told to end are stopped by a
// signal, and returns when to look again, zero where none was told to.
func (s *supervisor) lookForFrozen() (again time.Time) {
	for i := range s.state.Containers {
		st := &s.state.Containers[i]
		if !st.Running() || st.Termed.IsZero() || !st.Killed.IsZero() {
			continue
		}
		st.Frozen = frozen(st.PID)
		again = time.Now().Add(time.Second)
	}
	return again
}

// frozen reports whether a signal has stopped a child of this process.
func frozen(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == int32(unix.SIGCHLD)
}

// await waits until a container ends, somebody stops the pod, or it is time.
func (s *supervisor) await(wake time.Time, signals <-chan os.Signal) {
	if s.dirty {
		wake = soonest(wake, time.Now().Add(time.Second))
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
		s.ended(e)
	case <-signals:
		if s.state.Stopped.IsZero() {
			s.state.Stopped, s.dirty = time.Now(), true
		}
	}
}

// ended notes how a container ended, and ends what it started in its session's
// first process group.
func (s *supervisor) ended(e proc.Exit) {
	i, ok := s.running[e.PID]
	if !ok {
		return
	}
	delete(s.running, e.PID)
	_ = unix.Kill(-e.PID, unix.SIGKILL)
	st := &s.state.Containers[i]
	st.PID, s.dirty = 0, true
	st.End = &spec.End{Code: e.Code, Signal: int(e.Signal), Started: st.Started, Ended: e.At}
	st.End.OOM = st.Killed.IsZero() && starved(e.Code, groupKills(s.pod.Containers[i].Groups), oomKills()-s.ooms)
	st.End.Message = s.lastWords(i, e.Code)
}

// save writes the state. Where it cannot, for want of room, it is tried again
// at the next occasion.
func (s *supervisor) save() {
	if s.dirty {
		s.dirty = spec.Write(s.pod.State, s.state) != nil
	}
}

// saveAtLast writes the last state, and waits until there is room for it.
func (s *supervisor) saveAtLast() {
	for spec.Write(s.pod.State, s.state) != nil {
		time.Sleep(time.Second)
	}
}
