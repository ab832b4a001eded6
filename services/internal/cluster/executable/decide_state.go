package executable

import (
	"maps"
	"math"
	"slices"
	"time"

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
		requested, seconds := s.deletionRequestedAt(), s.graceSeconds()
		at, until := metav1.NewTime(requested), metav1.NewTime(requested.Add(time.Duration(seconds)*time.Second))
		j.DeletionTimestamp, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &until, &seconds
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

// noteDeletions sets since when the states that are being deleted are seen so, given when those of before were, and returns these times.
func noteDeletions(all map[attempt]state, before map[attempt]time.Time, now time.Time) map[attempt]time.Time {
	since := make(map[attempt]time.Time)
	for at, s := range all {
		if !s.Deleting {
			continue
		}
		first, known := before[at]
		if !known {
			first = now
		}
		s.deletingSince, since[at] = first, first
		all[at] = s
	}
	return since
}

// deletionRequestedAt returns when the deletion of an attempt was requested, which a program does not say: at its first sight, and no later
// than the end of the attempt, which counts as caused by the deletion.
func (s state) deletionRequestedAt() time.Time {
	if !s.Ended.IsZero() && s.Ended.Before(s.deletingSince) {
		return s.Ended
	}
	return s.deletingSince
}

// graceSeconds returns how long a deleted attempt has to end.
func (s state) graceSeconds() int64 {
	const longest = math.MaxInt32 * time.Second
	g := cluster.BenchmarkGrace(s.Record.Annotations, longest)
	if g == longest {
		return defaultGrace
	}
	return int64(g / time.Second)
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
