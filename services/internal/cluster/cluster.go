// Package cluster defines the interface to the clusters that run benchmarks: the objects of a run, the snapshots of their state, and the
// contract of the methods that every driver implements. The drivers are in the folders below; package clustertest has the suite that each
// of them passes.
//
// The objects are those of Kubernetes, and they are the only description of how a run runs.
package cluster

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// VolumeSecretFile begins the names of volumes with one file each, whose content is a value of a user's Secret.
const VolumeSecretFile = "secret-file-"

// VolumeUser begins the names of the volumes of a descriptor.
const VolumeUser = "volume-"

// Labels that every object of a run carries. The drivers never touch an object without LabelRun.
const (
	LabelRun      = "benchmark-ai.dev/run"
	LabelAttempt  = "benchmark-ai.dev/attempt"
	LabelRole     = "benchmark-ai.dev/role"
	LabelOwner    = "benchmark-ai.dev/owner"
	LabelTeam     = "benchmark-ai.dev/team"
	LabelSet      = "benchmark-ai.dev/set"
	LabelSchedule = "benchmark-ai.dev/schedule"
)

// LabelKueueQueue of a Job is the queue of Kueue in which it is suspended until its turn.
const LabelKueueQueue = "kueue.x-k8s.io/queue-name"

// LabelEnd of a Job and its pods says what their end means for the run. The main Job, which has the name of the attempt, has none: its end
// ends the run. That of another Job without the label must not come before.
const (
	LabelEnd   = "benchmark-ai.dev/end"
	EndAwaited = "awaited" // the end of the run waits for it
	EndFree    = "free"    // it may come at any time, with exit code 0
)

// LabelCopy of an object of a manifest and of its pods is the number of the copy, from 0 on.
const LabelCopy = "benchmark-ai.dev/copy"

// Annotations of the objects of a manifest, and of their pods. An object that has
// AnnotationSucceeded ends the run; the conditions are written as package manifest of
// descriptors reads them.
const (
	AnnotationSucceeded   = "benchmark-ai.dev/succeeded"
	AnnotationFailed      = "benchmark-ai.dev/failed"
	AnnotationUnseen      = "benchmark-ai.dev/unseen"       // of an object whose pods have no labels of the run: snapshots lack them
	AnnotationPodSelector = "benchmark-ai.dev/pod-selector" // of an object: the selector of its pods, which have no labels of the run
	AnnotationContainer   = "benchmark-ai.dev/container"    // of a pod: the measured container, which snapshots call ContainerBenchmark
)

// AnnotationNetwork of a pod names the network of Multus that takes the place of its pod network (Multus CNI, "Specifying the default
// network"). A name without a namespace is one of NetworksNamespace, unless Multus is set up with another.
const (
	AnnotationNetwork = "v1.multus-cni.io/default-network"
	NetworksNamespace = "kube-system"
)

// AnnotationMTU of a pod is the MTU of its link to the network of its run on the local cluster.
const AnnotationMTU = "benchmark-ai.dev/mtu"

// AnnotationCustomParams of a Job is the table custom_params of the descriptor, as JSON, for an engine that is a program.
const AnnotationCustomParams = "benchmark-ai.dev/custom-params"

// AnnotationPrice of a pod is what its machine costs in an hour, as the descriptor gives it, for the record of the run.
const AnnotationPrice = "benchmark-ai.dev/price-per-hour"

// Containers that surround the benchmark in its pod.
const (
	ContainerInstall   = "bai-install" // brings the pod binary
	ContainerMTU       = "bai-mtu"     // sets the MTU of the pod's link to its network
	ContainerPull      = "bai-pull"    // brings the data
	ContainerHosts     = "bai-hosts"   // waits for the addresses of the run's pods, and writes the hosts file
	ContainerWait      = "bai-wait"    // waits for another role
	ContainerCollect   = "bai-collect" // ships samples and lines; a native sidecar
	ContainerBenchmark = "benchmark"
	ContainerStep      = "step-" // begins the name of the container of a step; the same as pod.ContainerStep
)

// Errors that callers can tell apart. Any other error means that the cluster cannot be reached, for every caller, and that the same call
// may succeed later.
var (
	// ErrNotFound means that the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists means that an object of that name exists already.
	ErrExists = errors.New("exists already")
)

// RefusedError means that the cluster does not accept an object, now or later.
type RefusedError struct {
	Object  string      // kind and name
	Reason  string      // one CamelCase word: an event.Reason if one fits, else empty
	Class   event.Class // whose fault it is; empty means that of the requester
	Message string      // the original message
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s was refused: %s", e.Object, e.Message) }

// Object is an object of Kubernetes, with its kind set.
type Object interface {
	metav1.Object
	runtime.Object
}

// Ref names one attempt of a run by its main Job, whose end ends the attempt.
type Ref struct {
	Run     string
	Attempt int
	Scope   string // Kubernetes namespace
	Job     string // name
	UID     string // of the Job; empty means any
}

// Snapshot is the observed state of one attempt of a run at one time.
type Snapshot struct {
	Ref    Ref
	Job    *batchv1.Job   // the main Job, whose end ends the attempt; nil if it is gone
	Others []batchv1.Job  // of its other roles, by name
	Pods   []corev1.Pod   // of any role, by name
	Events []corev1.Event // about the jobs and the pods, oldest first
}

// ReasonStopped is the reason in the status of a pod that failed because the platform, which ran it itself, was stopped. No kubelet sets
// it.
const ReasonStopped = "PlatformStopped"

// Condition returns a condition of a Job that is true; a nil Job has none.
func Condition(j *batchv1.Job, t batchv1.JobConditionType) (batchv1.JobCondition, bool) {
	if j == nil {
		return batchv1.JobCondition{}, false
	}
	for _, c := range j.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return c, true
		}
	}
	return batchv1.JobCondition{}, false
}

// Alive reports whether a pod has not ended.
func Alive(p corev1.Pod) bool {
	return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// Creator creates objects.
type Creator interface {
	// Create creates o, which has its kind, name, namespace and labels, and fills in the fields that the cluster sets, such as its UID. It
	// returns ErrExists if an object of that name exists, and fills in the UID of the existing one if it is a ConfigMap. It returns
	// *RefusedError if the cluster does not accept the object.
	Create(ctx context.Context, o Object) error
}

// Deleter deletes objects.
type Deleter interface {
	// Delete requests that all objects of an attempt end and are deleted, dependents first, with the grace period of its pods. It returns
	// when the cluster has accepted the request: Observe shows when the objects are gone. If the attempt has no objects, Delete succeeds. A
	// later call also gives up pods that should be gone and are not because their machine is lost.
	Delete(ctx context.Context, r Ref) error
}

// Labeler returns the labels of objects that do not belong to a run.
type Labeler interface {
	// Labels returns the labels of a Secret or PersistentVolumeClaim without its content. It returns ErrNotFound if the object does not
	// exist, and *RefusedError if the platform has no permission to read it.
	Labels(ctx context.Context, kind, scope, name string) (map[string]string, error)
}

// Annotator annotates pods.
type Annotator interface {
	// Annotate sets an annotation of a pod. Volumes of the pod that have annotations show it soon after. A pod that is gone, or that has
	// another UID than p, stays as it is, which is no error.
	Annotate(ctx context.Context, p corev1.Pod, name, value string) error
}

// Stopper ends the pods of an attempt, and leaves its objects.
type Stopper interface {
	// Stop requests that every running pod of an attempt ends, with its grace period. The Jobs and all ended pods stay visible; a pod that
	// Stop ends may be deleted, as on Kubernetes. Its Job then has failed, and never creates another pod. Stop returns when the cluster has
	// accepted the request: Observe shows when no pod runs. If the attempt has no objects, Stop succeeds.
	Stop(ctx context.Context, r Ref) error
}

// Ender ends attempts, with their objects or without.
type Ender interface {
	Deleter
	Stopper
}

// Occupancy is where the pods of runs are.
type Occupancy struct {
	Pods []corev1.Pod // of all runs, with a node or without, that have not ended; their specs may lack volumes, environment and arguments
	// Nodes are those of the cluster. UnknownReason is why they could not be listed, for people; empty if they were.
	Nodes         []corev1.Node
	UnknownReason string
	OneMachine    bool // the only node takes every pod for which it has room, whatever its labels
}

// Occupier returns where the pods of runs are.
type Occupier interface {
	// Occupancy returns the state of a short while ago. The error means that the pods of runs are not known.
	Occupancy(ctx context.Context) (Occupancy, error)
}

// Observer returns the state of attempts.
type Observer interface {
	// Observe reads the current state of the attempt, not a cached one. It returns ErrNotFound once neither the attempt's job nor a pod of
	// it exists; a Job with another UID than r.UID does not count.
	Observe(ctx context.Context, r Ref) (Snapshot, error)
	// Watch calls see for each existing attempt, then for each attempt that changes or is gone (Job nil, no pods), and for each one again
	// periodically. Changes that follow each other closely may come as one snapshot. It blocks until ctx is done, and calls see once at a
	// time.
	Watch(ctx context.Context, see func(Snapshot)) error
}
