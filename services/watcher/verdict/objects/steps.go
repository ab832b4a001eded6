package objects

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/always"
)

// StepName returns the name of the step that a container runs; it is false for other containers.
func StepName(container string) (string, bool) {
	return strings.CutPrefix(container, pod.ContainerStep)
}

// RunsAlways reports whether a container of a pod is that of a step that runs at the end of the pod: a sidecar.
func RunsAlways(p corev1.Pod, name string) bool {
	return slices.Contains(always.Steps(p.Spec), strings.TrimPrefix(name, cluster.ContainerStep)) &&
		strings.HasPrefix(name, cluster.ContainerStep)
}

// isLaterStep reports whether a container of a pod is that of a step after the benchmark.
func isLaterStep(p corev1.Pod, name string) bool {
	_, is := StepName(name)
	return is && slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
}

// StepBefore returns the message about the step that a pod runs before its benchmark, and since when; it is false if it runs none.
func StepBefore(p corev1.Pod) (message string, since time.Time, ok bool) {
	for _, c := range p.Status.InitContainerStatuses {
		if name, is := StepName(c.Name); is && !RunsAlways(p, c.Name) && c.State.Running != nil {
			return fmt.Sprintf("running step %s, before the benchmark", name), c.State.Running.StartedAt.Time, true
		}
	}
	return "", time.Time{}, false
}

// StepAfter returns the message about the step that a pod runs after its benchmark; it is false if it runs none. The later steps have
// containers that run, too: they wait.
func StepAfter(p corev1.Pod) (message string, ok bool) {
	for _, spec := range p.Spec.Containers {
		name, is := StepName(spec.Name)
		if c, known := Container(p, spec.Name); is && known && c.State.Terminated == nil {
			return fmt.Sprintf("running step %s, after the benchmark", name), true
		}
	}
	return "", false
}

// StepAtEnd returns the message about the step that a pod runs at its end; it is false if it runs none.
func StepAtEnd(p corev1.Pod) (message string, ok bool) {
	if !cluster.Alive(p) || !othersEnded(p) {
		return "", false
	}
	for _, name := range always.Steps(p.Spec) {
		if c, known := Container(p, cluster.ContainerStep+name); known && c.State.Running != nil {
			return "running step " + name + ", at the end", true
		}
	}
	return "", false
}

// othersEnded reports whether all containers of a pod have ended for good but its sidecars: those after the init containers, or one of
// these with a failure, or whichever ran when its deletion was requested.
func othersEnded(p corev1.Pod) bool {
	for _, c := range p.Spec.InitContainers {
		s, _ := Container(p, c.Name)
		if t := s.State.Terminated; c.RestartPolicy == nil && t != nil && t.ExitCode != 0 {
			return true
		}
	}
	main := p.Status.ContainerStatuses
	return len(main) > 0 && !slices.ContainsFunc(main, func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil })
}

// lastEndWithAlways returns when the last of the containers of a pod that run the user's commands ended.
func lastEndWithAlways(p corev1.Pod) time.Time {
	last := LastEnd([]corev1.Pod{p})
	for _, name := range always.Steps(p.Spec) {
		c, _ := Container(p, cluster.ContainerStep+name)
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

// CollectorRunning reports whether the collector of a pod runs though the benchmark and the steps after it and at the end have
// ended, since when, and when the pod ends all the same.
func CollectorRunning(p corev1.Pod) (end, until time.Time, ok bool) {
	bench, _ := Container(p, cluster.ContainerBenchmark)
	c, _ := Container(p, cluster.ContainerCollect)
	_, left := StepAfter(p)
	if _, ending := StepAtEnd(p); ending || left || bench.State.Terminated == nil || c.State.Running == nil {
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
