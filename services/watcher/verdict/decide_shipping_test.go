package verdict_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// collecting returns a pod whose benchmark has ended at second 10, and whose collector runs.
func collecting(deleted bool) corev1.Pod {
	p := newPod(scheduled(), exits(cluster.ContainerBenchmark, 0, "Completed", ""))
	grace := int64(3600)
	p.Spec.TerminationGracePeriodSeconds = &grace
	p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = at(10)
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: cluster.ContainerCollect, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(1)}},
	}}
	if deleted {
		until := at(5 + 3600)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &until, &grace
	}
	return p
}

func TestARunSaysWhyItsPodIsKept(t *testing.T) {
	t.Parallel()
	until := func(second int) string { return at(second).UTC().Format("2006-01-02 15:04:05 MST") }
	for name, tt := range map[string]struct {
		deleted bool
		now     int
		want    string
	}{
		"nothing as long as its collector may be prompt": {false, 15, "the benchmark ended (exit code 0); collecting the rest of its output"},
		"then that output is owed, and until when": {
			false, 1210, "the benchmark ended (exit code 0); its pod is kept until " + until(3610) + " at most, because output is owed that its collector could not ship yet",
		},
		"also where it is canceled": {
			true, 1210, "waiting until its objects are deleted; its pod is kept until " + until(3605) + " at most, because output is owed that its collector could not ship yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := verdict.Observation{Seen: cluster.Snapshot{Job: job(), Pods: pods(collecting(tt.deleted))}, Canceled: tt.deleted, Now: at(tt.now).Time, Grace: 3 * time.Second, PendingDeadline: 10 * time.Minute}
			if got := verdict.Decide(s); got.Message != tt.want || got.Phase == event.PhaseFinished {
				t.Errorf("%s: %q, want %q", got.Phase, got.Message, tt.want)
			}
		})
	}
}

func TestOutputThatWasNotShippedIsSaidWithTheEnd(t *testing.T) {
	t.Parallel()
	const words = "15 bytes of output could not be shipped within 59m45s"
	for name, tt := range map[string]struct {
		code int32
		want string
	}{
		"nothing is said of what was shipped":    {0, "the benchmark finished (exit code 0)"},
		"what was not, by its collector's words": {1, "the benchmark finished (exit code 0); output of the benchmark is lost: " + words},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := collecting(false)
			p.Status.Phase = corev1.PodSucceeded
			p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: tt.code, Message: words}}
			j := job(complete(3600))
			if _, ok := cluster.Condition(j, batchv1.JobComplete); !ok {
				t.Fatal("the job is not complete")
			}
			got := verdict.Decide(verdict.Observation{Seen: cluster.Snapshot{Job: j, Pods: pods(p)}, Now: at(3700).Time, Grace: 3 * time.Second})
			if got.Message != tt.want || got.Outcome != event.Succeeded {
				t.Errorf("%s: %q, want %q", got.Outcome, got.Message, tt.want)
			}
		})
	}
}
