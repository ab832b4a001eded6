package podstatus

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// container returns the status of container i of the pod.
func (f Facts) container(c corev1.Container, i int, init bool) corev1.ContainerStatus {
	s, sidecar := f.containerStatus(i), init && c.RestartPolicy != nil
	started := s.Running()
	out := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, RestartCount: int32(s.Restarts), Started: &started, //nolint:gosec // few
		Ready: s.Running() && (sidecar || !init),
	}
	if !s.Started.IsZero() {
		out.ContainerID = "local://" + f.PodUID + "/" + c.Name
	}
	if s.LastTermination != nil {
		out.LastTerminationState.Terminated = terminated(*s.LastTermination, out.ContainerID)
	}
	switch {
	case s.Running() && f.cutOff(): // it was killed with the shim
		out.State.Terminated = terminated(shimapi.Termination{Code: 128 + 9, Signal: 9, Started: s.Started, Ended: f.Stopped},
			out.ContainerID)
	case s.Running():
		out.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.Started)}
	case s.Termination == nil:
		out.State.Waiting = f.waitingState(c)
	case sidecar && !f.HasEnded() && s.TermSentAt.IsZero():
		out.LastTerminationState.Terminated = terminated(*s.Termination, out.ContainerID)
		out.State.Waiting = &corev1.ContainerStateWaiting{
			Reason:  reasonCrashLoop,
			Message: "back-off restarting failed container " + c.Name,
		}
	default:
		out.State.Terminated = terminated(*s.Termination, out.ContainerID)
		out.Ready = init && !sidecar && s.Termination.Code == 0
	}
	return out
}

// waitingState returns why a container has not started.
func (f Facts) waitingState(c corev1.Container) *corev1.ContainerStateWaiting {
	if w := f.Waiting; w != nil && w.Container == c.Name {
		return &corev1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}
	}
	if len(f.Job.Spec.Template.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: reasonInitializing}
	}
	return &corev1.ContainerStateWaiting{Reason: reasonCreating}
}

func terminated(e shimapi.Termination, id string) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode: int32(e.Code), Signal: int32(e.Signal), Reason: reasonError, Message: e.Message, //nolint:gosec // small
		StartedAt: metav1.NewTime(e.Started), FinishedAt: metav1.NewTime(e.Ended), ContainerID: id,
	}
	switch {
	case e.Problem != "":
		t.Reason, t.Message = reasonStartError, e.Problem
	case e.OOM:
		t.Reason = reasonOOM
	case e.Code == 0:
		t.Reason = reasonCompleted
	}
	return t
}

// podConditions are in the order in which a kubelet writes them.
func (f Facts) podConditions() []corev1.PodCondition {
	created := f.Job.CreationTimestamp.Time
	scheduled := condition(corev1.PodScheduled, true, created, "", "")
	if w := f.Waiting; w != nil && w.NoNode {
		return []corev1.PodCondition{condition(corev1.PodScheduled, false, w.Since, w.Reason, w.Message)}
	}
	over, last := f.HasEnded(), f.lastTransition()
	reason, message := f.notReadyReason()
	initialized := condition(corev1.PodInitialized, true, created, "", "")
	if !f.isInitialized() {
		initialized = condition(corev1.PodInitialized, false, created, "ContainersNotInitialized",
			"containers with incomplete status: ["+strings.Join(f.pendingInits(), " ")+"]")
	}
	if over && f.phase() == corev1.PodSucceeded {
		reason, message, initialized.Reason = "PodCompleted", "", "PodCompleted"
	}
	ready := f.isReady() && !over
	if ready {
		reason, message = "", ""
	}
	return []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, f.State != nil && !over, last, "", ""),
		initialized,
		condition(corev1.PodReady, ready, last, reason, message),
		condition(corev1.ContainersReady, ready, last, reason, message),
		scheduled,
	}
}

// notReadyReason returns why the pod is not ready.
func (f Facts) notReadyReason() (reason, message string) {
	if f.HasEnded() && f.phase() == corev1.PodFailed {
		return "PodFailed", ""
	}
	var names []string
	n := len(f.Job.Spec.Template.Spec.InitContainers)
	for i, c := range f.Job.Spec.Template.Spec.Containers {
		if !f.containerStatus(n + i).Running() {
			names = append(names, c.Name)
		}
	}
	return "ContainersNotReady", "containers with unready status: [" + strings.Join(names, " ") + "]"
}

// pendingInits returns the init containers that have not done their work.
func (f Facts) pendingInits() []string {
	var names []string
	for i, c := range f.Job.Spec.Template.Spec.InitContainers {
		if s := f.containerStatus(i); s.Termination == nil && !s.Running() || s.Termination != nil && s.Termination.Code != 0 ||
			s.Running() && c.RestartPolicy == nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// lastTransition returns when a container began or ended last.
func (f Facts) lastTransition() time.Time {
	at := f.Job.CreationTimestamp.Time
	if f.State == nil {
		return at
	}
	for _, s := range f.State.Containers {
		if s.Started.After(at) {
			at = s.Started
		}
		if s.Termination != nil && s.Termination.Ended.After(at) {
			at = s.Termination.Ended
		}
	}
	return at
}

func condition(t corev1.PodConditionType, ok bool, at time.Time, reason, message string) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: t, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at),
		Reason: reason, Message: message,
	}
	if ok {
		c.Status = corev1.ConditionTrue
	}
	return c
}

// Event returns the event that a kubelet or scheduler would emit for a pod that cannot start, if any.
func Event(f Facts) (corev1.Event, bool) {
	w := f.Waiting
	if w == nil {
		return corev1.Event{}, false
	}
	reason, from := "FailedMount", "kubelet"
	switch {
	case w.NoNode:
		reason, from = "FailedScheduling", "default-scheduler"
	case w.Container != "":
		reason = "Failed"
	}
	at := metav1.NewTime(w.Since)
	return corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Name: f.PodName + ".waits", Namespace: f.Job.Namespace, CreationTimestamp: at},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: f.Job.Namespace, Name: f.PodName, UID: types.UID(f.PodUID)},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: w.Message, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: from, Host: f.Node},
	}, true
}
