//go:build linux

package disk

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// Attempt is one attempt of a run.
type Attempt struct{ Scope, Run, Number string }

// AttemptOf returns the attempt that an object of Kubernetes belongs to.
func AttemptOf(o metav1.Object) Attempt {
	return Attempt{o.GetNamespace(), o.GetLabels()[cluster.LabelRun], o.GetLabels()[cluster.LabelAttempt]}
}

// Record is the part of a pod and its Job that outlives the process.
type Record struct {
	Job     *batchv1.Job `json:"job"`
	Index   int          `json:"index,omitempty"`  // of the pod, if the Job is Indexed
	Number  int          `json:"number,omitempty"` // of the pod in the network of its run; zero if it shares the machine's
	PodName string       `json:"pod_name"`
	PodUID  string       `json:"pod_uid"`
	Created time.Time    `json:"created"`          // to the nanosecond
	GPUs    []int        `json:"gpus,omitempty"`   // allocated to it
	Expired time.Time    `json:"expired,omitzero"` // when its deadline passed before it could start
	Halted  time.Time    `json:"halted,omitzero"`  // when it was halted before it could start, see controller.halt
	Stopped time.Time    `json:"stopped,omitzero"` // when the platform was stopped and ended the running pod
}

// ID names the pod in the folder.
func (r Record) ID() string {
	if validate.IsIndexed(r.Job) {
		return string(r.Job.UID) + "-" + strconv.Itoa(r.Index)
	}
	return string(r.Job.UID)
}

// DeletionMark means that a Job has to be deleted.
type DeletionMark struct {
	At      time.Time `json:"at"`
	Attempt bool      `json:"attempt"` // all other objects of the attempt are deleted with its last Job
}

// Object is a ConfigMap, Secret or Service.
type Object struct {
	ConfigMap *corev1.ConfigMap `json:"config_map,omitempty"`
	Secret    *corev1.Secret    `json:"secret,omitempty"`
	Service   *corev1.Service   `json:"service,omitempty"`
}

// Key is the name of an object, which is created once.
type Key struct{ Kind, Scope, Name string }

// Key returns the name of an object; its kind is empty if the object is empty.
func (o Object) Key() Key {
	kind, m := o.Meta()
	return Key{kind, m.Namespace, m.Name}
}

// Attempt returns the attempt that an object belongs to.
func (o Object) Attempt() Attempt {
	_, m := o.Meta()
	return AttemptOf(m)
}

// Meta returns the kind of an object, empty if the object is empty, and its metadata.
func (o Object) Meta() (string, *metav1.ObjectMeta) {
	switch {
	case o.ConfigMap != nil:
		return "ConfigMap", &o.ConfigMap.ObjectMeta
	case o.Secret != nil:
		return "Secret", &o.Secret.ObjectMeta
	case o.Service != nil:
		return "Service", &o.Service.ObjectMeta
	}
	return "", &metav1.ObjectMeta{}
}
