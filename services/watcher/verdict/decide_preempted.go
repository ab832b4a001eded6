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

// preempted: a job whose benchmark had begun was suspended again, as Kueue does for a workload of higher priority. Once resumed, the job
// would run the benchmark a second time, and the output of both would be that of one attempt.
func preempted(s Observation) (Verdict, bool) {
	if s.Seen.Job == nil || endedBeforeDeletion(s) {
		return Verdict{}, false
	}
	return suspendedAgain(s)
}

// preemptedBeforeFailure: a job was suspended again, and no container of any pod failed before. A launcher fails if its workers are gone.
func preemptedBeforeFailure(s Observation) (Verdict, bool) {
	v, ok := suspendedAgain(s)
	if !ok || v.Since.IsZero() || slices.ContainsFunc(s.Seen.Pods, func(p corev1.Pod) bool { return failedBeforeDeletion(p, v.Since) }) {
		return Verdict{}, false
	}
	return v, true
}

// suspendedAgain is the verdict on a job that is suspended though its benchmark had begun.
func suspendedAgain(s Observation) (Verdict, bool) {
	for _, j := range append([]batchv1.Job{*s.Seen.Job}, s.Seen.Others...) {
		if !isSuspended(j) || !beganBefore(s, j) {
			continue
		}
		var since time.Time
		if c, ok := cluster.Condition(&j, batchv1.JobSuspended); ok {
			since = c.LastTransitionTime.Time
		}
		message := "its job was suspended from outside the platform"
		if queue := j.Labels[cluster.LabelKueueQueue]; queue != "" {
			message = fmt.Sprintf("its job had to leave the cluster's queue %s to others", queue)
		}
		if e, ok := objects.LastEvent(objects.EventsOf(s.Seen.Events, j.Name), "Stopped"); ok { // of Kueue
			message += ": " + e.Message
		}
		return failedVerdict(event.ClassInfra, event.Preempted, since, "%s", message), true
	}
	return Verdict{}, false
}

// requeued: a job was suspended again before a benchmark of its pods had begun. The pods are being deleted, and it waits for its turn.
func requeued(s Observation) (Verdict, bool) {
	j := s.Seen.Job
	if j == nil || j.DeletionTimestamp != nil || !isSuspended(*j) || len(s.Seen.Pods) == 0 ||
		slices.ContainsFunc(s.Seen.Pods, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil }) {
		return Verdict{}, false
	}
	return suspendedVerdict(s), true
}

func isSuspended(j batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// beganBefore reports whether a benchmark of a suspended job has begun. If the pods were never seen, it assumes so of any that there were.
func beganBefore(s Observation, j batchv1.Job) bool {
	known := false
	for _, p := range pods(s) {
		if p.Labels[batchv1.JobNameLabel] != j.Name {
			continue
		}
		if _, begun := objects.BenchmarkStarted(p); begun {
			return true
		}
		known = true
	}
	_, created := objects.LastEvent(objects.EventsOf(s.Seen.Events, j.Name), "SuccessfulCreate")
	return !known && created
}
