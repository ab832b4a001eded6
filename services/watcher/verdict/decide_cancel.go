package verdict

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// endedBeforeDeletion reports whether an attempt ended before its deletion was requested, so that its benchmark got no SIGTERM. Kubernetes
// gives both times in whole seconds: an end in the second of the deletion counts as caused by it. A container that the kubelet could not
// find any more has no time: its end counts as caused by the deletion, too.
func endedBeforeDeletion(s Observation) bool {
	if jobEndedBeforeDeletion(s) {
		return true
	}
	deletedAt, pods := deletionRequestedAt(s.Seen), mainPodsOnly(s).Seen.Pods
	for _, p := range pods {
		c, ok := objects.Container(p, cluster.ContainerBenchmark)
		if t := c.State.Terminated; !ok || t == nil || t.FinishedAt.IsZero() || !isBefore(t.FinishedAt.Time, deletedAt) {
			return false
		}
		if _, left := objects.StepAfter(p); left || !isBefore(objects.LastEnd([]corev1.Pod{p}), deletedAt) {
			return false
		}
	}
	return len(pods) > 0
}

// jobEndedBeforeDeletion reports whether the status of the jobs whose end the run waits for shows an end before the request of their
// deletion.
func jobEndedBeforeDeletion(s Observation) bool {
	ended := func(j *batchv1.Job, t batchv1.JobConditionType) bool {
		c, ok := cluster.Condition(j, t)
		return ok && isBefore(c.LastTransitionTime.Time, deletionRequestedAt(s.Seen))
	}
	complete := ended(s.Seen.Job, batchv1.JobComplete)
	for _, j := range awaitedJobs(s) {
		complete = complete && ended(j, batchv1.JobComplete)
	}
	return complete || ended(s.Seen.Job, batchv1.JobFailed)
}

// isBefore reports whether t is before deletedAt. The zero time means that no deletion was requested.
func isBefore(t, deletedAt time.Time) bool { return deletedAt.IsZero() || t.Before(deletedAt) }

// deletionRequestedAt returns when the deletion of an attempt was requested: of its jobs, or, if these are gone or stay, of its pods. It is
// zero if none was.
func deletionRequestedAt(seen cluster.Snapshot) time.Time {
	var first time.Time
	earlier := func(t time.Time) {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	for _, j := range seen.Others {
		if j.DeletionTimestamp != nil {
			earlier(j.DeletionTimestamp.Time)
		}
	}
	if j := seen.Job; j != nil && j.DeletionTimestamp != nil {
		earlier(j.DeletionTimestamp.Time)
	}
	if !first.IsZero() {
		return first
	}
	for _, p := range seen.Pods {
		if p.DeletionTimestamp != nil {
			earlier(objects.DeletionRequestedAt(p))
		}
	}
	return first
}
