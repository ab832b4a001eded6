// Package mpijob holds the part of kubeflow.org/v2beta1 MPIJob that the platform
// writes and reads: one object from which an operator, where a cluster has one,
// makes the launcher and the workers of an MPI run.
package mpijob

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What the object is called.
const (
	APIVersion = "kubeflow.org/v2beta1"
	Kind       = "MPIJob"
	// Resource is where such objects lie, as settings name it.
	Resource = "mpijobs.v2beta1.kubeflow.org"
)

// Roles of pods.
const (
	Launcher = "Launcher"
	Worker   = "Worker"
)

// Job is an MPIJob.
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// Spec is what is wanted.
type Spec struct {
	SlotsPerWorker   int32              `json:"slotsPerWorker"`
	RunPolicy        RunPolicy          `json:"runPolicy"`
	ReplicaSpecs     map[string]Replica `json:"mpiReplicaSpecs"`
	SSHAuthMountPath string             `json:"sshAuthMountPath,omitempty"`
}

// RunPolicy is when the run ends, and what of it stays then.
type RunPolicy struct {
	CleanPodPolicy          string `json:"cleanPodPolicy,omitempty"` // which pods go when the launcher has ended: None, Running or All
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	ActiveDeadlineSeconds   *int64 `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit            *int32 `json:"backoffLimit,omitempty"`
	Suspend                 *bool  `json:"suspend,omitempty"`
}

// Replica is a role of pods.
type Replica struct {
	Replicas      int32                  `json:"replicas"`
	RestartPolicy string                 `json:"restartPolicy,omitempty"`
	Template      corev1.PodTemplateSpec `json:"template"`
}

// Status is what the operator says.
type Status struct {
	Conditions     []Condition  `json:"conditions,omitempty"`
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// Condition is Created, Running, Restarting, Suspended, Succeeded or Failed.
type Condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitzero"`
}

// DeepCopyObject implements runtime.Object.
func (j *Job) DeepCopyObject() runtime.Object { //nolint:ireturn // as runtime.Object has it
	c := &Job{TypeMeta: j.TypeMeta, ObjectMeta: *j.DeepCopy(), Spec: j.Spec, Status: j.Status}
	c.Spec.RunPolicy = j.Spec.RunPolicy.deepCopy()
	c.Spec.ReplicaSpecs = maps.Clone(j.Spec.ReplicaSpecs)
	for name, r := range c.Spec.ReplicaSpecs {
		r.Template = *r.Template.DeepCopy()
		c.Spec.ReplicaSpecs[name] = r
	}
	c.Status.Conditions = slices.Clone(j.Status.Conditions)
	c.Status.StartTime, c.Status.CompletionTime = j.Status.StartTime.DeepCopy(), j.Status.CompletionTime.DeepCopy()
	return c
}

func (p RunPolicy) deepCopy() RunPolicy {
	p.TTLSecondsAfterFinished, p.ActiveDeadlineSeconds = pointer(p.TTLSecondsAfterFinished), pointer(p.ActiveDeadlineSeconds)
	p.BackoffLimit, p.Suspend = pointer(p.BackoffLimit), pointer(p.Suspend)
	return p
}

func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// AsJob returns the Job that says the same: what ends and how, for who knows the
// rules of Jobs. It has no pods of its own.
func (j *Job) AsJob() *batchv1.Job {
	as := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: *j.DeepCopy(),
		Spec: batchv1.JobSpec{
			BackoffLimit: pointer(j.Spec.RunPolicy.BackoffLimit), ActiveDeadlineSeconds: pointer(j.Spec.RunPolicy.ActiveDeadlineSeconds),
			Suspend: pointer(j.Spec.RunPolicy.Suspend),
		},
		Status: batchv1.JobStatus{StartTime: j.Status.StartTime.DeepCopy(), CompletionTime: j.Status.CompletionTime.DeepCopy()},
	}
	means := map[string]batchv1.JobConditionType{
		"Succeeded": batchv1.JobComplete, "Failed": batchv1.JobFailed,
		"Suspended": batchv1.JobSuspended,
	}
	for _, c := range j.Status.Conditions {
		if t, ok := means[c.Type]; ok {
			as.Status.Conditions = append(as.Status.Conditions, batchv1.JobCondition{
				Type: t, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	return as
}
