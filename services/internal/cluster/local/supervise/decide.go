package supervise

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
)

// Bounds of a pod's life that its spec does not give.
const (
	firstPause   = 100 * time.Millisecond // before a sidecar that crashed is started again; doubled each time
	longestPause = 30 * time.Second
	sound        = time.Minute            // a sidecar that ran so long starts with the first pause again
	lastGrace    = 2 * time.Second        // the least that a sidecar is given to end
	settling     = 500 * time.Millisecond // how long a sidecar of ours may take until it listens to signals
)

// Signals that do not tell of a crash, by number.
const (
	sigKill = 9
	sigTerm = 15
)

// Plan is what a supervisor has to do now. Containers are told by their index.
type Plan struct {
	Start    []int
	Term     []int     // send SIGTERM
	Kill     []int     // send SIGKILL
	Deadline bool      // note that the deadline has passed, and decide again
	Over     bool      // nothing is left to be done
	Wake     time.Time // when to decide again if nothing happens before; zero means never
}

// idle reports whether there is nothing to do but to wait.
func (p Plan) idle() bool {
	return len(p.Start) == 0 && len(p.Term) == 0 && len(p.Kill) == 0 && !p.Deadline && !p.Over
}

// Decide returns what has to be done for pod p in state s, as a kubelet would
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
func Decide(p spec.Pod, s spec.State, now time.Time) Plan {
	if s.Stopped.IsZero() && !p.Deadline.IsZero() && !now.Before(p.Deadline) {
		return Plan{Deadline: true}
	}
	if since, ok := ending(p, s); ok {
		return end(p, s, since, now)
	}
	plan := advance(p, s, now)
	if s.Stopped.IsZero() {
		plan.Wake = soonest(plan.Wake, p.Deadline)
	}
	return plan
}

// ending reports whether the pod is to end, and since when.
func ending(p spec.Pod, s spec.State) (time.Time, bool) {
	if !s.Stopped.IsZero() {
		return s.Stopped, true
	}
	var last time.Time
	for i, c := range p.Containers {
		e := s.Containers[i].End
		switch {
		case c.Kind == spec.Init && e != nil && e.Code != 0:
			return e.Ended, true
		case c.Kind == spec.Main && e == nil:
			return time.Time{}, false
		case c.Kind == spec.Main && e.Ended.After(last):
			last = e.Ended
		}
	}
	return last, true
}

// advance starts what can be started.
func advance(p spec.Pod, s spec.State, now time.Time) Plan {
	var plan Plan
	for i, c := range p.Containers {
		st := s.Containers[i]
		switch {
		case st.Running() && c.Kind == spec.Init:
			return plan
		case st.Running(), c.Kind != spec.Sidecar && st.End != nil:
		case c.Kind == spec.Main:
			plan.Start = append(plan.Start, i)
		case st.End == nil:
			plan.Start = append(plan.Start, i)
			return plan // whether it could be started decides what is next
		default:
			if again(&plan, i, st, now); st.End.Problem != "" {
				return plan // it never ran
			}
		}
	}
	return plan
}

// again starts a sidecar once its pause is over.
func again(plan *Plan, i int, st spec.Status, now time.Time) {
	at := st.End.Ended.Add(pause(st))
	if now.Before(at) {
		plan.Wake = soonest(plan.Wake, at)
		return
	}
	plan.Start = append(plan.Start, i)
}

func pause(st spec.Status) time.Duration {
	if st.End.Ended.Sub(st.End.Started) >= sound {
		return firstPause
	}
	return min(firstPause<<min(st.Restarts, 16), longestPause)
}

// end ends what still runs, in a pod that is to end since a time.
func end(p spec.Pod, s spec.State, since, now time.Time) Plan {
	var plan Plan
	for i, c := range p.Containers {
		if c.Kind != spec.Sidecar && s.Containers[i].Running() {
			stop(&plan, i, s.Containers[i], s.Containers[i].Termed.Add(p.Grace), now)
		}
	}
	if running(p, s, false) {
		return plan
	}
	for i, c := range slices.Backward(p.Containers) {
		st := s.Containers[i]
		switch {
		case c.Kind != spec.Sidecar:
		case st.Running() && c.Ours && st.Termed.IsZero() && now.Before(st.Started.Add(settling)):
			plan.Wake = st.Started.Add(settling)
			return plan
		case st.Running():
			stop(&plan, i, st, until(s, st, max(p.Grace, p.Owed)), now)
			return plan
		case crashed(c, st) && now.Before(since.Add(max(p.Grace, p.Owed))):
			again(&plan, i, st, now)
			return plan
		}
	}
	plan.Over = true
	return plan
}

// stop tells a container to end, and kills it after until, or earlier where somebody
// has stopped it, so that it cannot end.
func stop(plan *Plan, i int, st spec.Status, until, now time.Time) {
	switch {
	case st.Termed.IsZero():
		plan.Term = append(plan.Term, i)
	case !st.Killed.IsZero():
	case st.Frozen && !now.Before(st.Termed.Add(spec.FrozenGrace)):
		plan.Kill = append(plan.Kill, i)
	case now.Before(until):
		plan.Wake = soonest(plan.Wake, until)
	default:
		plan.Kill = append(plan.Kill, i)
	}
}

// until is when a sidecar's grace is over. A pod that is stopped has one grace
// for all its containers.
func until(s spec.State, st spec.Status, grace time.Duration) time.Time {
	if s.Stopped.IsZero() {
		return st.Termed.Add(grace)
	}
	at := s.Stopped.Add(grace)
	if least := st.Termed.Add(lastGrace); at.Before(least) {
		return least
	}
	return at
}

// crashed reports whether a container ended, and not because it was told to.
func crashed(c spec.Container, st spec.Status) bool {
	if st.End == nil || st.End.Problem != "" || !st.Killed.IsZero() {
		return false
	}
	if st.Termed.IsZero() {
		return st.End.Code != 0
	}
	return st.End.Signal != 0 && (st.End.Signal != sigTerm || c.Ours)
}

// running reports whether a sidecar, or anything else, runs.
func running(p spec.Pod, s spec.State, sidecar bool) bool {
	for i, c := range p.Containers {
		if (c.Kind == spec.Sidecar) == sidecar && s.Containers[i].Running() {
			return true
		}
	}
	return false
}

// soonest returns the earlier of two times, of which zero means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// starved reports whether a container ended badly for want of memory. Its own group,
// where it has one, counts the processes of it that the kernel killed, whichever they
// were (-1 where no group counts); else it must have been killed itself while the
// kernel killed anything on the machine.
func starved(code int, group, machine int64) bool {
	if group >= 0 {
		return code != 0 && group > 0
	}
	return code == 128+sigKill && machine > 0
}
