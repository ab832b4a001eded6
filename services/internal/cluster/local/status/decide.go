// Package status says of a Job and its pod what a Job controller and a kubelet
// would say of them. It is pure.
package status

import (
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
)

// Facts are all that the local cluster knows of a Job.
type Facts struct {
	Job      *batchv1.Job // as it was created
	PodName  string
	PodUID   string
	Node     string
	IP       string
	Version  int64       // grows with every change
	State    *spec.State // as the supervisor wrote it last; nil before it did
	Waiting  *Waiting    // why there is no supervisor yet
	Deleting time.Time   // when its deletion was asked for
	Expired  time.Time   // when its deadline passed before it could begin
	Grace    time.Duration
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

// Labels returns the labels of the Job's pod.
func Labels(j *batchv1.Job) map[string]string {
	labels := maps.Clone(j.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		labels[prefix+"job-name"], labels[prefix+"controller-uid"] = j.Name, string(j.UID)
	}
	return labels
}

// Job returns the Job as a Job controller would leave it.
func Job(f Facts) *batchv1.Job {
	j, pod := f.Job.DeepCopy(), f.phase()
	j.ResourceVersion = strconv.FormatInt(f.Version, 10)
	if !f.Deleting.IsZero() {
		at := metav1.NewTime(f.Deleting)
		j.DeletionTimestamp, j.Finalizers = &at, []string{metav1.FinalizerDeleteDependents}
	}
	began, zero := j.CreationTimestamp, int32(0)
	j.Status = batchv1.JobStatus{StartTime: &began, Ready: &zero, Terminating: &zero, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
	ended, late := f.ended()
	switch {
	case !ended.IsZero() && pod == corev1.PodSucceeded && !late:
		at := metav1.NewTime(ended)
		j.Status.Succeeded, j.Status.CompletionTime = 1, &at
		f.conditions(j, ended, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, reasonCompletions, "Reached expected number of succeeded pods")
	case !ended.IsZero() && late:
		j.Status.Failed = 1
		f.conditions(j, ended, batchv1.JobFailureTarget, batchv1.JobFailed, reasonDeadline, "Job was active longer than specified deadline")
	case !ended.IsZero():
		j.Status.Failed = 1
		f.conditions(j, ended, batchv1.JobFailureTarget, batchv1.JobFailed, reasonBackoff, "Job has reached the specified backoff limit")
	default:
		f.active(j, late)
	}
	return j
}

// active fills in the status of a Job that has not ended.
func (f Facts) active(j *batchv1.Job, late bool) {
	one := int32(1)
	if late || !f.Deleting.IsZero() {
		j.Status.Terminating = &one
	} else {
		j.Status.Active = 1
	}
	if f.ready() {
		j.Status.Ready = &one
	}
	if late {
		f.conditions(j, f.State.Stopped, batchv1.JobFailureTarget, "", reasonDeadline, "Job was active longer than specified deadline")
	}
}

// conditions says how a Job ends, and, where last is given, that it has ended.
func (Facts) conditions(j *batchv1.Job, at time.Time, first, last batchv1.JobConditionType, reason, message string) {
	for _, t := range []batchv1.JobConditionType{first, last} {
		if t == "" {
			continue
		}
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastProbeTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(at),
		})
	}
}

// ended returns when nothing of the pod was left, zero before, and whether the
// deadline was to blame.
func (f Facts) ended() (at time.Time, late bool) {
	if !f.Expired.IsZero() {
		return f.Expired, true
	}
	if f.State == nil {
		return time.Time{}, false
	}
	return f.State.Over, f.State.Deadline
}

// Over reports whether the Job has ended.
func (f Facts) Over() bool {
	at, _ := f.ended()
	return !at.IsZero()
}

// phase returns the phase of the pod, as a kubelet decides it.
func (f Facts) phase() corev1.PodPhase {
	switch {
	case !f.Expired.IsZero():
		return corev1.PodFailed
	case f.State == nil:
		return corev1.PodPending
	case !f.State.Over.IsZero() && f.succeeded():
		return corev1.PodSucceeded
	case !f.State.Over.IsZero():
		return corev1.PodFailed
	}
	for i := range f.Job.Spec.Template.Spec.Containers {
		if s := f.main(i); s.Running() || s.End != nil {
			return corev1.PodRunning
		}
	}
	return corev1.PodPending
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
			Labels: Labels(f.Job), Annotations: t.Annotations, ResourceVersion: strconv.FormatInt(f.Version, 10),
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
		StartTime: &began, HostIP: f.IP, PodIP: f.IP, PodIPs: []corev1.PodIP{{IP: f.IP}}, HostIPs: []corev1.HostIP{{IP: f.IP}},
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

// Ended returns when the Job ended, zero if it has not.
func (f Facts) Ended() time.Time {
	at, _ := f.ended()
	return at
}
