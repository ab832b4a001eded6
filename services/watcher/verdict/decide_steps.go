package verdict

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
	"github.com/benchmark-ai/bai/services/watcher/verdict/termination"
)

// skippedWithin is how long the steps after a command that failed may take to end without running theirs.
const skippedWithin = 30 * time.Second

// stepFails: a step before or after the benchmark failed. Of several the first to end is the cause.
func stepFails(s Observation) (Verdict, bool) {
	var first *corev1.ContainerStateTerminated
	var name string
	for _, p := range s.Seen.Pods {
		for _, c := range objects.Containers(p) {
			t := c.State.Terminated
			step, is := objects.StepName(c.Name)
			if is && !objects.RunsAlways(p, c.Name) && t != nil && t.ExitCode != 0 &&
				(first == nil || t.FinishedAt.Before(&first.FinishedAt)) {
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
	_, message := termination.Reason(t, "step "+name, "")
	if words := termination.LastLine(t.Message); t.ExitCode == pod.StepTimedOut && strings.HasPrefix(words, "timed out after ") {
		message = "step " + name + " " + words
	}
	return failedVerdict(event.ClassUser, event.StepFailed, t.FinishedAt.Time, "%s", message)
}

// stepsStuck: a command failed, and a step that comes after it has not ended soon after, because its container could not be started or
// waits for one that could not.
func stepsStuck(s Observation) (Verdict, bool) {
	stuck := s
	stuck.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods),
		func(p corev1.Pod) bool { _, left := objects.StepAfter(p); return !left || !cluster.Alive(p) })
	for _, cause := range []check{benchmarkFails, stepFails} {
		if v, ok := cause(stuck); ok {
			if first, deleted := deletedBeforeFailure(s); deleted {
				v = first
			}
			v.Since = objects.LastEnd(stuck.Seen.Pods)
			return debounced(s, v, skippedWithin), true
		}
	}
	return Verdict{}, false
}
