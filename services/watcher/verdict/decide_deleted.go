package verdict

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// deletedBeforeFailure: a pod was deleted, and no container of any pod failed before. A pod that fails later may fail by the deletion of
// another one, such as a launcher that cannot connect to a worker.
func deletedBeforeFailure(s Observation) (Verdict, bool) {
	first := firstDeletion(s)
	if slices.ContainsFunc(s.Seen.Pods, func(p corev1.Pod) bool { return failedBeforeDeletion(p, first) }) {
		return Verdict{}, false
	}
	return podDeleted(s)
}

// deletedBeforeEnd is deletedBeforeFailure for the pods that have ended too early: any pod of the run may be the first deleted one.
func deletedBeforeEnd(all Observation) check {
	return func(dead Observation) (Verdict, bool) {
		first := firstDeletion(all)
		if slices.ContainsFunc(dead.Seen.Pods,
			func(p corev1.Pod) bool { return failedBeforeDeletion(p, first) || endedWellBefore(p, first) }) {
			return Verdict{}, false
		}
		return podDeleted(all)
	}
}

// firstDeletion returns the time by which the first deletion of a pod was requested, other than those that followed from a failure; zero
// if none was. The controller of a manifest may delete a pod and start it again, so that there each pod stands for itself.
func firstDeletion(s Observation) time.Time {
	var first time.Time
	if ofManifest(s.Seen.Job) {
		return first
	}
	for _, p := range s.Seen.Pods {
		if p.DeletionTimestamp == nil || deletedByJob(s, p) {
			continue
		}
		if at := deletionRequestedBy(s, p); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// deletedByJob reports whether the job of a pod had failed when the pod was deleted: it then deletes the pods that still run.
func deletedByJob(s Observation, p corev1.Pod) bool {
	jobs := s.Seen.Others
	if s.Seen.Job != nil {
		jobs = append(slices.Clip(jobs), *s.Seen.Job)
	}
	i := slices.IndexFunc(jobs, func(j batchv1.Job) bool { return j.Name == p.Labels[batchv1.JobNameLabel] })
	if i < 0 {
		return false
	}
	for _, t := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		if c, failed := cluster.Condition(&jobs[i], t); failed && !deletionRequestedBy(s, p).Before(c.LastTransitionTime.Time) {
			return true
		}
	}
	return false
}

// deletionRequestedBy returns the time by which the deletion of a pod was requested. If the API server has no time of the request any more,
// that is the first end of a container that the deletion ended: by a signal, or well in a pod that does not end before the run.
func deletionRequestedBy(s Observation, p corev1.Pod) time.Time {
	by := objects.DeletionRequestedAt(p)
	if !objects.HasLostDeletionRequest(p) {
		return by
	}
	stays := p.Labels[cluster.LabelEnd] == "" && !ofMainJob(s, p)
	for _, c := range objects.Containers(p) {
		t, well := c.State.Terminated, c.Name == cluster.ContainerBenchmark && c.State.Terminated.ExitCode == 0
		if (objects.EndedByDeletion(p, t) || stays && well) && t.FinishedAt.Time.Before(by) {
			by = t.FinishedAt.Time
		}
	}
	return by
}

// failedBeforeDeletion reports whether a container of a pod failed before the deletion of its pod was requested, and before first, the
// first deletion of any pod. Kubernetes gives all times in whole seconds: a failure in the second of a deletion counts as caused by it.
func failedBeforeDeletion(p corev1.Pod, first time.Time) bool {
	for _, c := range objects.Containers(p) {
		t := c.State.Terminated
		if t == nil || t.ExitCode == 0 || c.Name == cluster.ContainerCollect || !endedBefore(t, first) {
			continue
		}
		if p.DeletionTimestamp == nil || endedBefore(t, objects.DeletionRequestedAt(p)) && !objects.EndedByDeletion(p, t) {
			return true
		}
	}
	return false
}

// endedWellBefore reports whether the benchmark of a pod that should run until the run's end has ended well, before the first deletion of
// any pod.
func endedWellBefore(p corev1.Pod, first time.Time) bool {
	c, _ := objects.Container(p, cluster.ContainerBenchmark)
	t := c.State.Terminated
	return p.Labels[cluster.LabelEnd] == "" && t != nil && t.ExitCode == 0 && endedBefore(t, first)
}

// endedBefore reports whether a container ended before deletedAt; the zero time means that no deletion was requested. The end of a
// container that the kubelet could not find any more has no time, and counts as caused by the deletion.
func endedBefore(t *corev1.ContainerStateTerminated, deletedAt time.Time) bool {
	return deletedAt.IsZero() || !t.FinishedAt.IsZero() && isBefore(t.FinishedAt.Time, deletedAt)
}

// podDeleted: a pod was deleted. Its job then deletes the other pods: of several the first is named, or all that may have been the first.
// The time of the request counts, not the end of the grace period.
func podDeleted(s Observation) (Verdict, bool) {
	var deleted []corev1.Pod
	var first time.Time
	for _, p := range s.Seen.Pods {
		if p.DeletionTimestamp == nil {
			continue
		}
		if requestedAt := objects.DeletionRequestedAt(p); len(deleted) == 0 || requestedAt.Before(first) {
			first = requestedAt
		}
		deleted = append(deleted, p)
	}
	if len(deleted) == 0 {
		return Verdict{}, false
	}
	var names []string
	for _, p := range deleted {
		if objects.HasLostDeletionRequest(p) || objects.DeletionRequestedAt(p).Equal(first) {
			names = append(names, "the "+objects.Describe(p))
		}
	}
	if len(names) > maxNames {
		names = append(names[:maxNames], "another of its pods")
	}
	return failedVerdict(event.ClassInfra, event.JobDeleted, first, "somebody deleted %s, and it was not canceled",
		strings.Join(names, " or ")), true
}
