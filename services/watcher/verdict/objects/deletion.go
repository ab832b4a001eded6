package objects

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// DeletionRequestedAt returns when the deletion of a pod was requested, which is the beginning of its grace period.
func DeletionRequestedAt(p corev1.Pod) time.Time {
	requestedAt := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		requestedAt = requestedAt.Add(-time.Duration(*grace) * time.Second)
	}
	return requestedAt
}

// HasLostDeletionRequest reports whether the deletion of a pod may have been requested earlier than its times say: kubelet deletes a pod
// for good once its containers have ended, and the API server then has the time of that.
func HasLostDeletionRequest(p corev1.Pod) bool {
	grace, own := p.DeletionGracePeriodSeconds, p.Spec.TerminationGracePeriodSeconds
	if grace == nil || *grace != 0 || own != nil && *own == 0 {
		return false
	}
	return !slices.ContainsFunc(Containers(p), func(c corev1.ContainerStatus) bool {
		return c.State.Terminated == nil || c.State.Terminated.FinishedAt.After(p.DeletionTimestamp.Time)
	})
}

// EndedByDeletion reports whether a container of a pod without grace ended by a signal of a deletion, SIGTERM or SIGKILL. The API server
// then has no time of the request any more: for a pod with finalizers, such as those of Jobs, it sets the time to that of the last step,
// once the containers have ended.
func EndedByDeletion(p corev1.Pod, t *corev1.ContainerStateTerminated) bool {
	const sigterm, sigkill = 128 + 15, 128 + 9 // the exit codes that a shell gives them
	grace := p.DeletionGracePeriodSeconds
	return grace != nil && *grace == 0 && (t.ExitCode == sigterm || t.ExitCode == sigkill)
}
