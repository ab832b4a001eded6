package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/clustertest"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// node returns a node that takes pods.
func node(name string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: "t3.small"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// submitSet submits a set of two runs, both at a time, that keep others off their nodes.
func (w *fixture) submitSet(name string) {
	w.t.Helper()
	text := strings.Replace(descriptor("[sweep]\nrepetitions = 2\nmax_parallel = 2\n[sweep.product]\n\"limits.retries\" = [1]\n"), "[env]", "placement = \"exclusive\"\n[env]", 1)
	resp, err := w.client.SubmitRun(w.t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(text), Name: name})
	if err != nil || resp.GetSetId() == "" {
		w.t.Fatal(resp, err)
	}
}

// playMinutes runs the benchmark of each pod with a node, each for so long, until so many
// runs have ended.
func (w *fixture) playMinutes(each time.Duration, runs int) {
	w.t.Helper()
	w.waitUntil(fmt.Sprintf("%d runs have ended", runs), func() bool {
		ended := 0
		for _, r := range w.runs() {
			switch {
			case r.Phase == event.PhaseFinished:
				ended++
			case r.Phase == event.PhasePending && w.cluster.attempts(r.ID) == r.Attempt:
				w.cluster.Act(r.ID, func(j *batchv1.Job, p *corev1.Pod) {
					if p.Spec.NodeName != "" && len(p.Status.ContainerStatuses) == 0 {
						clustertest.Start(j, p)
					}
				})
			case r.Phase == event.PhaseRunning && time.Since(*r.Started) >= each:
				w.runCollector(r.ID, "loss=1\n", "")
				w.act(r.ID, clustertest.Exit(0))
				w.awaitPhase(r.ID, event.PhaseFinished)
			}
		}
		time.Sleep(time.Second)
		return ended == runs
	})
}

func TestTwoSetsThatWantTheSameNodeBothFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, newTopicRecorder())
		w.slots, w.cluster.Nodes = 4, []corev1.Node{node("n1")}
		defer w.start(w.services())()
		w.submitSet("first")
		w.submitSet("second")
		w.playMinutes(6*time.Minute, 4)
		w.awaitQuiescence()
		w.wantOneEndEach()
		longest := time.Duration(0)
		for _, r := range w.runs() {
			if r.Outcome != event.Succeeded {
				t.Errorf("run %s ended %s %s: %s", r.ID, r.Outcome, r.Reason, r.Message)
			}
			longest = max(longest, w.waitedForOthers(r.ID))
		}
		if longest < 15*time.Minute {
			t.Errorf("the last run waited %s for the others' node in the cluster's sight", longest)
		}
		if left := w.cluster.Objects(); len(left) != 0 {
			t.Errorf("left in the cluster: %v", left)
		}
	})
}

// waitedForOthers returns how long a run was queued although it had been launched.
func (w *fixture) waitedForOthers(run string) (all time.Duration) {
	w.t.Helper()
	var since time.Time
	for _, c := range w.changes(run) {
		if !since.IsZero() {
			all, since = all+c.Time.Sub(since), time.Time{}
		}
		if c.Phase == event.PhaseQueued && c.Reason == event.NodesInUse {
			since = c.Time
		}
	}
	return all
}

func TestAWaitForOtherRunsShowsInTheHistoryOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, newTopicRecorder())
		w.slots, w.cluster.Nodes = 2, []corev1.Node{node("n1")}
		defer w.start(w.services())()
		first := w.submit("")
		w.startBenchmark(first, 1)
		w.submit("")
		w.playMinutes(12*time.Minute, 2)
		w.awaitQuiescence()
		var got []string
		for _, r := range w.runs() {
			if r.ID == first {
				continue
			}
			for _, c := range w.changes(r.ID) {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s", c.Phase, c.Reason)))
			}
		}
		history := strings.Join(got, ", ")
		if !strings.Contains(history, "pending, queued NodesInUse, pending, ") || !strings.HasSuffix(history, "running, finished") {
			t.Errorf("its history is %s", history)
		}
	})
}
