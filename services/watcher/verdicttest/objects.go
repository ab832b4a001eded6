// Package verdicttest builds the objects of runs in all states, and writes verdicts as lines, for tests.
package verdicttest

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/transpile/placement"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// At returns second n after the jobs of these tests were created.
func At(n int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(n) * time.Second))
}

// Job returns the main job of a run.
func Job(with ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "bai-r1-1", UID: "job-uid", CreationTimestamp: At(0)}}
	for _, w := range with {
		w(j)
	}
	return j
}

func jobCondition(t batchv1.JobConditionType, when int, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions,
			batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: At(when), Reason: reason, Message: message})
	}
}

// Complete has a job complete at a second.
func Complete(when int) func(*batchv1.Job) { return jobCondition(batchv1.JobComplete, when, "", "") }

// Failed has a job fail at a second.
func Failed(when int, reason string) func(*batchv1.Job) {
	return jobCondition(batchv1.JobFailed, when, reason, "too often")
}

// Target has a job about to fail from a second on.
func Target(when int, reason string) func(*batchv1.Job) {
	return jobCondition(batchv1.JobFailureTarget, when, reason, "")
}

// Counts has the status of a job count a failed pod.
func Counts() func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"1"}}
	}
}

// Deadline gives a job so many seconds.
func Deadline(seconds int64) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &seconds }
}

// JobDeleting has a job deleted at a second.
func JobDeleting(when int) func(*batchv1.Job) {
	return func(j *batchv1.Job) { t := At(when); j.DeletionTimestamp = &t }
}

// Pods returns a list of pods.
func Pods(ps ...corev1.Pod) []corev1.Pod { return ps }

// NewPod returns a pending pod on node n1.
func NewPod(with ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-0", UID: types.UID("uid-0"), CreationTimestamp: At(0)}}
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodPending
	for _, w := range with {
		w(&p)
	}
	return p
}

// Ended has a pod end in a phase.
func Ended(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func podCondition(t corev1.PodConditionType, s corev1.ConditionStatus, when int, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: t, Status: s, LastTransitionTime: At(when), Reason: reason, Message: message})
	}
}

// Scheduler has a pod wait for a scheduler.
func Scheduler(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "", name }
}

// Scheduled has a pod get its node.
func Scheduled() func(*corev1.Pod) {
	return podCondition(corev1.PodScheduled, corev1.ConditionTrue, 1, "", "")
}

// Unscheduled has a pod get no node.
func Unscheduled(message string) func(*corev1.Pod) {
	return podCondition(corev1.PodScheduled, corev1.ConditionFalse, 2, "Unschedulable", message)
}

// Disrupted has a pod leave its node.
func Disrupted(reason, message string) func(*corev1.Pod) {
	return podCondition(corev1.DisruptionTarget, corev1.ConditionTrue, 9, reason, message)
}

// Deleting has a pod deleted at a second.
func Deleting(when int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { t := At(when); p.DeletionTimestamp = &t }
}

// Grace sets the grace period of a pod's deletion.
func Grace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = &seconds }
}

// Reason has a pod fail for a reason.
func Reason(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, reason, message
	}
}

// Limit gives a benchmark so much memory.
func Limit(memory string) func(*corev1.Pod) {
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

// Waiting has a container wait for a reason.
func Waiting(name, reason, message string) func(*corev1.Pod) {
	return containerIs(name, corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason:  reason,
		Message: message,
	}}})
}

// Runs has a container run since a second.
func Runs(name string, since int) func(*corev1.Pod) {
	running := &corev1.ContainerStateRunning{StartedAt: At(since)}
	return containerIs(name, corev1.ContainerStatus{State: corev1.ContainerState{Running: running}})
}

// CollectorRunning has the collector run.
func CollectorRunning() func(*corev1.Pod) {
	yes := true
	return containerIs(cluster.ContainerCollect,
		corev1.ContainerStatus{Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: At(2)}}})
}

// Exits has a container end with a code at second 10.
func Exits(name string, code int32, reason, message string) func(*corev1.Pod) {
	return containerIs(name, corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: At(3), FinishedAt: At(10),
	}}})
}

// ContainerNotFound sets the status of a benchmark that the kubelet did not find when its pod had to end.
func ContainerNotFound() func(*corev1.Pod) {
	return containerIs(cluster.ContainerBenchmark,
		corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
		}}})
}

// ClusterMessage is an event about the pod, or about another object, of a time.
func ClusterMessage(when int, reason, message string, about ...string) []corev1.Event {
	e := Events(strings.Join(append(about, "pod-0")[:1], ""), reason, message)
	e[0].LastTimestamp = At(when)
	return e
}

// Unwrapped makes the benchmark run without the platform's entrypoint.
func Unwrapped() func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Name: cluster.ContainerBenchmark}} }
}

// Events returns an event about an object.
func Events(about, reason, message string) []corev1.Event {
	return []corev1.Event{{InvolvedObject: corev1.ObjectReference{Name: about}, Reason: reason, Message: message}}
}

// Apart keeps the other pods of the run off the pod's node.
func Apart(p *corev1.Pod) {
	p.Name, p.UID, p.Spec.NodeName = "pod-1", "uid-1", ""
	p.Spec.Affinity = placement.Affinity("r1", 2, descriptors.Hardware{Apart: "node"}, placement.Anywhere)
}

// ReadyNode returns a node that takes pods, with the label kind and so many CPUs.
func ReadyNode(name, kind, cpus string, with ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kind": kind}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, w := range with {
		w(&n)
	}
	return n
}

// PodOf returns a pod of a run on a node.
func PodOf(run, node string, with ...func(*corev1.Pod)) corev1.Pod {
	p := NewPod(append(with, Runs(cluster.ContainerBenchmark, 3))...)
	p.Name, p.Labels, p.Spec.NodeName = run+"-0", map[string]string{cluster.LabelRun: run}, node
	return p
}

// Homeless returns a pod that asks for CPUs and got no node.
func Homeless(job, cpus string, with ...func(*corev1.Pod)) corev1.Pod {
	p := NewPod(append(with, Unscheduled("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."))...)
	p.Labels, p.Spec.NodeName = map[string]string{cluster.LabelRun: "r1", batchv1.JobNameLabel: job}, ""
	p.Spec.Containers = []corev1.Container{{Name: cluster.ContainerBenchmark, Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)},
	}}}
	return p
}

// EventLines returns a line for each event.
func EventLines(evs []event.Event) []string {
	var lines []string
	for _, ev := range evs {
		h := ev.Head()
		switch ev := ev.(type) {
		case event.Status:
			lines = append(lines, fmt.Sprintf("%s attempt %d: %s", ev.Topic(), h.Attempt,
				VerdictLine(verdict.Verdict{Phase: ev.Phase, Reason: ev.Reason, Message: ev.Message})))
		case event.Retried:
			lines = append(lines, fmt.Sprintf("%s attempt %d: %s %s: %s", ev.Topic(), h.Attempt, ev.Class, ev.Reason, ev.Message))
		case event.Finished:
			v := verdict.Verdict{Phase: event.PhaseFinished, Outcome: ev.Outcome, Class: ev.Class, Reason: ev.Reason, Message: ev.Message}
			lines = append(lines, fmt.Sprintf("%s attempt %d: %s", ev.Topic(), h.Attempt, VerdictLine(v)))
		}
	}
	return lines
}

// VerdictLine returns a verdict as a line: phase or outcome, class, reason, message.
func VerdictLine(v verdict.Verdict) string {
	state := string(v.Phase)
	if v.Phase == event.PhaseFinished {
		state = string(v.Outcome)
	}
	s := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", state, v.Class, v.Reason)), " ")
	if v.Message != "" {
		s += ": " + v.Message
	}
	return s
}
