package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
	"github.com/benchmark-ai/bai/services/watcher/verdict/termination"
)

// deadlinePassed: the job ran for longer than its deadline.
func deadlinePassed(s Observation) (Verdict, bool) {
	exceeded := slices.ContainsFunc(s.Seen.Pods, func(p corev1.Pod) bool { return p.Status.Reason == batchv1.JobReasonDeadlineExceeded })
	for _, t := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobFailureTarget} {
		c, ok := cluster.Condition(s.Seen.Job, t)
		exceeded = exceeded || ok && c.Reason == batchv1.JobReasonDeadlineExceeded
	}
	if !exceeded {
		return Verdict{}, false
	}
	message := "timed out (limits.deadline)"
	if j := s.Seen.Job; j != nil && j.Spec.ActiveDeadlineSeconds != nil {
		message = fmt.Sprintf("timed out after %s (limits.deadline)",
			formatDuration(time.Duration(*j.Spec.ActiveDeadlineSeconds)*time.Second))
	}
	return failedVerdict(event.ClassTimeout, event.DeadlineExceeded, time.Time{}, "%s", message), true
}

// platformStopped: the platform that ran the pods itself was stopped and ended them, and no pod had failed before.
func platformStopped(s Observation) (Verdict, bool) {
	stopped := func(p corev1.Pod) bool { return p.Status.Reason == cluster.ReasonStopped }
	if !slices.ContainsFunc(s.Seen.Pods, stopped) {
		return Verdict{}, false
	}
	others := s
	others.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), stopped)
	if _, failed := benchmarkFails(others); failed {
		return Verdict{}, false
	}
	return failedVerdict(event.ClassPlatform, event.PlatformStopped, time.Time{},
		"the platform was stopped and ended this benchmark (with --keep-pods benchmarks go on)"), true
}

// disrupted: a pod was ended for a reason outside the run.
func disrupted(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		if v, ok := disruption(p); ok {
			return v, true
		}
	}
	return Verdict{}, false
}

func disruption(p corev1.Pod) (Verdict, bool) {
	c, ok := objects.Condition(p, corev1.DisruptionTarget)
	if !ok || c.Status != corev1.ConditionTrue {
		return Verdict{}, false
	}
	v := failedVerdict(event.ClassInfra, event.Evicted, c.LastTransitionTime.Time, "its pod had to leave node %s: %s", p.Spec.NodeName,
		objects.JoinReasonMessage(c.Reason, c.Message))
	switch c.Reason {
	case corev1.PodReasonPreemptionByScheduler:
		v.Reason = event.Preempted
	case "DeletionByTaintManager", "DeletionByPodGC":
		v.Reason = event.NodeLost
		v.Message = fmt.Sprintf("its pod had to leave node %s, which is lost or drained: %s", p.Spec.NodeName,
			objects.JoinReasonMessage(c.Reason, c.Message))
	case corev1.PodReasonTerminationByKubelet:
		if own, ok := diskLimitEviction(p); ok {
			return own, true
		}
	}
	return v, true
}

// podRejected: a node rejected or evicted a pod.
func podRejected(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		if v, ok := diskLimitEviction(p); ok {
			return v, true
		}
		message := fmt.Sprintf("node %s does not keep its pod: %s", p.Spec.NodeName,
			objects.JoinReasonMessage(p.Status.Reason, p.Status.Message))
		switch r := p.Status.Reason; {
		case r == "NodeLost", r == "NodeShutdown", r == "Shutdown", r == "Terminated":
			return failedVerdict(event.ClassInfra, event.NodeLost, time.Time{}, "%s", message), true
		case r == "Preempting":
			return failedVerdict(event.ClassInfra, event.Preempted, time.Time{}, "%s", message), true
		case r == "Evicted", r == "UnexpectedAdmissionError", r == "NodeAffinity", r == "NodePorts", strings.HasPrefix(r, "OutOf"):
			return failedVerdict(event.ClassInfra, event.Evicted, time.Time{}, "%s", message), true
		}
	}
	return Verdict{}, false
}

// diskLimitEviction: a pod was evicted because it used more disk than its limit, which is its user's fault, not the node's.
func diskLimitEviction(p corev1.Pod) (Verdict, bool) {
	m := p.Status.Message
	if p.Status.Reason != "Evicted" || !strings.Contains(m, "exceed") || strings.Contains(m, "node was low") {
		return Verdict{}, false
	}
	return failedVerdict(event.ClassUser, event.Evicted, time.Time{}, "its pod used more disk than its limit: %s", m), true
}

// initFails: an init container failed before the benchmark.
func initFails(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		for _, c := range p.Status.InitContainerStatuses {
			t := c.State.Terminated
			if t == nil || t.ExitCode == 0 || c.Name == cluster.ContainerCollect || objects.RunsAlways(p, c.Name) {
				continue
			}
			if name, is := objects.StepName(c.Name); is {
				return stepFailure(name, t), true
			}
			return initFailure(c.Name, t), true
		}
	}
	return Verdict{}, false
}

// initFailure is the verdict on a failed init container.
func initFailure(name string, t *corev1.ContainerStateTerminated) Verdict {
	switch {
	case name == cluster.ContainerPull && t.ExitCode == pod.PullUser:
		return failedVerdict(event.ClassUser, event.PullFailed, time.Time{},
			"its data sets could not be copied to the machine: %s", termination.Describe(t))
	case name == cluster.ContainerPull:
		return failedVerdict(event.ClassInfra, event.PullFailed, time.Time{},
			"its data sets could not be copied to the machine: %s", termination.Describe(t))
	case name == cluster.ContainerMTU:
		return failedVerdict(event.ClassUser, event.InitFailed, time.Time{}, "network.mtu could not be set: %s", termination.Describe(t))
	case name == cluster.ContainerWait:
		return failedVerdict(event.ClassUser, event.NotReady, time.Time{},
			"another pod of the run was not ready in time: %s", termination.Describe(t))
	}
	return failedVerdict(event.ClassPlatform, event.InitFailed, time.Time{}, "its pod could not be prepared: container %s: %s",
		name, termination.Describe(t))
}

// benchmarkFails: the benchmark failed, or was ended. Of several the first to end is the cause.
func benchmarkFails(s Observation) (Verdict, bool) {
	var first *corev1.ContainerStateTerminated
	var limit, subject string
	for _, p := range s.Seen.Pods {
		c, ok := objects.Container(p, cluster.ContainerBenchmark)
		t := c.State.Terminated
		if !ok || t == nil || t.ExitCode == 0 && t.Reason != "OOMKilled" {
			continue
		}
		if first == nil || t.FinishedAt.Before(&first.FinishedAt) {
			first, limit, subject = t, objects.MemoryLimit(p), "the "+objects.Describe(p)
		}
	}
	if first == nil {
		return Verdict{}, false
	}
	reason, message := termination.Reason(first, subject, limit)
	if rank := termination.FirstRank(first.Message); rank != "" {
		message += "; " + rank
	}
	return failedVerdict(event.ClassUser, reason, time.Time{}, "%s", message), true
}

// formatDuration writes a time as people do: "1h", not "1h0m0s".
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// sidecarFails: the benchmark succeeded, and the collector failed.
func sidecarFails(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		c, ok := objects.Container(p, cluster.ContainerCollect)
		if !ok {
			continue
		}
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil && t.ExitCode != 0 {
				return failedVerdict(event.ClassPlatform, event.SidecarFailed, time.Time{}, "the collector of its output failed: %s",
					termination.Describe(t)), true
			}
		}
	}
	return Verdict{}, false
}

// waitingReason returns the reason for which a container waits, empty for one that passes by itself, and whether it never passes.
func waitingReason(reason string) (r event.Reason, hopeless bool) {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return event.ImagePullBackOff, false
	case "InvalidImageName", "ErrImageNeverPull":
		return event.ImagePullBackOff, true
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError":
		return event.ConfigError, false
	case "CrashLoopBackOff":
		return event.SidecarFailed, false
	}
	return "", false
}
