package kube

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// What the rules' tests need of this package.
func Verdict(object string, err error) error { return verdict(object, err) }

func Overdue(p *corev1.Pod, now time.Time, patience time.Duration) bool {
	return overdue(p, now, patience)
}

func ToStop(j *batchv1.Job) bool { return toStop(j) }

func Telling(e *corev1.Event) bool { return telling(e) }

func Compose(run string, known *cluster.Ref, jobs []*batchv1.Job, pods []*corev1.Pod) (cluster.Seen, bool) {
	return compose(attempt{scope: "s", run: run, number: "1"}, known, jobs, pods)
}

// Book is the book of events.
type Book struct{ *book }

func NewBook() Book { return Book{newBook(func(*corev1.Event) {})} }

func (b Book) Of(uids ...types.UID) []corev1.Event { return b.of(uids) }

func (b Book) Count() int { return b.count }
