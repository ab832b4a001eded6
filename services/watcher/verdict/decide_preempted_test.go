package verdict_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// ofJob makes a pod one of the main job.
func ofJob(p *corev1.Pod) { p.Labels = map[string]string{batchv1.JobNameLabel: "bai-r1-1"} }

// suspendedAt suspends a job in a queue of Kueue.
func suspendedAt(when int) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		yes := true
		j.Spec.Suspend, j.Labels = &yes, map[string]string{cluster.LabelKueueQueue: "team-a"}
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, LastTransitionTime: at(when)})
	}
}

func TestAJobThatIsSuspendedAgainHasLostItsPlaceIfItsBenchmarkHadBegun(t *testing.T) {
	t.Parallel()
	byHand := func(j *batchv1.Job) { suspendedAt(9)(j); j.Labels = nil }
	begun := newPod(ofJob, scheduled(), runs(cluster.ContainerBenchmark, 3), deleting(12))
	unbegun := newPod(ofJob, scheduled(), waiting(cluster.ContainerBenchmark, "PodInitializing", ""), deleting(12))
	created := events("bai-r1-1", "SuccessfulCreate", "Created pod: pod-0")
	const lost = "failed infra Preempted: its job had to leave the cluster's queue team-a to others"
	for name, tt := range map[string]struct {
		job      *batchv1.Job
		pods     []corev1.Pod
		lastSeen []corev1.Pod
		events   []corev1.Event
		want     string
	}{
		"its pod is being deleted":                  {job(suspendedAt(9)), pods(begun), nil, created, lost},
		"its pod is still to be deleted":            {job(suspendedAt(9)), pods(newPod(ofJob, scheduled(), runs(cluster.ContainerBenchmark, 3))), nil, created, lost},
		"its pod is gone":                           {job(suspendedAt(9)), nil, pods(begun), created, lost},
		"its pod is gone, and was never seen":       {job(suspendedAt(9)), nil, nil, created, lost},
		"Kueue says why":                            {job(suspendedAt(9)), pods(begun), nil, append(created, events("bai-r1-1", "Stopped", "Preempted to accommodate a workload")...), lost + ": Preempted to accommodate a workload"},
		"by somebody's hand":                        {job(byHand), pods(begun), nil, created, "failed infra Preempted: its job was suspended from outside the platform"},
		"its benchmark had not begun":               {job(suspendedAt(9)), pods(unbegun), nil, created, "queued QueueSuspended: waiting in the cluster's queue team-a"},
		"it had not begun, and its pod is gone":     {job(suspendedAt(9)), nil, pods(unbegun), created, "queued QueueSuspended: waiting in the cluster's queue team-a"},
		"it waits for the first time":               {job(suspendedAt(0)), nil, nil, nil, "queued QueueSuspended: waiting in the cluster's queue team-a"},
		"its benchmark ended by itself just before": {job(suspendedAt(12), complete(13)), pods(newPod(ofJob, scheduled(), exits(cluster.ContainerBenchmark, 0, "Completed", ""))), nil, created, "succeeded: the benchmark finished (exit code 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: tt.job, Pods: tt.pods, Events: tt.events}, LastSeen: cluster.Snapshot{Pods: tt.lastSeen},
				Now: at(14).Time, PendingDeadline: 10 * time.Minute, Grace: 3 * time.Second,
			}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestALostPlaceInAQueueIsRetried(t *testing.T) {
	t.Parallel()
	s := verdict.Observation{
		Seen: cluster.Snapshot{Job: job(suspendedAt(9)), Pods: pods(newPod(ofJob, scheduled(), runs(cluster.ContainerBenchmark, 3), deleting(12)))},
		Now:  at(14).Time, PendingDeadline: 10 * time.Minute, Grace: 3 * time.Second,
	}
	for retries, want := range map[int]string{
		0: "bai.finished attempt 1: failed infra Preempted: its job had to leave the cluster's queue team-a to others",
		2: "bai.retried attempt 2: infra Preempted: its job had to leave the cluster's queue team-a to others",
	} {
		l := event.Launched{Header: event.Header{Run: "r1", Attempt: 1}, Retries: retries}
		if diff := cmp.Diff([]string{want}, eventLines(verdict.EventsFor(l, verdict.Decide(s), s))); diff != "" {
			t.Errorf("with %d retries (-want +got):\n%s", retries, diff)
		}
	}
}
