package verdict_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// jobsOf returns the job of another role.
func jobsOf(name, end string, with ...func(*batchv1.Job)) []batchv1.Job {
	j := job(append(with, role(name))...)
	j.Name, j.UID = "bai-r1-1-"+name, "other-uid"
	if end != "" {
		j.Labels[cluster.LabelEnd] = end
	}
	return []batchv1.Job{*j}
}

func TestTheLossOfTheJobOfOneRoleFailsTheRunOfSeveral(t *testing.T) {
	load, awaited, server := role("load"), jobsOf("first", cluster.EndAwaited), jobsOf("server", "")
	serves, main := podOfRole("server", runs(cluster.ContainerBenchmark, 2)), podOfRole("load", runs(cluster.ContainerBenchmark, 5))
	for name, tt := range map[string]struct {
		seen, before cluster.Snapshot
		missing, now int // missing is -1 if all jobs are there
		canceled     bool
		want         string
		again        int // seconds; zero for never
	}{
		"a run is no success if a job whose end it waits for is gone": {
			before: cluster.Snapshot{Job: job(load), Others: awaited}, missing: 9, now: 12,
			seen: cluster.Snapshot{Job: job(load, complete(11)), Pods: pods(podOfRole("load", exitsAt(11, 0)))},
			want: "failed infra JobDisappeared: the job of the first was deleted from outside the platform",
		},
		"no end counts until the loss is certain": {
			before: cluster.Snapshot{Job: job(load), Others: awaited}, missing: 9, now: 11,
			seen: cluster.Snapshot{Job: job(load, complete(11)), Pods: pods(podOfRole("load", exitsAt(11, 0)))},
			want: "", again: 12,
		},
		"the loss of the main job ends what is left": {
			before: cluster.Snapshot{Job: job(load), Others: server}, missing: 9, now: 12,
			seen: cluster.Snapshot{Others: server, Pods: pods(serves)},
			want: "failed infra JobDisappeared: the job of the load was deleted from outside the platform",
		},
		"the main job may have been gone before the watch began": {
			missing: 9, now: 12, seen: cluster.Snapshot{Others: server, Pods: pods(serves)},
			want: "failed infra JobDisappeared: its job was deleted from outside the platform",
		},
		"a client that fails without its server is not the user's fault": {
			before: cluster.Snapshot{Job: job(load), Others: server}, missing: 9, now: 12,
			seen: cluster.Snapshot{Job: job(load, failed(11, "")), Pods: pods(podOfRole("load", exitsAt(10, 2)))},
			want: "failed infra JobDisappeared: the job of the server was deleted from outside the platform",
		},
		"a job that is gone before its pods was deleted": {
			before: cluster.Snapshot{Job: job(load), Others: server}, missing: 9, now: 12,
			seen: cluster.Snapshot{Job: job(load), Pods: pods(serves, main)},
			want: "failed infra JobDeleted: the job of the server was deleted from outside the platform",
		},
		"a job whose deletion was seen was deleted": {
			before: cluster.Snapshot{Job: job(load), Others: jobsOf("server", "", jobDeleting(7))}, missing: 9, now: 12,
			seen: cluster.Snapshot{Job: job(load), Pods: pods(main)},
			want: "failed infra JobDeleted: the job of the server was deleted from outside the platform",
		},
		"a complete job may go": {
			before: cluster.Snapshot{Job: job(load), Others: jobsOf("first", cluster.EndAwaited, complete(8))}, missing: -1, now: 12,
			seen: cluster.Snapshot{Job: job(load, complete(11)), Pods: pods(podOfRole("load", exitsAt(11, 0)))},
			want: "succeeded: the benchmark finished (exit code 0)",
		},
		"a job of another object's controller may go": {
			before: cluster.Snapshot{Job: job(load), Others: jobsOf("child", "", func(j *batchv1.Job) {
				yes := true
				j.OwnerReferences = []metav1.OwnerReference{{Kind: "JobSet", Controller: &yes}}
			})}, missing: -1, now: 12,
			seen: cluster.Snapshot{Job: job(load), Pods: pods(main)},
			want: "running: running the benchmark",
		},
		"the jobs of a canceled run go one after the other": {
			before: cluster.Snapshot{Job: job(load), Others: server}, missing: 9, now: 12, canceled: true,
			seen: cluster.Snapshot{Job: job(load, jobDeleting(8)), Pods: pods(podOfRole("load", deleting(8), exitsAt(10, 143)))},
			want: "canceling: waiting until its objects are deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{Seen: tt.seen, LastSeen: tt.before, Canceled: tt.canceled, Now: at(tt.now).Time, Grace: 3 * time.Second}
			if verdict.MissesJob(tt.before, tt.seen) {
				s.MissingSince = at(tt.missing).Time
			}
			v := verdict.Decide(s)
			if diff := cmp.Diff(tt.want, verdictLine(v)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.again > 0 && !v.RecheckAt.Equal(at(tt.again).Time) {
				t.Errorf("decided again at %s, want second %d", v.RecheckAt, tt.again)
			}
			if (tt.missing >= 0) == s.MissingSince.IsZero() {
				t.Errorf("the attempt misses a job since %s", s.MissingSince)
			}
		})
	}
}

func TestAMissingJobIsMissedUntilItIsBack(t *testing.T) {
	first := cluster.Snapshot{Job: job(role("load")), Others: jobsOf("server", "")}
	without := cluster.Snapshot{Job: first.Job, Pods: []corev1.Pod{podOfRole("load")}}
	last := verdict.MergeLastSeen(verdict.MergeLastSeen(first, without), without)
	if !verdict.MissesJob(last, without) || verdict.MissesJob(last, first) {
		t.Errorf("without the job: %t, with it: %t", verdict.MissesJob(last, without), verdict.MissesJob(last, first))
	}
	if last = verdict.MergeLastSeen(last, cluster.Snapshot{Others: first.Others}); last.Job == nil {
		t.Error("the main job is forgotten")
	}
}
