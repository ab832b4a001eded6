package verdict

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// eventTime returns the last time of an event.
func eventTime(e corev1.Event) time.Time {
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

// containerStatuses returns the states of a pod's containers, in the order in which they
// begin.
func containerStatuses(p corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

func containerStatus(p corev1.Pod, name string) (corev1.ContainerStatus, bool) {
	for _, c := range containerStatuses(p) {
		if c.Name == name {
			return c, true
		}
	}
	return corev1.ContainerStatus{}, false
}

// benchmarkStartedAt returns when a pod's benchmark began.
func benchmarkStartedAt(p corev1.Pod) (metav1.Time, bool) {
	c, ok := containerStatus(p, cluster.ContainerBenchmark)
	switch {
	case ok && c.State.Running != nil:
		return c.State.Running.StartedAt, true
	case ok && c.State.Terminated != nil && !c.State.Terminated.StartedAt.IsZero():
		return c.State.Terminated.StartedAt, true
	}
	return metav1.Time{}, false
}

// hasStarted reports whether a container runs, or did.
func hasStarted(c corev1.ContainerStatus) bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
}

func isCreating(c corev1.ContainerStatus) bool {
	return c.State.Waiting != nil && (c.State.Waiting.Reason == "ContainerCreating" || c.State.Waiting.Reason == "PodInitializing")
}

// scheduled returns when a pod was assigned to its node.
func scheduled(p corev1.Pod) time.Time {
	if c, ok := podCondition(p, corev1.PodScheduled); ok && c.Status == corev1.ConditionTrue {
		return timeOrCreation(c.LastTransitionTime, p)
	}
	return p.CreationTimestamp.Time
}

func timeOrCreation(t metav1.Time, p corev1.Pod) time.Time {
	if t.IsZero() {
		return p.CreationTimestamp.Time
	}
	return t.Time
}

// lastEvent returns the latest event of a reason.
func lastEvent(events []corev1.Event, reason string) (corev1.Event, bool) {
	for _, e := range slices.Backward(events) {
		if e.Reason == reason {
			return e, true
		}
	}
	return corev1.Event{}, false
}

// eventsAbout returns the events about a pod.
func eventsAbout(events []corev1.Event, p corev1.Pod) []corev1.Event {
	return eventsOf(events, p.Name)
}

// joinReasonMessage joins a reason and a message of the cluster, either of which may be empty.
func joinReasonMessage(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
