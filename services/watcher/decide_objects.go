package watcher

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// when returns when something was said last.
func when(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

func podCondition(p corev1.Pod, t corev1.PodConditionType) (corev1.PodCondition, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c, true
		}
	}
	return corev1.PodCondition{}, false
}

// statuses returns the states of a pod's containers, in the order in which they
// begin.
func statuses(p corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

func container(p corev1.Pod, name string) (corev1.ContainerStatus, bool) {
	for _, c := range statuses(p) {
		if c.Name == name {
			return c, true
		}
	}
	return corev1.ContainerStatus{}, false
}

// started returns when a pod's benchmark began.
func started(p corev1.Pod) (metav1.Time, bool) {
	c, ok := container(p, cluster.ContainerBenchmark)
	switch {
	case ok && c.State.Running != nil:
		return c.State.Running.StartedAt, true
	case ok && c.State.Terminated != nil && !c.State.Terminated.StartedAt.IsZero():
		return c.State.Terminated.StartedAt, true
	}
	return metav1.Time{}, false
}

// begun reports whether a container runs, or did.
func begun(c corev1.ContainerStatus) bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
}

func creating(c corev1.ContainerStatus) bool {
	return c.State.Waiting != nil && (c.State.Waiting.Reason == "ContainerCreating" || c.State.Waiting.Reason == "PodInitializing")
}

// scheduled returns when a pod was given its node.
func scheduled(p corev1.Pod) time.Time {
	if c, ok := podCondition(p, corev1.PodScheduled); ok && c.Status == corev1.ConditionTrue {
		return since(c.LastTransitionTime, p)
	}
	return p.CreationTimestamp.Time
}

func since(t metav1.Time, p corev1.Pod) time.Time {
	if t.IsZero() {
		return p.CreationTimestamp.Time
	}
	return t.Time
}

// last returns the latest event of a reason.
func last(events []corev1.Event, reason string) (corev1.Event, bool) {
	for _, e := range slices.Backward(events) {
		if e.Reason == reason {
			return e, true
		}
	}
	return corev1.Event{}, false
}

// about returns the events about a pod.
func about(events []corev1.Event, p corev1.Pod) []corev1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return e.InvolvedObject.Name != p.Name })
}

// words joins a reason and a message of the cluster's, either of which may be
// missing.
func words(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
