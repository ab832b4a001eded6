package verdict_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// refused is how a launcher ends that cannot connect to a worker, and when.
func refused(when int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		exits(cluster.ContainerBenchmark, 255, "Error", "ssh: connect to host w-1 port 2222: Connection refused")(p)
		p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = at(when)
	}
}

func TestAFailureIsHeldAgainstTheFirstDeletionOfAnyPod(t *testing.T) {
	t.Parallel()
	const (
		deleted = "failed infra JobDeleted: somebody deleted the worker 1 on n1, and it was not canceled"
		refusal = "failed user NonZeroExit: the launcher on n1 ended with exit code 255: ssh: connect to host w-1 port 2222: Connection refused"
		evicted = "failed infra Evicted: its pod had to leave node n1: EvictionByEvictionAPI: drain"
	)
	launcher := job(role("launcher"), failed(14, "BackoffLimitExceeded"))
	running := job(role("launcher"))
	runsOn := workerPod("0", runs(cluster.ContainerBenchmark, 3))
	for name, tt := range map[string]struct {
		job    *batchv1.Job
		others []batchv1.Job
		pods   []corev1.Pod
		now    int
		want   string
	}{
		"a launcher that cannot connect to a deleted worker has not failed by itself": {
			job: launcher, pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(11)), runsOn, workerPod("1", deleting(14), grace(4), runs(cluster.ContainerBenchmark, 3))),
			want: deleted,
		},
		"nor if it fails within the second of the deletion": {
			job: launcher, pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(10)), runsOn, workerPod("1", deleting(14), grace(4), runs(cluster.ContainerBenchmark, 3))),
			want: deleted,
		},
		"but one that failed before the worker was deleted has": {
			job: launcher, pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(9)), runsOn, workerPod("1", deleting(14), grace(4), runs(cluster.ContainerBenchmark, 3))),
			want: refusal,
		},
		"of a worker that has ended since, its end is the latest time of the deletion": {
			job: launcher, pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(11)), runsOn, workerPod("1", deleting(12), grace(0), ended(corev1.PodSucceeded), exitsAt(10, 0))),
			want: deleted,
		},
		"so it is of one that a signal ended": {
			job: launcher, pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(11)), runsOn, workerPod("1", deleting(12), grace(0), ended(corev1.PodFailed), exitsAt(10, 143))),
			want: deleted,
		},
		"a worker that failed by itself and was deleted after it is the cause": {
			job: launcher, pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(11)), runsOn, workerPod("1", deleting(12), grace(0), ended(corev1.PodFailed), exitsAt(10, 3))),
			want: "failed user NonZeroExit: the worker 1 on n1 ended with exit code 3",
		},
		"a worker's failure follows from the deletion of another worker": {
			job: running, pods: pods(podOfRole("launcher", runs(cluster.ContainerBenchmark, 5)), workerPod("0", ended(corev1.PodFailed), exitsAt(11, 1)), workerPod("1", deleting(40), grace(30), runs(cluster.ContainerBenchmark, 3))),
			want: deleted,
		},
		"a worker that failed before its job deleted the other one is the cause": {
			job: running, others: workers(2, failed(11, "BackoffLimitExceeded")),
			pods: pods(podOfRole("launcher", runs(cluster.ContainerBenchmark, 5)), workerPod("0", ended(corev1.PodFailed), exitsAt(10, 1)), workerPod("1", deleting(41), grace(30), ended(corev1.PodFailed), exitsAt(12, 143))),
			want: "failed user NonZeroExit: the worker 0 on n0 ended with exit code 1",
		},
		"even if all of it happens within a second": {
			job: running, others: workers(2, failed(10, "BackoffLimitExceeded")),
			pods: pods(podOfRole("launcher", runs(cluster.ContainerBenchmark, 5)), workerPod("0", ended(corev1.PodFailed), exitsAt(10, 1)), workerPod("1", deleting(40), grace(30), ended(corev1.PodFailed), exitsAt(10, 143))),
			want: "failed user NonZeroExit: the worker 0 on n0 ended with exit code 1",
		},
		"a server that ended well before somebody deleted its client has ended early": {
			job: job(role("client")), pods: pods(podOfRole("server", ended(corev1.PodSucceeded), exitsAt(9, 0)), podOfRole("client", deleting(42), grace(30), runs(cluster.ContainerBenchmark, 3))),
			want: "failed user EndedEarly: the server on n1 has ended before the benchmark did",
		},
		"steps that do not follow a benchmark that failed by a deletion": {
			job: running, pods: pods(podOfRole("launcher", refused(11), after("check", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}})), runsOn, workerPod("1", deleting(3610), grace(3600), runs(cluster.ContainerBenchmark, 3))),
			now: 60, want: deleted,
		},
		"a launcher that cannot connect to an evicted worker has not failed by itself": {
			job: launcher, pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(11)), runsOn, workerPod("1", disrupted("EvictionByEvictionAPI", "drain"), deleting(39), grace(30), runs(cluster.ContainerBenchmark, 3))),
			want: evicted,
		},
		"nor to a worker whose job was suspended": {
			job: launcher, others: workers(2, suspendedAt(9)), pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(11)), workerPod("1", deleting(39), grace(30), runs(cluster.ContainerBenchmark, 3))),
			want: "failed infra Preempted: its job was suspended from outside the platform",
		},
		"nor if the workers are gone by then": {
			job: launcher, others: workers(2, suspendedAt(9)), pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(11))),
			want: "failed infra Preempted: its job was suspended from outside the platform",
		},
		"but a launcher that failed before the suspension has": {
			job: launcher, others: workers(2, suspendedAt(12)), pods: pods(podOfRole("launcher", ended(corev1.PodFailed), refused(11)), workerPod("1", deleting(42), grace(30), runs(cluster.ContainerBenchmark, 3))),
			want: refusal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: tt.job, Others: tt.others, Pods: tt.pods, Events: events("bai-r1-1-worker", "SuccessfulCreate", "Created pod: worker-1")},
				Now:  at(max(tt.now, 15)).Time, PendingDeadline: 10 * time.Minute, Grace: 3 * time.Second,
			}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
