// Package status says of a Job and its pod what a Job controller and a kubelet
// would say of them. It is pure.
package status

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
	"github.com/benchmark-ai/bai/services/internal/cluster/local/accept"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
)

// Facts are all that the local cluster knows of a pod of a Job.
type Facts struct {
	Job      *batchv1.Job // as it was created
	Index    int          // the pod's number, where the Job is Indexed
	PodName  string
	PodUID   string
	Node     string
	IP       string      // of the pod
	HostIP   string      // of the machine
	Version  int64       // grows with every change
	State    *spec.State // as the supervisor wrote it last; nil before it did
	Waiting  *Waiting    // why there is no supervisor yet
	Deleting time.Time   // when its deletion was asked for
	Expired  time.Time   // when its deadline passed before it could begin
	Halted   time.Time   // when another pod of its Job failed before it could begin
	Grace    time.Duration
	Stopped  time.Time // when the platform was stopped while it ran, and ended it
	Killed   bool      // its supervisor has ended, whatever its state says
}

// Waiting is why a pod cannot begin.
type Waiting struct {
	Since     time.Time
	Container string // that cannot be created; empty where it is the pod
	Reason    string
	Message   string
	NoNode    bool // the machine has no room for it
}

// Reasons that Kubernetes gives.
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
	if accept.Indexed(j) {
		labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	}
	return labels
}

// Annotations returns the annotations of pod number index of the Job.
func Annotations(j *batchv1.Job, index int) map[string]string {
	annotations := maps.Clone(j.Spec.Template.Annotations)
	if accept.Indexed(j) {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	}
	return annotations
}

// Job returns a Job as a Job controller would leave it, of all its pods that
// there are, of which there is one.
func Job(pods ...Facts) *batchv1.Job {
	f := pods[0]
	j, n := f.Job.DeepCopy(), count(pods)
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
	ended := n.over == accept.Pods(j)
	switch {
	case n.late:
		conditions(j, n.stopped, n.ended, ended, batchv1.JobFailureTarget, batchv1.JobFailed, reasonDeadline, "Job was active longer than specified deadline")
	case n.failed > 0:
		conditions(j, n.ended, n.ended, ended, batchv1.JobFailureTarget, batchv1.JobFailed, reasonBackoff, "Job has reached the specified backoff limit")
	case ended:
		at := metav1.NewTime(n.ended)
		j.Status.CompletionTime = &at
		conditions(j, n.ended, n.ended, true, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, reasonCompletions, "Reached expected number of succeeded pods")
	}
	return j
}

// counts are what a Job's status says of its pods.
type counts struct {
	active, ready, terminating, succeeded, failed int32

	over    int
	late    bool      // the deadline passed
	stopped time.Time // when it did
	ended   time.Time // when the last pod ended of those that have
	indexes string    // of those that succeeded
	version int64
}

func count(pods []Facts) counts {
	var n counts
	var good []int
	for _, f := range pods {
		n.version = max(n.version, f.Version)
		at, late := f.ended()
		n.late = n.late || late
		if late {
			n.stopped = f.late()
		}
		if f.ready() && !f.Over() {
			n.ready++
		}
		switch {
		case at.IsZero():
			continue
		case f.phase() == corev1.PodSucceeded && !late:
			n.succeeded++
			good = append(good, f.Index)
		default:
			n.failed++
		}
		n.over++
		n.ended = latest(n.ended, at)
	}
	n.rest(pods)
	if accept.Indexed(pods[0].Job) {
		n.indexes = ranges(good)
	}
	return n
}

// rest counts the pods that have not ended: those of a Job that has failed, or
// goes, are on their way out.
func (n *counts) rest(pods []Facts) {
	left := int32(len(pods) - n.over) //nolint:gosec // accept.MaxPods
	if n.late || n.failed > 0 || !pods[0].Deleting.IsZero() {
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

// ranges writes numbers as Kubernetes does: 0,2-4.
func ranges(numbers []int) string {
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

// conditions says how a Job ends since a time and, where all of it is over, that
// it has ended.
func conditions(j *batchv1.Job, since, at time.Time, over bool, first, last batchv1.JobConditionType, reason, message string) {
	add := func(t batchv1.JobConditionType, at time.Time) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastProbeTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(at),
		})
	}
	if over {
		since = at
	}
	if add(first, since); over {
		add(last, at)
	}
}

// ended returns when nothing of the pod was left, zero before, and whether the
// deadline was to blame.
func (f Facts) ended() (at time.Time, late bool) {
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
	return f.State.Over, f.State.Deadline
}

// cutOff reports whether the pod's supervisor was killed when the platform was
// stopped, before it could write how the pod ended.
func (f Facts) cutOff() bool {
	return f.Killed && !f.Stopped.IsZero() && (f.State == nil || f.State.Over.IsZero())
}

// stopped reports whether the pod has ended because the platform was stopped: a main
// container was sent SIGTERM, or never ended. What ended before is what it was.
func (f Facts) stopped() bool {
	if f.Stopped.IsZero() || !f.Over() || f.State != nil && f.State.Deadline {
		return false
	}
	for i := range f.Job.Spec.Template.Spec.Containers {
		if e := f.main(i).End; e == nil || !e.Ended.Before(f.Stopped) {
			return !f.initFailed()
		}
	}
	return false
}

// initFailed reports whether an init container failed before the platform was
// stopped, so that the main ones would not have begun.
func (f Facts) initFailed() bool {
	for i, c := range f.Job.Spec.Template.Spec.InitContainers {
		if e := f.at(i).End; c.RestartPolicy == nil && e != nil && e.Code != 0 && e.Ended.Before(f.Stopped) {
			return true
		}
	}
	return false
}

// late returns when the deadline passed, of a pod that it ended.
func (f Facts) late() time.Time {
	if !f.Expired.IsZero() {
		return f.Expired
	}
	return f.State.Stopped
}

// Over reports whether the pod has ended.
func (f Facts) Over() bool {
	at, _ := f.ended()
	return !at.IsZero()
}

// phase returns the phase of the pod, as a kubelet decides it.
func (f Facts) phase() corev1.PodPhase {
	switch {
	case !f.Expired.IsZero() || !f.Halted.IsZero() || f.stopped():
		return corev1.PodFailed
	case f.State == nil:
		return corev1.PodPending
	case f.Over() && f.succeeded():
		return corev1.PodSucceeded
	case f.Over():
		return corev1.PodFailed
	}
	for i := range f.Job.Spec.Template.Spec.Containers {
		if s := f.main(i); s.Running() || s.End != nil {
			return corev1.PodRunning
		}
	}
	return corev1.PodPending
}

// Failed reports whether the pod has ended, and not well.
func (f Facts) Failed() bool {
	return f.Over() && (f.phase() == corev1.PodFailed || f.State != nil && f.State.Deadline)
}

// succeeded reports whether all main containers ended well.
func (f Facts) succeeded() bool {
	for i := range f.Job.Spec.Template.Spec.Containers {
		if e := f.main(i).End; e == nil || e.Code != 0 {
			return false
		}
	}
	return true
}

// at returns the status of container i, init containers first.
func (f Facts) at(i int) spec.Status {
	if f.State == nil || i >= len(f.State.Containers) {
		return spec.Status{}
	}
	return f.State.Containers[i]
}

// main returns the status of main container i.
func (f Facts) main(i int) spec.Status {
	return f.at(len(f.Job.Spec.Template.Spec.InitContainers) + i)
}

// ready reports whether all that is to run beside each other runs.
func (f Facts) ready() bool {
	t := f.Job.Spec.Template.Spec
	for i, c := range slices.Concat(t.InitContainers, t.Containers) {
		if (i >= len(t.InitContainers) || c.RestartPolicy != nil) && !f.at(i).Running() {
			return false
		}
	}
	return true
}

// initialized reports whether every init container has done its work.
func (f Facts) initialized() bool {
	for i, c := range f.Job.Spec.Template.Spec.InitContainers {
		s := f.at(i)
		switch {
		case c.RestartPolicy != nil && s.Started.IsZero():
			return false
		case c.RestartPolicy == nil && (s.End == nil || s.End.Code != 0):
			return false
		}
	}
	return f.State != nil
}

// Pod returns the Job's pod as a kubelet would leave it.
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
	f.deletion(&p)
	began := f.Job.CreationTimestamp
	p.Status = corev1.PodStatus{
		Phase: f.phase(), Conditions: f.podConditions(), QOSClass: corev1.PodQOSBestEffort,
		StartTime: &began, HostIP: f.HostIP, PodIP: f.IP, PodIPs: []corev1.PodIP{{IP: f.IP}}, HostIPs: []corev1.HostIP{{IP: f.HostIP}},
	}
	if f.stopped() {
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

// deletion marks a pod that is told to end before its time.
func (f Facts) deletion(p *corev1.Pod) {
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

// Ended returns when the pod ended, zero if it has not.
func (f Facts) Ended() time.Time {
	at, _ := f.ended()
	return at
}
