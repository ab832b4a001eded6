// Package cluster is the vocabulary of what runs benchmarks: the objects of a
// run, what can be seen of them, and the contract of the verbs that every driver
// keeps. The drivers lie in the folders below; package clustertest holds the
// suite that each of them passes.
//
// The objects are those of Kubernetes, and they are the only description of how
// a run runs.
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

// Labels that every object of a run carries. Nothing without LabelRun is ever
// touched.
const (
	LabelRun      = "benchmark-ai.dev/run"
	LabelAttempt  = "benchmark-ai.dev/attempt"
	LabelRole     = "benchmark-ai.dev/role"
	LabelOwner    = "benchmark-ai.dev/owner"
	LabelTeam     = "benchmark-ai.dev/team"
	LabelSet      = "benchmark-ai.dev/set"
	LabelSchedule = "benchmark-ai.dev/schedule"
)

// Containers that surround the benchmark in its pod.
const (
	ContainerInstall   = "bai-install" // brings the pod binary
	ContainerPull      = "bai-pull"    // brings the data
	ContainerWait      = "bai-wait"    // waits for another role
	ContainerCollect   = "bai-collect" // ships samples and lines; a native sidecar
	ContainerBenchmark = "benchmark"
)

// Errors that can be told apart. What is none of them means that the cluster is
// away, for everybody, and that the same call may succeed later.
var (
	// ErrNotFound says that there is no such object.
	ErrNotFound = errors.New("not found")
	// ErrExists says that an object of that name is there already.
	ErrExists = errors.New("exists already")
)

// RefusedError says that the cluster will not have an object, now or later.
type RefusedError struct {
	Object  string      // kind and name
	Reason  string      // one CamelCase word: an event.Reason where one fits, else empty
	Class   event.Class // whose fault it is; empty means that of who asked for the object
	Message string      // the refuser's own words
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s was refused: %s", e.Object, e.Message) }

// Object is an object of Kubernetes, with its kind set.
type Object interface {
	metav1.Object
	runtime.Object
}

// Ref names one attempt of a run by the Job whose end ends it.
type Ref struct {
	Run     string
	Attempt int
	Scope   string // Kubernetes namespace
	Job     string // name
	UID     string // of the Job; empty means any
}

// Snapshot is what can be seen of one attempt of a run at one time.
type Snapshot struct {
	Ref    Ref
	Job    *batchv1.Job   // the one whose end ends the attempt; nil where it is gone
	Others []batchv1.Job  // of its other roles, by name
	Pods   []corev1.Pod   // of any role, by name
	Events []corev1.Event // about the jobs and the pods, oldest first
}

// ReasonStopped is the reason in the status of a pod that failed because the platform,
// which ran it itself, was stopped. No kubelet says it.
const ReasonStopped = "PlatformStopped"

// Condition returns a condition of a Job that is true; a Job that is nil has none.
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
	// Create creates o, which has its kind, name, namespace and labels, and
	// fills in what the cluster gives it, such as its UID. It says ErrExists
	// where one of that name is there, of which it fills in the UID where it is a
	// ConfigMap, and *RefusedError where the cluster will not have it.
	Create(ctx context.Context, o Object) error
}

// Deleter deletes objects.
type Deleter interface {
	// Delete asks that all objects of an attempt end and go, dependents first,
	// with the grace that its pods were promised. It returns when the cluster
	// has taken the order: Observe tells when they are gone. Nothing there is
	// no error. Where it is asked again a while later, it gives up what should
	// have gone and did not, because the machine that runs it is lost.
	Delete(ctx context.Context, r Ref) error
}

// Labeler tells the labels of objects that are not a run's.
type Labeler interface {
	// Labels returns the labels of a Secret or PersistentVolumeClaim, and nothing
	// that it holds. It says ErrNotFound where there is none, and *RefusedError
	// where the platform may not look.
	Labels(ctx context.Context, kind, scope, name string) (map[string]string, error)
}

// Stopper ends what runs, and leaves its objects.
type Stopper interface {
	// Stop asks that every pod of an attempt that has not ended ends, with the
	// grace that it was promised. The Jobs and all that has ended stay to be seen;
	// a pod that Stop ends may go, as on Kubernetes. Its Job then says that it
	// failed, and never makes another pod. It returns when the cluster has taken
	// the order: Observe tells when nothing runs. Nothing there is no error.
	Stop(ctx context.Context, r Ref) error
}

// Ender ends attempts, with their objects or without.
type Ender interface {
	Deleter
	Stopper
}

// Observer sees.
type Observer interface {
	// Observe looks at the attempt as it is now, not at what was heard of it.
	// It says ErrNotFound once neither its job nor any pod of it is there; a
	// Job of another UID than the one asked for is not it.
	Observe(ctx context.Context, r Ref) (Snapshot, error)
	// Watch hands over each attempt that is there, then each whenever something
	// about it changes or it has gone (Job nil, no pods), and each again from
	// time to time. Changes that follow each other closely may be handed over
	// as one. It blocks until ctx is done, and hands over one at a time.
	Watch(ctx context.Context, see func(Snapshot)) error
}
