package verdict

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// promptShipping is how long a collector normally takes after the benchmark. One that takes longer cannot ship its data.
const promptShipping = 10 * time.Second

// collectorRunning reports whether the collector of a pod runs though the benchmark and the steps after it and at the end have
// ended, since when, and when the pod ends all the same.
func collectorRunning(p corev1.Pod) (end, until time.Time, ok bool) {
	bench, _ := containerStatus(p, cluster.ContainerBenchmark)
	c, _ := containerStatus(p, cluster.ContainerCollect)
	_, left := stepAfter(p)
	if _, ending := stepAtEnd(p); ending || left || bench.State.Terminated == nil || c.State.Running == nil {
		return time.Time{}, time.Time{}, false
	}
	end = lastEndWithAlways(p)
	if p.DeletionTimestamp != nil {
		return end, p.DeletionTimestamp.Time, true
	}
	grace := time.Duration(corev1.DefaultTerminationGracePeriodSeconds) * time.Second
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	return end, end.Add(grace), true
}

// shippingVerdict returns v while the collector may be prompt. After that the message says why the pod still exists, and how long it may.
func shippingVerdict(s Observation, v Verdict, end, until time.Time, message string) Verdict {
	if promptUntil := end.Add(promptShipping); s.Now.Before(promptUntil) {
		v.RecheckAt = promptUntil
		return v
	}
	v.Message = fmt.Sprintf("%s; its pod is kept until %s at most, because output is owed that its collector could not ship yet",
		message, until.UTC().Format("2006-01-02 15:04:05 MST"))
	return v
}

// lostOutput returns the text that output was lost with its pods, empty if none was.
func lostOutput(s Observation) string {
	for _, p := range s.Seen.Pods {
		c, _ := containerStatus(p, cluster.ContainerCollect)
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("; output of the %s is lost: %s", describePod(p), cmp.Or(lastWords(t.Message), clusterMessage(t)))
		}
	}
	return ""
}
