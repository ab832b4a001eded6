package executable

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// snapshot returns the Job and the pod that a state stands for.
func (s state) snapshot() cluster.Snapshot {
	created := metav1.NewTime(s.Record.Created)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: s.Record.Job, Namespace: s.Record.Scope, UID: types.UID(s.Record.UID), CreationTimestamp: created, Labels: s.Record.Labels,
	}}
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: s.Record.Job + "-0", Namespace: s.Record.Scope, UID: types.UID(s.Record.UID + "-0"), CreationTimestamp: created,
		Labels: s.Record.Labels, Annotations: s.Record.Annotations,
	}}
	p.Spec.Containers = []corev1.Container{{Name: cluster.ContainerBenchmark, Image: s.Record.Image}}
	p.Spec.NodeName = "-"
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: created}}
	status := corev1.ContainerStatus{Name: cluster.ContainerBenchmark}
	if !s.Started.IsZero() {
		started := metav1.NewTime(s.Started)
		j.Status.StartTime, p.Status.StartTime = &started, &started
		p.Status.Phase, status.Started = corev1.PodRunning, new(true)
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
	} else {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: s.Message}
	}
	if s.Deleting {
		now, seconds := metav1.NewTime(s.Record.Created), int64(0)
		j.DeletionTimestamp, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &now, &seconds
	}
	switch s.Phase {
	case phaseSucceeded:
		s.succeed(j, &p, &status)
	case phaseFailed:
		s.fail(j, &p, &status)
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	return cluster.Snapshot{Ref: s.ref(), Job: j, Pods: []corev1.Pod{p}}
}

func (s state) succeed(j *batchv1.Job, p *corev1.Pod, status *corev1.ContainerStatus) {
	ended := metav1.NewTime(s.Ended)
	p.Status.Phase, j.Status.Succeeded, j.Status.CompletionTime = corev1.PodSucceeded, 1, &ended
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason:    "Completed",
		StartedAt: metav1.NewTime(s.Started), FinishedAt: ended,
	}}
	j.Status.Conditions = []batchv1.JobCondition{{
		Type: batchv1.JobComplete, Status: corev1.ConditionTrue,
		Reason: "CompletionsReached", LastTransitionTime: ended,
	}}
}

func (s state) fail(j *batchv1.Job, p *corev1.Pod, status *corev1.ContainerStatus) {
	ended, reason := metav1.NewTime(s.Ended), "BackoffLimitExceeded"
	if s.Reason == batchv1.JobReasonDeadlineExceeded {
		reason = s.Reason
	}
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, s.Reason, s.Message
	if s.ExitCode != 0 {
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: s.ExitCode, Reason: "Error", Message: s.Message, StartedAt: metav1.NewTime(s.Started), FinishedAt: ended,
		}}
	}
	j.Status.Failed = 1
	j.Status.Conditions = []batchv1.JobCondition{{
		Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason,
		Message: s.Message, LastTransitionTime: ended,
	}}
}
