package watcher_test

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/transpile/placement"
)

// at returns second n after the jobs of these tests were created.
func at(n int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(n) * time.Second))
}

func job(with ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "bai-r1-1", UID: "job-uid", CreationTimestamp: at(0)}}
	for _, w := range with {
		w(j)
	}
	return j
}

func jobCondition(t batchv1.JobConditionType, when int, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at(when), Reason: reason, Message: message})
	}
}

func complete(when int) func(*batchv1.Job) { return jobCondition(batchv1.JobComplete, when, "", "") }

func failed(when int, reason string) func(*batchv1.Job) {
	return jobCondition(batchv1.JobFailed, when, reason, "too often")
}

func target(when int, reason string) func(*batchv1.Job) {
	return jobCondition(batchv1.JobFailureTarget, when, reason, "")
}

func counts() func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"1"}}
	}
}

func deadline(seconds int64) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &seconds }
}

func jobDeleting(when int) func(*batchv1.Job) {
	return func(j *batchv1.Job) { t := at(when); j.DeletionTimestamp = &t }
}

func pods(ps ...corev1.Pod) []corev1.Pod { return ps }

func newPod(with ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-0", UID: types.UID("uid-0"), CreationTimestamp: at(0)}}
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodPending
	for _, w := range with {
		w(&p)
	}
	return p
}

func ended(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func condition(t corev1.PodConditionType, s corev1.ConditionStatus, when int, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: s, LastTransitionTime: at(when), Reason: reason, Message: message})
	}
}

func scheduler(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "", name }
}

func scheduled() func(*corev1.Pod) {
	return condition(corev1.PodScheduled, corev1.ConditionTrue, 1, "", "")
}

func unscheduled(message string) func(*corev1.Pod) {
	return condition(corev1.PodScheduled, corev1.ConditionFalse, 2, "Unschedulable", message)
}

func disrupted(reason, message string) func(*corev1.Pod) {
	return condition(corev1.DisruptionTarget, corev1.ConditionTrue, 9, reason, message)
}

func deleting(when int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { t := at(when); p.DeletionTimestamp = &t }
}

// grace sets the grace period of a pod's deletion.
func grace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = &seconds }
}

func reason(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, reason, message
	}
}

func limit(memory string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: cluster.ContainerBenchmark, Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
		}}}
	}
}

func containerIs(name string, s corev1.ContainerStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s.Name = name
		if name == cluster.ContainerBenchmark {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
			return
		}
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, s)
	}
}

func waiting(name, reason, message string) func(*corev1.Pod) {
	return containerIs(name, corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
}

func runs(name string, since int) func(*corev1.Pod) {
	return containerIs(name, corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(since)}}})
}

func collectorRunning() func(*corev1.Pod) {
	yes := true
	return containerIs(cluster.ContainerCollect, corev1.ContainerStatus{Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(2)}}})
}

func exits(name string, code int32, reason, message string) func(*corev1.Pod) {
	return containerIs(name, corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: at(3), FinishedAt: at(10),
	}}})
}

// containerNotFound sets the status of a benchmark that the kubelet did not find when its pod had to end.
func containerNotFound() func(*corev1.Pod) {
	return containerIs(cluster.ContainerBenchmark, corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
	}}})
}

// clusterMessage is an event about the pod, or about another object, of a time.
func clusterMessage(when int, reason, message string, about ...string) []corev1.Event {
	e := events(strings.Join(append(about, "pod-0")[:1], ""), reason, message)
	e[0].LastTimestamp = at(when)
	return e
}

// unwrapped makes the benchmark run without the platform's entrypoint.
func unwrapped() func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Name: cluster.ContainerBenchmark}} }
}

func events(about, reason, message string) []corev1.Event {
	return []corev1.Event{{InvolvedObject: corev1.ObjectReference{Name: about}, Reason: reason, Message: message}}
}

// apart keeps the other pods of the run off the pod's node.
func apart(p *corev1.Pod) {
	p.Name, p.UID, p.Spec.NodeName = "pod-1", "uid-1", ""
	p.Spec.Affinity = placement.Affinity("r1", 2, descriptors.Hardware{Apart: "node"}, placement.Anywhere)
}
