package cluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// AnnotationGrace is on a pod whose benchmark has less time to end than the pod, in
// seconds: the rest is for its collector, while it has data that it could not ship.
const AnnotationGrace = "benchmark-ai.dev/grace"

// BenchmarkGrace is what the benchmark of a pod with such annotations has to end, or
// all where they do not say.
func BenchmarkGrace(annotations map[string]string, all time.Duration) time.Duration {
	s, err := strconv.ParseInt(annotations[AnnotationGrace], 10, 32)
	if err != nil || s <= 0 {
		return all
	}
	return min(all, time.Duration(s)*time.Second)
}

// DeletionDeadline returns when a pod that is being deleted should have ended, zero for others.
// As long as nobody has said that its benchmark ended, that is when the benchmark
// should have: a node that is alive says so, and the collector may go on.
func DeletionDeadline(p corev1.Pod) time.Time {
	if p.DeletionTimestamp == nil {
		return time.Time{}
	}
	end, given := p.DeletionTimestamp.Time, p.DeletionGracePeriodSeconds
	if given == nil || BenchmarkEnded(p) {
		return end
	}
	all := time.Duration(*given) * time.Second
	return end.Add(BenchmarkGrace(p.Annotations, all) - all)
}

// BenchmarkEnded reports whether a pod has ended, or its benchmark has.
func BenchmarkEnded(p corev1.Pod) bool {
	if !Alive(p) {
		return true
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == ContainerBenchmark && c.State.Terminated != nil {
			return true
		}
	}
	return false
}
