package verdict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	plan "github.com/benchmark-ai/bai/services/plan/always"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

func TestWhichStepsAreMissingAtTheEnd(t *testing.T) {
	going := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(5)}}
	both := []string{"first", "second"}
	active := func(j *batchv1.Job) { j.Status.Active = 1 }
	for name, tt := range map[string]struct {
		uid  string
		seen cluster.Snapshot
		last cluster.Snapshot
		want []string
	}{
		"none, if all have run": {seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(exits(cluster.ContainerBenchmark, 0, "", ""), always("second", terminated(13, 0)), always("first", terminated(12, 1))))}},
		"the one that runs": {
			seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(exits(cluster.ContainerBenchmark, 0, "", ""), always("second", going), always("first", terminated(12, 1))))},
			want: []string{"second"},
		},
		"all, as they were seen last in a pod that is gone": {
			last: cluster.Snapshot{Job: job(), Pods: pods(newPod(runs(cluster.ContainerBenchmark, 5), always("second", going), always("first", going)))}, want: both,
		},
		"none, if no command of the attempt has started": {
			last: cluster.Snapshot{Job: job(), Pods: pods(newPod(always("second", going), always("first", going)))}, uid: "job-uid",
		},
		"none, if its job has had no pod":               {last: cluster.Snapshot{Job: job()}, uid: "job-uid"},
		"all, if its job has had a pod that nobody saw": {last: cluster.Snapshot{Job: job(active)}, uid: "job-uid", want: both},
		"all, if it is gone before anybody saw it":      {uid: "job-uid", want: both},
		"none, if it was never created as far as known": {},
	} {
		t.Run(name, func(t *testing.T) {
			l := event.Launched{UID: tt.uid, Always: both}
			if diff := cmp.Diff(tt.want, verdict.MissingSteps(l, verdict.Observation{Seen: tt.seen, LastSeen: tt.last})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			l.Always = nil
			if got := verdict.MissingSteps(l, verdict.Observation{Seen: tt.seen, LastSeen: tt.last}); got != nil {
				t.Errorf("an attempt without such steps lacks %q", got)
			}
		})
	}
}

// A step that is missing does not run if one that it needs has failed, and the pods are gone by the time it could.
func TestAnEndThatWaitsForStepsHasWhatBecameOfTheOthers(t *testing.T) {
	going := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(5)}}
	p := newPod(exits(cluster.ContainerBenchmark, 0, "", ""), always("third", terminated(13, 0)), always("second", going), always("first", terminated(12, 1)))
	l := event.Launched{Always: []string{"first", "second", "third"}}
	want := []plan.StepResult{{Name: "first", Problem: "ended with exit code 1"}, {Name: "third"}}
	if diff := cmp.Diff(want, verdict.EndedSteps(l, verdict.Observation{LastSeen: cluster.Snapshot{Job: job(), Pods: pods(p)}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
