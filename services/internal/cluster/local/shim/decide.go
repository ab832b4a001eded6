package shim

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// Bounds of a pod's life that its spec does not set.
const (
	initialBackoff     = 100 * time.Millisecond // before a sidecar that crashed is started again; doubled each time
	maxBackoff         = 30 * time.Second
	backoffResetAfter  = time.Minute            // a sidecar that ran this long starts with the first pause again
	minSidecarGrace    = 2 * time.Second        // the least time that a sidecar has to end
	signalHandlerDelay = 500 * time.Millisecond // how long a sidecar with the pod binary may take until it handles signals
)

// Signals that do not count as a crash, by number.
const (
	sigKill = 9
	sigTerm = 15
)

// actionSet are the next actions of a shim. Containers are given by their index.
type actionSet struct {
	Start    []int
	Term     []int     // send SIGTERM
	Kill     []int     // send SIGKILL
	Deadline bool      // note that the deadline has passed, and decide again
	Done     bool      // the pod has ended completely
	Wake     time.Time // when to decide again if no event comes before; zero means never
}

// isEmpty reports whether the shim only has to wait.
func (p actionSet) isEmpty() bool {
	return len(p.Start) == 0 && len(p.Term) == 0 && len(p.Kill) == 0 && !p.Deadline && !p.Done
}

// decide returns the next actions for pod p in state s, as a kubelet would take them with restart policy Never:
//
//   - init containers run one after the other, a sidecar starts in its place among them and
//     the next one follows at once, the main ones start together;
//   - a sidecar that ends is restarted, after a pause that grows;
//   - when all main containers have ended, or an init container has failed, or the pod is
//     stopped, SIGTERM goes to the other containers first, then to the sidecars, the last
//     first, each killed when its grace is over;
//   - a sidecar that crashed, at that time or while it ends, is restarted within the grace,
//     so that it can finish its work;
//   - a sidecar with the pod binary, which ends by itself soon after the benchmark, gets no
//     SIGTERM while it starts; after that a death by SIGTERM is a crash.
func decide(p shimapi.Pod, s shimapi.State, now time.Time) actionSet {
	if s.Stopped.IsZero() && !p.Deadline.IsZero() && !now.Before(p.Deadline) {
		return actionSet{Deadline: true}
	}
	if since, ok := endingSince(p, s); ok {
		return endPod(p, s, since, now)
	}
	actions := startNext(p, s, now)
	if s.Stopped.IsZero() {
		actions.Wake = earliest(actions.Wake, p.Deadline)
	}
	return actions
}

// endingSince reports whether the pod is to end, and since when.
func endingSince(p shimapi.Pod, s shimapi.State) (time.Time, bool) {
	if !s.Stopped.IsZero() {
		return s.Stopped, true
	}
	var last time.Time
	for i, c := range p.Containers {
		e := s.Containers[i].Termination
		switch {
		case c.Kind == shimapi.Init && e != nil && e.Code != 0:
			return e.Ended, true
		case c.Kind == shimapi.Main && e == nil:
			return time.Time{}, false
		case c.Kind == shimapi.Main && e.Ended.After(last):
			last = e.Ended
		}
	}
	return last, true
}

// startNext returns the containers that can start.
func startNext(p shimapi.Pod, s shimapi.State, now time.Time) actionSet {
	var actions actionSet
	for i, c := range p.Containers {
		st := s.Containers[i]
		switch {
		case st.Running() && c.Kind == shimapi.Init:
			return actions
		case st.Running(), c.Kind != shimapi.Sidecar && st.Termination != nil:
		case c.Kind == shimapi.Main:
			actions.Start = append(actions.Start, i)
		case st.Termination == nil:
			actions.Start = append(actions.Start, i)
			return actions // its start decides what comes next
		default:
			if restartSidecar(&actions, i, st, now); st.Termination.Problem != "" {
				return actions // it never ran
			}
		}
	}
	return actions
}

// restartSidecar starts a sidecar once its pause is over.
func restartSidecar(actions *actionSet, i int, st shimapi.ContainerStatus, now time.Time) {
	at := st.Termination.Ended.Add(backoff(st))
	if now.Before(at) {
		actions.Wake = earliest(actions.Wake, at)
		return
	}
	actions.Start = append(actions.Start, i)
}

func backoff(st shimapi.ContainerStatus) time.Duration {
	if st.Termination.Ended.Sub(st.Termination.Started) >= backoffResetAfter {
		return initialBackoff
	}
	return min(initialBackoff<<min(st.Restarts, 16), maxBackoff)
}

// endPod returns the actions that end the running containers of a pod which has to end since a time.
func endPod(p shimapi.Pod, s shimapi.State, since, now time.Time) actionSet {
	var actions actionSet
	for i, c := range p.Containers {
		if c.Kind != shimapi.Sidecar && s.Containers[i].Running() {
			stopContainer(&actions, i, s.Containers[i], s.Containers[i].TermSentAt.Add(p.Grace), now)
		}
	}
	if isAnyRunning(p, s, false) {
		return actions
	}
	for i, c := range slices.Backward(p.Containers) {
		st := s.Containers[i]
		switch {
		case c.Kind != shimapi.Sidecar:
		case st.Running() && c.RunsPodBinary && st.TermSentAt.IsZero() && now.Before(st.Started.Add(signalHandlerDelay)):
			actions.Wake = st.Started.Add(signalHandlerDelay)
			return actions
		case st.Running():
			stopContainer(&actions, i, st, graceEnd(s, st, max(p.Grace, p.SidecarGrace)), now)
			return actions
		case hasCrashed(c, st) && now.Before(since.Add(max(p.Grace, p.SidecarGrace))):
			restartSidecar(&actions, i, st, now)
			return actions
		}
	}
	actions.Done = true
	return actions
}

// stopContainer sends SIGTERM to a container, and kills it after the deadline, or earlier if a signal has stopped it, so that it cannot
// end.
func stopContainer(actions *actionSet, i int, st shimapi.ContainerStatus, deadline, now time.Time) {
	switch {
	case st.TermSentAt.IsZero():
		actions.Term = append(actions.Term, i)
	case !st.KillSentAt.IsZero():
	case st.Frozen && !now.Before(st.TermSentAt.Add(shimapi.FrozenGrace)):
		actions.Kill = append(actions.Kill, i)
	case now.Before(deadline):
		actions.Wake = earliest(actions.Wake, deadline)
	default:
		actions.Kill = append(actions.Kill, i)
	}
}

// graceEnd returns when a sidecar's grace is over. A stopped pod has one grace for all its containers.
func graceEnd(s shimapi.State, st shimapi.ContainerStatus, grace time.Duration) time.Time {
	if s.Stopped.IsZero() {
		return st.TermSentAt.Add(grace)
	}
	at := s.Stopped.Add(grace)
	if least := st.TermSentAt.Add(minSidecarGrace); at.Before(least) {
		return least
	}
	return at
}

// hasCrashed reports whether a container ended by a crash, not by a signal of the shim.
func hasCrashed(c shimapi.Container, st shimapi.ContainerStatus) bool {
	if st.Termination == nil || st.Termination.Problem != "" || !st.KillSentAt.IsZero() {
		return false
	}
	if st.TermSentAt.IsZero() {
		return st.Termination.Code != 0
	}
	return st.Termination.Signal != 0 && (st.Termination.Signal != sigTerm || c.RunsPodBinary)
}

// isAnyRunning reports whether a sidecar runs or, without sidecar, any other container.
func isAnyRunning(p shimapi.Pod, s shimapi.State, sidecar bool) bool {
	for i, c := range p.Containers {
		if (c.Kind == shimapi.Sidecar) == sidecar && s.Containers[i].Running() {
			return true
		}
	}
	return false
}

// earliest returns the earlier of two times; zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isOOM reports whether a container failed for lack of memory. If it has a cgroup, group is the number of its processes that the kernel
// killed (-1 if no group counts). Else the container itself must have been killed by SIGKILL while the kernel killed any process on the
// machine.
func isOOM(code int, group, machine int64) bool {
	if group >= 0 {
		return code != 0 && group > 0
	}
	return code == 128+sigKill && machine > 0
}
