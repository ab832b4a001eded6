// Package objects reads pods with their containers and steps, and the events about them.
package objects

import (
	"cmp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Condition returns a condition of a pod, whatever its status.
func Condition(p corev1.Pod, t corev1.PodConditionType) (corev1.PodCondition, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c, true
		}
	}
	return corev1.PodCondition{}, false
}

// Containers returns the states of a pod's containers, in the order in which they begin.
func Containers(p corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

// Container returns the status of the container with a name; it is false if the pod has none.
func Container(p corev1.Pod, name string) (corev1.ContainerStatus, bool) {
	for _, c := range Containers(p) {
		if c.Name == name {
			return c, true
		}
	}
	return corev1.ContainerStatus{}, false
}

// BenchmarkStarted returns when a pod's benchmark began.
func BenchmarkStarted(p corev1.Pod) (metav1.Time, bool) {
	c, ok := Container(p, cluster.ContainerBenchmark)
	switch {
	case ok && c.State.Running != nil:
		return c.State.Running.StartedAt, true
	case ok && c.State.Terminated != nil && !c.State.Terminated.StartedAt.IsZero():
		return c.State.Terminated.StartedAt, true
	}
	return metav1.Time{}, false
}

// HasStarted reports whether a container runs, or did.
func HasStarted(c corev1.ContainerStatus) bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
}

// IsCreating reports whether a container waits for its node to create it.
func IsCreating(c corev1.ContainerStatus) bool {
	return c.State.Waiting != nil && (c.State.Waiting.Reason == "ContainerCreating" || c.State.Waiting.Reason == "PodInitializing")
}

// Scheduled returns when a pod was assigned to its node.
func Scheduled(p corev1.Pod) time.Time {
	if c, ok := Condition(p, corev1.PodScheduled); ok && c.Status == corev1.ConditionTrue {
		return TimeOrCreation(c.LastTransitionTime, p)
	}
	return p.CreationTimestamp.Time
}

// TimeOrCreation returns t, or the creation of the pod if t is zero.
func TimeOrCreation(t metav1.Time, p corev1.Pod) time.Time {
	if t.IsZero() {
		return p.CreationTimestamp.Time
	}
	return t.Time
}

// IdleSince reports whether no container of a pod runs before its benchmark starts, and since when: the pod waits for a scheduler, a
// network, a volume or an image. The collector may run in this time.
func IdleSince(p corev1.Pod) (since time.Time, ok bool) {
	since = Scheduled(p)
	if _, ending := StepAtEnd(p); ending {
		return since, false
	}
	for _, c := range Containers(p) {
		switch t := c.State.Terminated; {
		case c.Name == cluster.ContainerCollect, isLaterStep(p, c.Name), RunsAlways(p, c.Name):
		case c.State.Running != nil, t != nil && c.Name == cluster.ContainerBenchmark:
			return since, false
		case t != nil && t.FinishedAt.After(since):
			since = t.FinishedAt.Time
		}
	}
	return since, cluster.Alive(p)
}

// LastEnd returns when the last of the benchmark's and the steps' containers that have ended did.
func LastEnd(pods []corev1.Pod) time.Time {
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

// MemoryLimit returns the limit of a pod's benchmark, for people.
func MemoryLimit(p corev1.Pod) string {
	for _, c := range p.Spec.Containers {
		if c.Name != cluster.ContainerBenchmark {
			continue
		}
		if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
			return ", " + q.String() + " (hardware.memory)"
		}
		if q, ok := c.Resources.Requests[corev1.ResourceMemory]; ok {
			return "; it asked for " + q.String() + " (hardware.memory)"
		}
	}
	return ""
}

// operatorIndex is the label with a pod's number that the MPI operator sets.
const operatorIndex = "training.kubeflow.org/replica-index"

// Describe returns the name of a pod for the user: its role, its number if it has one, and its node.
func Describe(p corev1.Pod) string {
	name := cmp.Or(p.Labels[cluster.LabelRole], cluster.ContainerBenchmark)
	index := cmp.Or(p.Annotations[batchv1.JobCompletionIndexAnnotation], p.Labels[operatorIndex])
	if name == cluster.ContainerBenchmark && index == "" {
		return name
	}
	if index != "" {
		name += " " + index
	}
	if p.Spec.NodeName != "" {
		name += " on " + p.Spec.NodeName
	}
	return name
}

// HostName returns the first label of the address of a numbered pod.
func HostName(p corev1.Pod) string {
	return p.Labels[batchv1.JobNameLabel] + "-" + p.Annotations[batchv1.JobCompletionIndexAnnotation]
}

// AwaitedHosts returns the first label of each address at which a pod waits.
func AwaitedHosts(p corev1.Pod) []string {
	var hosts []string
	for _, c := range p.Spec.InitContainers {
		for _, arg := range c.Args {
			if _, address, ok := strings.Cut(arg, "://"); ok && c.Name == cluster.ContainerWait {
				host, _, _ := strings.Cut(address, ".")
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}
