package shim

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// Bounds of a pod's life that its spec does not give.
const (
	initialBackoff     = 100 * time.Millisecond // before a sidecar that crashed is started again; doubled each time
	maxBackoff         = 30 * time.Second
	backoffResetAfter  = time.Minute            // a sidecar that ran so long starts with the first pause again
	minSidecarGrace    = 2 * time.Second        // the least that a sidecar is given to end
	signalHandlerDelay = 500 * time.Millisecond // how long a sidecar of ours may take until it listens to signals
)

// Signals that do not tell of a crash, by number.
const (
	sigKill = 9
	sigTerm = 15
)

// actionSet is what a supervisor has to do now. Containers are told by their index.
type actionSet struct {
	Start    []int
	Term     []int     // send SIGTERM
	Kill     []int     // send SIGKILL
	Deadline bool      // note that the deadline has passed, and decide again
	Done     bool      // nothing is left to be done
	Wake     time.Time // when to decide again if nothing happens before; zero means never
}

// isEmpty reports whether there is nothing to do but to wait.
func (p actionSet) isEmpty() bool {
	return len(p.Start) == 0 && len(p.Term) == 0 && len(p.Kill) == 0 && !p.Deadline && !p.Done
}

// decide returns what has to be done for pod p in state s, as a kubelet would
// with restart policy Never:
//
//   - init containers run one after the other, a sidecar begins in its place
//     among them and the next goes on, the main ones begin together;
//   - a sidecar that ends is started again, after a pause that grows;
//   - when all main containers have ended, or an init container has failed, or
//     the pod is stopped, what is no sidecar is told to end first, then the
//     sidecars, the last first, each killed when its grace is over;
//   - a sidecar that crashed, at that time or while it ends, is started again
//     within the grace, so that it can finish its work;
//   - a sidecar of ours, which ends by itself soon after the benchmark, is not
//     told to while it starts, and SIGTERM ends it only then.
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

// startNext starts what can be started.
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
			return actions // whether it could be started decides what is next
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

// endPod ends what still runs, in a pod that is to end since a time.
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

// stopContainer tells a container to end, and kills it after until, or earlier where somebody
// has stopped it, so that it cannot end.
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

// graceEnd is when a sidecar's grace is over. A pod that is stopped has one grace
// for all its containers.
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

// hasCrashed reports whether a container ended, and not because it was told to.
func hasCrashed(c shimapi.Container, st shimapi.ContainerStatus) bool {
	if st.Termination == nil || st.Termination.Problem != "" || !st.KillSentAt.IsZero() {
		return false
	}
	if st.TermSentAt.IsZero() {
		return st.Termination.Code != 0
	}
	return st.Termination.Signal != 0 && (st.Termination.Signal != sigTerm || c.RunsPodBinary)
}

// isAnyRunning reports whether a sidecar, or anything else, runs.
func isAnyRunning(p shimapi.Pod, s shimapi.State, sidecar bool) bool {
	for i, c := range p.Containers {
		if (c.Kind == shimapi.Sidecar) == sidecar && s.Containers[i].Running() {
			return true
		}
	}
	return false
}

// earliest returns the earlier of two times, of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isOOM reports whether a container ended badly for want of memory. Its own group,
// where it has one, counts the processes of it that the kernel killed, whichever they
// were (-1 where no group counts); else it must have been killed itself while the
// kernel killed anything on the machine.
func isOOM(code int, group, machine int64) bool {
	if group >= 0 {
		return code != 0 && group > 0
	}
	return code == 128+sigKill && machine > 0
}
