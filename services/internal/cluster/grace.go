package cluster

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// AnnotationGrace is on a pod whose benchmark has less time to end than the pod, in seconds: the collector has the rest of the time to ship
// its data.
const AnnotationGrace = "benchmark-ai.dev/grace"

// BenchmarkGrace returns the time that the benchmark of a pod with such annotations has to end, or all if there is no valid
// AnnotationGrace.
func BenchmarkGrace(annotations map[string]string, all time.Duration) time.Duration {
	s, err := strconv.ParseInt(annotations[AnnotationGrace], 10, 32)
	if err != nil || s <= 0 {
		return all
	}
	return min(all, time.Duration(s)*time.Second)
}

// DeletionDeadline returns when a pod that is being deleted should have ended, zero for other pods. Until the status shows that the
// benchmark has ended, that is the deadline of the benchmark: a live node reports its end, and the collector may go on after it.
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

// BenchmarkEnded reports whether a pod has ended, or its benchmark has, and with it the steps after it.
func BenchmarkEnded(p corev1.Pod) bool {
	if !Alive(p) {
		return true
	}
	ended := false
	for _, c := range p.Status.ContainerStatuses {
		switch over := c.State.Terminated != nil; {
		case c.Name == ContainerBenchmark:
			ended = over
		case strings.HasPrefix(c.Name, ContainerStep) && !over:
			return false
		}
	}
	return ended
}
