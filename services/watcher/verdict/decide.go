// Package verdict decides what the state of a launched attempt in the cluster means for its run: from objects, a cancel mark and the time
// follow phase, reason and class. It is pure.
package verdict

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// Observation is the state of a launched attempt at one time.
type Observation struct {
	Seen      cluster.Snapshot
	LastSeen  cluster.Snapshot // the last state in which the attempt had a job or pods
	GoneSince time.Time        // since when live reads have found nothing of the attempt; zero while something exists
	// MissingSince is since when the attempt misses one of its jobs (MissesJob); zero while it has all.
	MissingSince time.Time
	Canceled     bool // the run has a cancel mark
	Now          time.Time

	Occupancy cluster.Occupancy // where the pods of runs are; empty unless the attempt lacks room for a pod, or has ended
	NodeWait  NodeWait          // its wait for other runs; zero unless the attempt lacks room for a pod

	// PendingDeadline is how long the attempt may wait for an event that may never come.
	PendingDeadline time.Duration
	// ReadyDeadline is how long the pods may take until they are ready for each other; zero leaves the limit to the waiting container.
	ReadyDeadline time.Duration
	// Grace is how long the attempt may be missing before it counts as gone.
	Grace time.Duration
}

// MergeLastSeen returns the last known state of an attempt: seen, with the jobs of roles that are gone, and with the earlier pods if these
// are gone before the job shows why it failed.
func MergeLastSeen(before, seen cluster.Snapshot) cluster.Snapshot {
	if len(seen.Pods) == 0 {
		seen.Pods = before.Pods
	}
	seen.Others = addMissing(seen.Others, before.Others)
	if seen.Job == nil && len(seen.Others) > 0 {
		seen.Job = before.Job
	}
	return seen
}

// Verdict is the meaning of an attempt's state for its run.
type Verdict struct {
	Phase     event.Phase // PhaseFinished: the attempt is over; empty: unknown for now
	Outcome   event.Outcome
	Class     event.Class
	Reason    event.Reason
	Message   string    // for the user
	Since     time.Time // when this state began; zero if the cluster gives no time
	RecheckAt time.Time // when to decide again without a change; zero for never
}

// check is one rule. It is false if it does not apply.
type check func(Observation) (Verdict, bool)

// Decide returns the verdict of the first check that applies.
func Decide(s Observation) Verdict {
	for _, c := range []check{
		disappeared,
		canceling,
		roleDisappeared,
		complete,
		failed,
		copyFailed,
		nodeLost,
		preempted,
		requeued,
		endedEarly,
		endedUnready,
		stepsStuck,
		jobDeleted,
		otherJobFailed,
		suspended,
		podMissing,
		unschedulable,
		containerWaits,
		volumeFails,
		idleTooLong,
		peersUnknown,
		neverReady,
		preparing,
		running,
	} {
		if v, ok := c(s); ok {
			if v.Phase == event.PhaseFinished {
				v.Message += alwaysFailures(s)
			}
			return v
		}
	}
	return Verdict{Phase: event.PhasePending, Message: "preparing the pod"}
}

// disappeared: no object of the attempt exists. For a canceled run this is the end. For any other it counts only after s.Grace.
func disappeared(s Observation) (Verdict, bool) {
	if s.Seen.Job != nil || len(s.Seen.Pods) > 0 {
		return Verdict{}, false
	}
	switch confirmed := s.GoneSince.Add(s.Grace); {
	case s.GoneSince.IsZero():
		return Verdict{}, true
	case s.Canceled:
		return canceledVerdict(s), true
	case s.Now.Before(confirmed):
		return Verdict{RecheckAt: confirmed}, true
	}
	if j := s.LastSeen.Job; j != nil && j.DeletionTimestamp != nil || j == nil && len(s.LastSeen.Pods) > 0 { // deleted before its pods
		return failedVerdict(event.ClassInfra, event.JobDeleted, s.GoneSince, "its job was deleted from outside the platform"), true
	}
	return failedVerdict(event.ClassInfra, event.JobDisappeared, s.GoneSince, "its job was deleted from outside the platform"), true
}

// canceledVerdict is the end of a canceled run without objects. A benchmark that ended before it got SIGTERM keeps its own outcome; one
// that got SIGTERM is canceled, whatever its exit code.
func canceledVerdict(s Observation) Verdict {
	before := s
	before.Seen = s.LastSeen
	if endedBeforeDeletion(before) {
		for _, c := range []check{
			complete, failed, func(s Observation) (Verdict, bool) { return benchmarkFails(mainPodsOnly(s)) },
			stepFails,
		} {
			if v, ok := c(before); ok {
				return v
			}
		}
		return Verdict{Phase: event.PhaseFinished, Outcome: event.Succeeded, Message: "the benchmark finished (exit code 0)"}
	}
	return Verdict{
		Phase: event.PhaseFinished, Outcome: event.Canceled, Reason: event.CanceledByUser,
		Message: "canceled; its objects are deleted" + lostOutput(before),
	}
}

// canceling: the run is canceled, and its objects still exist. A job that ended before its deletion was requested keeps its own outcome.
func canceling(s Observation) (Verdict, bool) {
	if !s.Canceled || jobEndedBeforeDeletion(s) {
		return Verdict{}, false
	}
	v := Verdict{Phase: event.PhaseCanceling, Message: "waiting until its objects are deleted"}
	for _, p := range s.Seen.Pods {
		if step, is := objects.StepAtEnd(p); is {
			v.Message += "; " + step
		}
		if p.DeletionTimestamp == nil || hasEnded(p) {
			if end, until, shipping := objects.CollectorRunning(p); shipping {
				v = shippingVerdict(s, v, end, until, v.Message)
			}
			continue
		}
		if deadline := cluster.DeletionDeadline(p).Add(s.Grace); s.Now.Before(deadline) {
			v.RecheckAt = deadline
			continue
		}
		return Verdict{
			Phase: event.PhaseCanceling, Reason: event.NodeLost, Since: p.DeletionTimestamp.Time,
			Message: fmt.Sprintf("waiting for node %s to report the end of the %s", p.Spec.NodeName, objects.Describe(p)),
		}, true
	}
	return v, true
}

// complete: the jobs whose end the run waits for are complete, and no benchmark failed.
func complete(s Observation) (Verdict, bool) {
	c, ok := cluster.Condition(s.Seen.Job, batchv1.JobComplete)
	if !ok {
		return Verdict{}, false
	}
	for _, j := range awaitedJobs(s) {
		other, ended := cluster.Condition(j, batchv1.JobComplete)
		if !ended {
			return Verdict{}, false
		}
		if other.LastTransitionTime.After(c.LastTransitionTime.Time) {
			c = other
		}
	}
	if ofManifest(s.Seen.Job) { // whose object decides, whatever became of its pods
		return Verdict{Phase: event.PhaseFinished, Outcome: event.Succeeded, Message: "all objects of the manifest have succeeded" +
			lostOutput(s), Since: c.LastTransitionTime.Time}, true
	}
	if v, bad := benchmarkFails(mainPodsOnly(s)); bad { // other pods may be ending
		return v, true
	}
	return Verdict{
		Phase: event.PhaseFinished, Outcome: event.Succeeded, Message: "the benchmark finished (exit code 0)" + lostOutput(s),
		Since: c.LastTransitionTime.Time,
	}, true
}

// failed: the job has failed, and all of its pods have ended.
func failed(s Observation) (Verdict, bool) {
	c, ok := cluster.Condition(s.Seen.Job, batchv1.JobFailed)
	if !ok {
		if c, ok = cluster.Condition(s.Seen.Job, batchv1.JobFailureTarget); !ok || slices.ContainsFunc(s.Seen.Pods, cluster.Alive) {
			return Verdict{}, false
		}
	}
	if len(s.Seen.Pods) == 0 {
		s.Seen.Pods = s.LastSeen.Pods
	}
	s.Seen.Pods = podsOfCopy(s.Seen.Job, s.Seen.Pods)
	for _, cause := range []check{
		deadlinePassed,
		platformStopped,
		disrupted,
		podRejected,
		preemptedBeforeFailure,
		deletedBeforeFailure,
		initFails,
		benchmarkFails,
		stepFails,
		sidecarFails,
	} {
		if v, ok := cause(s); ok {
			v.Since = c.LastTransitionTime.Time
			if v.Reason != event.SidecarFailed {
				v.Message += lostOutput(s)
			}
			return v, true
		}
	}
	if ofManifest(s.Seen.Job) {
		return objectFailure(s, c), true
	}
	message := "its job failed: " + objects.JoinReasonMessage(c.Reason, c.Message)
	if len(s.Seen.Pods) == 0 {
		message += "; its pod is gone"
	}
	return failedVerdict(event.ClassInfra, event.JobDisappeared, c.LastTransitionTime.Time, "%s", message), true
}

// nodeLost: a pod was deleted because its node is lost, and the node does not report the pod's end.
func nodeLost(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		if p.DeletionTimestamp == nil || !cluster.Alive(p) {
			continue
		}
		if v, ok := disruption(p); ok && s.Now.After(cluster.DeletionDeadline(p).Add(s.Grace)) {
			return v, true
		}
	}
	return Verdict{}, false
}

// jobDeleted: the job is being deleted, and the run is not canceled.
func jobDeleted(s Observation) (Verdict, bool) {
	j := s.Seen.Job
	if j != nil && j.DeletionTimestamp == nil {
		return Verdict{}, false
	}
	v := Verdict{Phase: phase(s), Reason: event.JobDeleted, Message: "its job is being deleted from outside the platform"}
	if j != nil {
		v.Since = j.DeletionTimestamp.Time
	}
	return v, true
}

// running: the benchmark runs, or has ended and is being cleared up after.
func running(s Observation) (v Verdict, ok bool) {
	for _, p := range mainPodsOnly(s).Seen.Pods {
		c, _ := objects.Container(p, cluster.ContainerBenchmark)
		if t := c.State.Terminated; t != nil { // others may still run
			ended := fmt.Sprintf("the benchmark ended (exit code %d)", t.ExitCode)
			v = Verdict{Phase: event.PhaseRunning, Message: ended + "; collecting the rest of its output", Since: t.FinishedAt.Time}
			if step, is := objects.StepAfter(p); is {
				v.Message = ended + "; " + step
			} else if step, is := objects.StepAtEnd(p); is {
				v.Message = ended + "; " + step
			}
			if end, until, shipping := objects.CollectorRunning(p); shipping {
				v = shippingVerdict(s, v, end, until, ended)
			}
			v, ok = debounced(s, v, 4*debounce), true
		}
		if r := c.State.Running; r != nil {
			message := "running the benchmark"
			if cluster.RunsWithoutEntrypoint(p) {
				message += ", by the entrypoint of its image: output is read from the container's log, which the node may cut"
			}
			return Verdict{Phase: event.PhaseRunning, Message: message, Since: r.StartedAt.Time}, true
		}
	}
	return v, ok
}

// phase is pending until a benchmark has begun, and running from then on.
func phase(s Observation) event.Phase {
	for _, p := range mainPodsOnly(s).Seen.Pods {
		if _, ok := objects.BenchmarkStarted(p); ok {
			return event.PhaseRunning
		}
	}
	return event.PhasePending
}

// allBegun reports whether all benchmarks whose end the run waits for have begun.
func allBegun(s Observation) bool {
	pods := mainPodsOnly(s).Seen.Pods
	return len(pods) > 0 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		_, begun := objects.BenchmarkStarted(p)
		return !begun
	})
}

func failedVerdict(class event.Class, reason event.Reason, since time.Time, format string, args ...any) Verdict {
	return Verdict{
		Phase: event.PhaseFinished, Outcome: event.Failed, Class: class, Reason: reason,
		Message: fmt.Sprintf(format, args...), Since: since,
	}
}
