package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// skippedWithin is how long the steps after a command that failed may take to end without running theirs.
const skippedWithin = 30 * time.Second

// stepName returns the name of the step that a container runs; it is false for other containers.
func stepName(container string) (string, bool) {
	return strings.CutPrefix(container, pod.ContainerStep)
}

// stepFails: a step before or after the benchmark failed. Of several the first to end is the cause.
func stepFails(s Observation) (Verdict, bool) {
	var first *corev1.ContainerStateTerminated
	var name string
	for _, p := range s.Seen.Pods {
		for _, c := range containerStatuses(p) {
			t := c.State.Terminated
			step, is := stepName(c.Name)
			if is && !runsAlways(p, c.Name) && t != nil && t.ExitCode != 0 && (first == nil || t.FinishedAt.Before(&first.FinishedAt)) {
				first, name = t, step
			}
		}
	}
	if first == nil {
		return Verdict{}, false
	}
	return stepFailure(name, first), true
}

// stepFailure is the verdict on a step that failed.
func stepFailure(name string, t *corev1.ContainerStateTerminated) Verdict {
	_, message := exitReason(t, "step "+name, "")
	if words := lastWords(t.Message); t.ExitCode == pod.StepTimedOut && strings.HasPrefix(words, "timed out after ") {
		message = "step " + name + " " + words
	}
	return failedVerdict(event.ClassUser, event.StepFailed, t.FinishedAt.Time, "%s", message)
}

// stepsStuck: a command failed, and a step that comes after it has not ended soon after, because its container could not be started or waits
// for one that could not.
func stepsStuck(s Observation) (Verdict, bool) {
	stuck := s
	stuck.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), func(p corev1.Pod) bool { _, left := stepAfter(p); return !left || !cluster.Alive(p) })
	for _, cause := range []check{benchmarkFails, stepFails} {
		if v, ok := cause(stuck); ok {
			if first, deleted := deletedBeforeFailure(s); deleted {
				v = first
			}
			v.Since = lastEnd(stuck.Seen.Pods)
			return debounced(s, v, skippedWithin), true
		}
	}
	return Verdict{}, false
}

// isLaterStep reports whether a container of a pod is that of a step after the benchmark.
func isLaterStep(p corev1.Pod, name string) bool {
	_, is := stepName(name)
	return is && slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
}

// lastEnd returns when the last of the benchmark's and the steps' containers that have ended did.
func lastEnd(pods []corev1.Pod) time.Time {
	var last time.Time
	for _, p := range pods {
		for _, c := range p.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
				last = t.FinishedAt.Time
			}
		}
	}
	return last
}

// stepBefore returns the message about the step that a pod runs before its benchmark, and since when; it is false if it runs none.
func stepBefore(p corev1.Pod) (message string, since time.Time, ok bool) {
	for _, c := range p.Status.InitContainerStatuses {
		if name, is := stepName(c.Name); is && !runsAlways(p, c.Name) && c.State.Running != nil {
			return fmt.Sprintf("running step %s, before the benchmark", name), c.State.Running.StartedAt.Time, true
		}
	}
	return "", time.Time{}, false
}

// stepAfter returns the message about the step that a pod runs after its benchmark; it is false if it runs none. The later steps have
// containers that run, too: they wait.
func stepAfter(p corev1.Pod) (message string, ok bool) {
	for _, spec := range p.Spec.Containers {
		name, is := stepName(spec.Name)
		if c, known := containerStatus(p, spec.Name); is && known && c.State.Terminated == nil {
			return fmt.Sprintf("running step %s, after the benchmark", name), true
		}
	}
	return "", false
}
