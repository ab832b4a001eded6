package cluster_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func TestAPodThatDoesNotSayThatItsBenchmarkEndedIsNotWaitedForAsLongAsItsCollector(t *testing.T) {
	t.Parallel()
	requestedAt := time.Unix(10_000, 0)
	hour := int64(3600)
	deletedAt := metav1.NewTime(requestedAt.Add(time.Hour))
	ended := []corev1.ContainerStatus{{Name: cluster.ContainerBenchmark, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	for name, tt := range map[string]struct {
		annotation string
		status     corev1.PodStatus
		alive      bool
		want       time.Time
	}{
		"one that is not deleted":                               {"300", corev1.PodStatus{}, true, time.Time{}},
		"one whose benchmark may run":                           {"300", corev1.PodStatus{}, false, requestedAt.Add(5 * time.Minute)},
		"one whose benchmark ended, while its data are shipped": {"300", corev1.PodStatus{ContainerStatuses: ended}, false, requestedAt.Add(time.Hour)},
		"one that an older executor made":                       {"", corev1.PodStatus{}, false, requestedAt.Add(time.Hour)},
		"one with more than the pod has":                        {"7200", corev1.PodStatus{}, false, requestedAt.Add(time.Hour)},
		"one with nonsense":                                     {"-5", corev1.PodStatus{}, false, requestedAt.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := corev1.Pod{Status: tt.status}
			if tt.annotation != "" {
				p.Annotations = map[string]string{cluster.AnnotationGrace: tt.annotation}
			}
			if !tt.alive {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deletedAt, &hour
			}
			if got := cluster.DeletionDeadline(p); !got.Equal(tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
