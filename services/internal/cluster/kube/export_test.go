package kube

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Functions of this package for tests of the rules.
func CreateError(object string, err error) error { return createError(object, err) }

func IsOverdue(p *corev1.Pod, now time.Time, timeout time.Duration) bool {
	return isOverdue(p, now, timeout)
}

func StripUnused(o any) (any, error) { return stripUnused(o) }

func StripUnlabeled(o any) (any, error) { return stripUnlabeled(o) }

func NeedsStop(j *batchv1.Job) bool { return needsStop(j) }

func IsInformative(e *corev1.Event) bool { return isInformative(e) }

func SnapshotOf(run string, ref *cluster.Ref, jobs []*batchv1.Job, pods []*corev1.Pod) (cluster.Snapshot, bool) {
	return snapshotOf(attempt{scope: "s", run: run, number: "1"}, ref, jobs, pods)
}

// EventCache is the book of events.
type EventCache struct{ *eventCache }

func NewEventCache() EventCache { return EventCache{newEventCache(func(*corev1.Event) {})} }

func (b EventCache) EventsFor(uids ...types.UID) []corev1.Event { return b.eventsFor(uids) }

func (b EventCache) Count() int { return b.count }

type PermissionError = deniedError

func JobFromObject(o *unstructured.Unstructured) (*batchv1.Job, error) { return jobFromObject(o) }
