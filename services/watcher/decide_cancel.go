package watcher

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// endedFirst reports whether an attempt ended before its deletion was asked for, so
// that its benchmark was sent no TERM. Kubernetes tells both times in whole seconds:
// an end in the second of the deletion counts as its result. It tells no time for a
// container that the kubelet could not find any more: that end counts as its result,
// too.
func endedFirst(s Sight) bool {
	if jobEndedFirst(s) {
		return true
	}
	asked, pods := askedToEnd(s.Seen), main(s).Seen.Pods
	for _, p := range pods {
		c, ok := container(p, cluster.ContainerBenchmark)
		if t := c.State.Terminated; !ok || t == nil || t.FinishedAt.IsZero() || !isBefore(t.FinishedAt.Time, asked) {
			return false
		}
	}
	return len(pods) > 0
}

// jobEndedFirst reports whether a job said that it ended before its deletion was
// asked for.
func jobEndedFirst(s Sight) bool {
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c, ok := cluster.Condition(s.Seen.Job, t); ok && isBefore(c.LastTransitionTime.Time, askedToEnd(s.Seen)) {
			return true
		}
	}
	return false
}

// isBefore reports whether t comes before asked. The zero time means that nobody
// has asked.
func isBefore(t, asked time.Time) bool { return asked.IsZero() || t.Before(asked) }

// askedToEnd returns when the deletion of an attempt was asked for: of its jobs, or,
// where these are gone or stay, of its pods. It is zero where nobody has.
func askedToEnd(seen cluster.Seen) time.Time {
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
			earlier(deletionAsked(p))
		}
	}
	return first
}

// deletionAsked returns when the deletion of a pod was asked for, which is when its
// grace began.
func deletionAsked(p corev1.Pod) time.Time {
	asked := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		asked = asked.Add(-time.Duration(*grace) * time.Second)
	}
	return asked
}
