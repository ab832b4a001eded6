package watcher_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher"
)

// exclusive returns the state of the attempt of a run whose pod got no node, or got one and was made then.
func exclusive(l event.Launched, node string) cluster.Snapshot {
	j := job()
	j.Name, j.Labels = l.Job, map[string]string{cluster.LabelRun: l.Run}
	j.CreationTimestamp.Time = time.Now()
	p := homeless(l.Job, "1")
	if node != "" {
		p = podOf(l.Run, node)
	}
	p.Labels = map[string]string{cluster.LabelRun: l.Run}
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime.Time = time.Now()
	}
	return cluster.Snapshot{Job: j, Pods: pods(p)}
}

// launch has an attempt of a run on a node, or waiting for one.
func (w *fixture) launch(p *process, run, node string) event.Launched {
	l := launchedRun(run, 0)
	w.cluster.set(refOf(l), exclusive(l, node))
	p.deliver(l)
	return l
}

// leave has the attempt of a run end and go.
func (w *fixture) leave(l event.Launched) {
	s := done()
	s.Job.Name = l.Job
	w.cluster.set(refOf(l), s)
	time.Sleep(time.Second)
	w.cluster.set(refOf(l), cluster.Snapshot{})
}

// linesOf returns the published lines, each only once in a row, of the run that waits.
func waitLines(w *fixture) []string {
	var lines []string
	for _, l := range w.publishedLines() {
		if strings.Contains(l, "queued") || strings.Contains(l, "Unschedulable") {
			lines = append(lines, l)
		}
	}
	return lines
}

func TestARunThatWaitsForOthersLongerThanItsPendingDeadlineIsLaunchedAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.nodes = []corev1.Node{readyNode("n1", "small", "4")}
		p := w.start(watcher.Settings{})
		first := w.launch(p, "r2", "n1")
		second := w.launch(p, "r1", "")
		time.Sleep(25 * time.Minute)
		w.leave(first)
		time.Sleep(9 * time.Minute) // the scheduler takes its time
		w.cluster.set(refOf(second), exclusive(second, "n1"))
		time.Sleep(time.Minute)
		w.leave(second)
		time.Sleep(time.Minute)
		p.stop()
		want := []string{
			"bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)",
			"bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)",
		}
		if diff := cmp.Diff(want, w.endLines()); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		if got := waitLines(w); len(got) == 0 || got[0] != "bai.status attempt 1: queued NodesInUse: waiting until 1 other run on n1 ends" {
			t.Errorf("it waited so: %q", got)
		}
	})
}

func TestARunThatFindsNoNodeFailsOnceNothingOfOursHasHinderedItForThePendingDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.nodes = []corev1.Node{readyNode("n1", "small", "4")}
		p := w.start(watcher.Settings{})
		w.launch(p, "r1", "")
		for range 3 { // hindered for half of the time
			time.Sleep(3 * time.Minute)
			other := w.launch(p, "r2", "n1")
			time.Sleep(3 * time.Minute)
			w.cluster.set(refOf(other), cluster.Snapshot{})
		}
		time.Sleep(50 * time.Second)
		if got := w.endLines(); len(got) > 1 { // that of r2, whose job is gone
			t.Errorf("after 9:50 minutes: %q", got)
		}
		time.Sleep(40 * time.Second)
		p.stop()
		got := strings.Join(w.endLines(), "\n")
		if !strings.Contains(got, "failed infra Unschedulable: no node can take its pod") {
			t.Errorf("after 10:30 minutes: %q", got)
		}
	})
}

// TestTheWaitForOthersOutlivesTheWatcher kills the process at each of its effects, before or right after it.
func TestTheWaitForOthersOutlivesTheWatcher(t *testing.T) {
	for crashing := range crashtest.Points() {
		synctest.Test(t, func(t *testing.T) {
			w := newFixture(t)
			w.cluster.nodes = []corev1.Node{readyNode("n1", "small", "4")}
			p := w.startIn(crashing, watcher.Settings{})
			other := launchedRun("r2", 0) // of another platform's, whose end nobody tells
			w.cluster.set(refOf(other), exclusive(other, "n1"))
			second := launchedRun("r1", 0)
			w.cluster.set(refOf(second), exclusive(second, ""))
			p.deliver(second)
			time.Sleep(8 * time.Minute)
			p.stop()
			p = w.start(watcher.Settings{})
			p.deliver(second)
			time.Sleep(8 * time.Minute)
			w.cluster.set(refOf(other), cluster.Snapshot{})
			time.Sleep(9 * time.Minute)
			if got := w.endLines(); len(got) > 0 {
				t.Errorf("%s: 9 minutes after the other run: %q", crashing, got)
			}
			time.Sleep(2 * time.Minute)
			p.stop()
			if got := w.endLines(); len(got) != 1 || !strings.Contains(got[0], "failed infra Unschedulable") {
				t.Errorf("%s: 11 minutes after the other run: %q", crashing, got)
			}
		})
	}
}
