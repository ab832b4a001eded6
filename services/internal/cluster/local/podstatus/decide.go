// Package podstatus computes the status of a Job and its pods as a Job controller and a kubelet would set it. It is pure.
package podstatus

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// Facts are the known facts about a pod of a Job.
type Facts struct {
	Job       *batchv1.Job // as it was created
	Index     int          // the pod's number, if the Job is Indexed
	PodName   string
	PodUID    string
	Node      string
	IP        string         // of the pod
	HostIP    string         // of the machine
	Version   int64          // grows with every change
	State     *shimapi.State // as the shim last wrote it; nil before
	Waiting   *Waiting       // why there is no shim yet
	Deleting  time.Time      // when its deletion was requested
	Expired   time.Time      // when its deadline passed before it could start
	Halted    time.Time      // when it was ended before it could start: another pod of its Job failed, or its attempt was over
	Grace     time.Duration
	Stopped   time.Time // when the platform was stopped and ended the running pod
	ShimEnded bool      // its shim has ended, whatever its state says
}

// Waiting is why a pod cannot begin.
type Waiting struct {
	Since     time.Time
	Container string // that cannot be created; empty if it is the pod
	Reason    string
	Message   string
	NoNode    bool // the machine has no room for it
}

// Reasons as in Kubernetes.
const (
	reasonDeadline     = "DeadlineExceeded"
	reasonBackoff      = "BackoffLimitExceeded"
	reasonCompletions  = "CompletionsReached"
	reasonInitializing = "PodInitializing"
	reasonCreating     = "ContainerCreating"
	reasonCrashLoop    = "CrashLoopBackOff"
	reasonStartError   = "StartError"
	reasonOOM          = "OOMKilled"
	reasonError        = "Error"
	reasonCompleted    = "Completed"
)

// Labels returns the labels of pod number index of the Job.
func Labels(j *batchv1.Job, index int) map[string]string {
	labels := maps.Clone(j.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		labels[prefix+"job-name"], labels[prefix+"controller-uid"] = j.Name, string(j.UID)
	}
	if validate.IsIndexed(j) {
		labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	}
	return labels
}

// Annotations returns the annotations of pod number index of the Job.
func Annotations(j *batchv1.Job, index int) map[string]string {
	annotations := maps.Clone(j.Spec.Template.Annotations)
	if validate.IsIndexed(j) {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	}
	return annotations
}

// Job returns a Job with the status that a Job controller would set, from its existing pods, at least one.
func Job(pods ...Facts) *batchv1.Job {
	f := pods[0]
	j, n := f.Job.DeepCopy(), countPods(pods)
	j.ResourceVersion = strconv.FormatInt(n.version, 10)
	if !f.Deleting.IsZero() {
		at := metav1.NewTime(f.Deleting)
		j.DeletionTimestamp, j.Finalizers = &at, []string{metav1.FinalizerDeleteDependents}
	}
	began := j.CreationTimestamp
	j.Status = batchv1.JobStatus{
		StartTime: &began, Ready: &n.ready, Terminating: &n.terminating, Active: n.active, Succeeded: n.succeeded, Failed: n.failed,
		CompletedIndexes: n.indexes, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
	}
	ended := n.endedPods == validate.PodCount(j)
	switch {
	case n.deadlineExceeded:
		setConditions(j, n.stopped, n.ended, ended, batchv1.JobFailureTarget, batchv1.JobFailed, reasonDeadline,
			"Job was active longer than specified deadline")
	case n.failed > 0:
		setConditions(j, n.ended, n.ended, ended, batchv1.JobFailureTarget, batchv1.JobFailed, reasonBackoff,
			"Job has reached the specified backoff limit")
	case ended:
		at := metav1.NewTime(n.ended)
		j.Status.CompletionTime = &at
		setConditions(j, n.ended, n.ended, true, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, reasonCompletions,
			"Reached expected number of succeeded pods")
	}
	return j
}

// podCounts are the counts of pods in a Job's status.
type podCounts struct {
	active, ready, terminating, succeeded, failed int32

	endedPods        int
	deadlineExceeded bool      // the deadline passed
	stopped          time.Time // when the deadline passed
	ended            time.Time // when the last ended pod ended
	indexes          string    // of the pods that succeeded
	version          int64
}

func countPods(pods []Facts) podCounts {
	var n podCounts
	var good []int
	for _, f := range pods {
		n.version = max(n.version, f.Version)
		at, deadlineExceeded := f.endTime()
		n.deadlineExceeded = n.deadlineExceeded || deadlineExceeded
		if deadlineExceeded {
			n.stopped = f.deadlinePassedAt()
		}
		if f.isReady() && !f.HasEnded() {
			n.ready++
		}
		switch {
		case at.IsZero():
			continue
		case f.phase() == corev1.PodSucceeded && !deadlineExceeded:
			n.succeeded++
			good = append(good, f.Index)
		default:
			n.failed++
		}
		n.endedPods++
		n.ended = latest(n.ended, at)
	}
	n.countActive(pods)
	if validate.IsIndexed(pods[0].Job) {
		n.indexes = formatRanges(good)
	}
	return n
}

// countActive counts the pods that have not ended: those of a failed or deleted Job are terminating, others active.
func (n *podCounts) countActive(pods []Facts) {
	left := int32(len(pods) - n.endedPods) //nolint:gosec // validate.MaxPods
	if n.deadlineExceeded || n.failed > 0 || !pods[0].Deleting.IsZero() {
		n.terminating = left
		return
	}
	n.active = left
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// formatRanges writes numbers as Kubernetes does: 0,2-4.
func formatRanges(numbers []int) string {
	slices.Sort(numbers)
	var b strings.Builder
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(numbers[i]))
		switch last - i {
		case 0:
		case 1:
			b.WriteString("," + strconv.Itoa(numbers[last]))
		default:
			b.WriteString("-" + strconv.Itoa(numbers[last]))
		}
		i = last + 1
	}
	return b.String()
}

// setConditions adds the first condition since a time and, if all pods have ended, the last condition.
func setConditions(j *batchv1.Job, since, at time.Time, ended bool, first, last batchv1.JobConditionType, reason, message string) {
	add := func(t batchv1.JobConditionType, at time.Time) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastProbeTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(at),
		})
	}
	if ended {
		since = at
	}
	if add(first, since); ended {
		add(last, at)
	}
}

// endTime returns when the pod had ended with all its processes, zero before, and whether its deadline ended it.
func (f Facts) endTime() (at time.Time, deadlineExceeded bool) {
	switch {
	case !f.Expired.IsZero():
		return f.Expired, true
	case !f.Halted.IsZero():
		return f.Halted, false
	case f.cutOff():
		return f.Stopped, false
	case f.State == nil:
		return time.Time{}, false
	}
	return f.State.EndedAt, f.State.Deadline
}

// cutOff reports whether the pod's shim was killed when the platform was stopped, before it could write the pod's end.
func (f Facts) cutOff() bool {
	return f.ShimEnded && !f.Stopped.IsZero() && (f.State == nil || f.State.EndedAt.IsZero())
}

// stoppedByPlatform reports whether the pod has ended because the platform was stopped: a main container was sent SIGTERM, or never ended.
// Containers that ended before keep their result.
func (f Facts) stoppedByPlatform() bool {
	if f.Stopped.IsZero() || !f.HasEnded() || f.State != nil && f.State.Deadline {
		return false
	}
	for i := range f.Job.Spec.Template.Spec.Containers {
		if e := f.mainStatus(i).Termination; e == nil || !e.Ended.Before(f.Stopped) {
			return !f.initFailed()
		}
	}
	return false
}

// initFailed reports whether an init container failed before the platform was
// stopped, so that the main ones would not have begun.
func (f Facts) initFailed() bool {
	for i, c := range f.Job.Spec.Template.Spec.InitContainers {
		if e := f.containerStatus(i).Termination; c.RestartPolicy == nil && e != nil && e.Code != 0 && e.Ended.Before(f.Stopped) {
			return true
		}
	}
	return false
}

// deadlinePassedAt returns when the deadline of a pod passed that it ended.
func (f Facts) deadlinePassedAt() time.Time {
	if !f.Expired.IsZero() {
		return f.Expired
	}
	return f.State.Stopped
}

// HasEnded reports whether the pod has ended.
func (f Facts) HasEnded() bool {
	at, _ := f.endTime()
	return !at.IsZero()
}

// phase returns the phase of the pod, as a kubelet would set it.
func (f Facts) phase() corev1.PodPhase {
	switch {
	case !f.Expired.IsZero() || !f.Halted.IsZero() || f.stoppedByPlatform():
		return corev1.PodFailed
	case f.State == nil:
		return corev1.PodPending
	case f.HasEnded() && f.succeeded():
		return corev1.PodSucceeded
	case f.HasEnded():
		return corev1.PodFailed
	}
	for i := range f.Job.Spec.Template.Spec.Containers {
		if s := f.mainStatus(i); s.Running() || s.Termination != nil {
			return corev1.PodRunning
		}
	}
	return corev1.PodPending
}

// Failed reports whether the pod has ended, and not well.
func (f Facts) Failed() bool {
	return f.HasEnded() && (f.phase() == corev1.PodFailed || f.State != nil && f.State.Deadline)
}

// succeeded reports whether all main containers ended well.
func (f Facts) succeeded() bool {
	for i := range f.Job.Spec.Template.Spec.Containers {
		if e := f.mainStatus(i).Termination; e == nil || e.Code != 0 {
			return false
		}
	}
	return true
}

// containerStatus returns the status of container i, init containers first.
func (f Facts) containerStatus(i int) shimapi.ContainerStatus {
	if f.State == nil || i >= len(f.State.Containers) {
		return shimapi.ContainerStatus{}
	}
	return f.State.Containers[i]
}

// mainStatus returns the status of main container i.
func (f Facts) mainStatus(i int) shimapi.ContainerStatus {
	return f.containerStatus(len(f.Job.Spec.Template.Spec.InitContainers) + i)
}

// isReady reports whether all sidecars and main containers run.
func (f Facts) isReady() bool {
	t := f.Job.Spec.Template.Spec
	for i, c := range slices.Concat(t.InitContainers, t.Containers) {
		if (i >= len(t.InitContainers) || c.RestartPolicy != nil) && !f.containerStatus(i).Running() {
			return false
		}
	}
	return true
}

// isInitialized reports whether every init container has done its work.
func (f Facts) isInitialized() bool {
	for i, c := range f.Job.Spec.Template.Spec.InitContainers {
		s := f.containerStatus(i)
		switch {
		case c.RestartPolicy != nil && s.Started.IsZero():
			return false
		case c.RestartPolicy == nil && (s.Termination == nil || s.Termination.Code != 0):
			return false
		}
	}
	return f.State != nil
}

// Pod returns the Job's pod with the status that a kubelet would set.
func Pod(f Facts) corev1.Pod {
	t, yes := f.Job.Spec.Template.DeepCopy(), true
	p := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: f.PodName, Namespace: f.Job.Namespace, UID: types.UID(f.PodUID), CreationTimestamp: f.Job.CreationTimestamp,
			Labels: Labels(f.Job, f.Index), Annotations: Annotations(f.Job, f.Index), ResourceVersion: strconv.FormatInt(f.Version, 10),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "Job", Name: f.Job.Name, UID: f.Job.UID, Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: t.Spec,
	}
	if f.Waiting == nil || !f.Waiting.NoNode {
		p.Spec.NodeName = f.Node
	}
	f.setDeletion(&p)
	began := f.Job.CreationTimestamp
	p.Status = corev1.PodStatus{
		Phase: f.phase(), Conditions: f.podConditions(), QOSClass: corev1.PodQOSBestEffort,
		StartTime: &began, HostIP: f.HostIP, PodIP: f.IP, PodIPs: []corev1.PodIP{{IP: f.IP}}, HostIPs: []corev1.HostIP{{IP: f.HostIP}},
	}
	if f.stoppedByPlatform() {
		p.Status.Reason, p.Status.Message = cluster.ReasonStopped, "the platform was stopped, and ended its pods"
	}
	for i, c := range t.Spec.InitContainers {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, f.container(c, i, true))
	}
	for i, c := range t.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, f.container(c, len(t.Spec.InitContainers)+i, false))
	}
	return p
}

// setDeletion sets the deletion time of a pod that is deleted or past its deadline.
func (f Facts) setDeletion(p *corev1.Pod) {
	at := f.Deleting
	if at.IsZero() && f.State != nil && f.State.Deadline {
		at = f.State.Stopped
	}
	if at.IsZero() {
		return
	}
	until, grace := metav1.NewTime(at.Add(f.Grace)), int64(f.Grace/time.Second)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &until, &grace
}

// EndedAt returns when the pod ended, zero if it has not.
func (f Facts) EndedAt() time.Time {
	at, _ := f.endTime()
	return at
}
