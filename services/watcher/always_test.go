package watcher_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/always"
	"github.com/benchmark-ai/bai/services/watcher"
)

// withAlways gives the pods of a snapshot step drop at the end, in a state.
func withAlways(s cluster.Snapshot, state corev1.ContainerState) cluster.Snapshot {
	return withStepAtEnd(s, "drop", state)
}

func withStepAtEnd(s cluster.Snapshot, name string, state corev1.ContainerState) cluster.Snapshot {
	name, restarts := cluster.ContainerStep+name, corev1.ContainerRestartPolicyAlways
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, RestartPolicy: &restarts})
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
	}
	return s
}

func stepGoing() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(2)}}
}

func stepEnded(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at(2), FinishedAt: at(12)}}
}

// lostWhileRunning is an attempt whose node is lost while its benchmark runs.
func lostWhileRunning() cluster.Snapshot {
	return cluster.Snapshot{Job: job(failed(11, "")), Pods: pods(newPod(ended(corev1.PodFailed), runs(cluster.ContainerBenchmark, 3), disrupted("DeletionByTaintManager", "gone")))}
}

// stepsScenario is a sequence of states of an attempt with a step at the end.
type stepsScenario struct {
	scenario

	results  always.Results // what the executor makes of it, if it is asked
	notAsked bool           // it never is
}

// The executor is asked to run what is missing, and the end waits for it, however often the watcher dies.
func TestAnEndWaitsForStepsThatAlwaysRunWhereverTheWatcherDies(t *testing.T) {
	for name, s := range map[string]stepsScenario{
		"one that has run in its pod": {scenario: scenario{
			states: []cluster.Snapshot{preparing(), withAlways(running(), stepGoing()), withAlways(done(), stepEnded(0))},
			want:   "bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)",
		}, notAsked: true},
		"one whose pod lost its node": {scenario: scenario{
			states:  []cluster.Snapshot{preparing(), withAlways(running(), stepGoing()), withAlways(lostWhileRunning(), stepGoing())},
			retries: 1,
			want:    "bai.retried attempt 2: infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: gone",
		}},
		"one whose pod is gone after a cancel, which fails": {scenario: scenario{
			states: []cluster.Snapshot{preparing(), withAlways(running(), stepGoing()), {}}, canceled: true,
			want: "bai.finished attempt 1: canceled CanceledByUser: canceled; its objects are deleted; at the end step drop ended with exit code 3",
		}, results: always.Results{Steps: []always.StepResult{{Name: "drop", Problem: "ended with exit code 3"}}}},
		"one that nothing can run": {scenario: scenario{
			states: []cluster.Snapshot{preparing(), withAlways(running(), stepGoing()), {}}, canceled: true,
			want: "bai.finished attempt 1: canceled CanceledByUser: canceled; its objects are deleted; step drop, which always runs, did not run: no node",
		}, results: always.Results{Steps: []always.StepResult{{Name: "drop", NotRun: "no node"}}}},
		"one of an attempt that has not begun": {scenario: scenario{
			states: []cluster.Snapshot{preparing(), withAlways(preparing(), stepGoing()), {}}, canceled: true,
			want: "bai.finished attempt 1: canceled CanceledByUser: canceled; its objects are deleted",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for p := range crashtest.Points() {
				synctest.Test(t, func(t *testing.T) { s.play(t, p) })
			}
		})
	}
}

// play shows the scenario to a watcher in a process that may be killed, then continues with another watcher.
func (s stepsScenario) play(t *testing.T, crashing *crashtest.Process) {
	t.Helper()
	w := newFixture(t)
	docs := always.Documents{Store: w.store}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // the executor
		for control.Sleep(ctx, 2*time.Second) {
			p, found, err := docs.Pending(ctx, "r1", 1)
			if err == nil && found {
				_ = docs.PutResults(ctx, p, s.results)
			}
		}
	}()
	p := w.startIn(crashing, watcher.Settings{})
	l := launchedRun("r1", s.retries)
	l.Always = []string{"drop"}
	s.showTo(w, p, l)
	p.stop()
	if len(w.endLines()) > 0 { // the executor has received the end and deleted the objects
		w.cluster.set(refOf(l), cluster.Snapshot{})
	}
	p = w.start(watcher.Settings{})
	p.deliver(l)
	time.Sleep(time.Minute)
	p.stop()
	if diff := cmp.Diff([]string{s.want}, w.endLines()); diff != "" {
		t.Errorf("%s: ends (-want +got):\n%s", crashing, diff)
	}
	if diff := cmp.Diff([]string{}, w.liveKeys()); diff != "" {
		t.Errorf("%s: watched (-want +got):\n%s", crashing, diff)
	}
	s.checkStatuses(t, w)
	if _, asked, err := docs.Pending(t.Context(), "r1", 1); err != nil || asked && s.notAsked {
		t.Errorf("%s: the executor was asked to run a step that has run; %v", crashing, err)
	}
}

// checkStatuses checks that a step which did not run is in a status.
func (s stepsScenario) checkStatuses(t *testing.T, w *fixture) {
	t.Helper()
	var reasons []event.Reason
	for _, ev := range w.published {
		if status, ok := ev.(event.Status); ok && status.Reason != "" {
			reasons = append(reasons, status.Reason)
		}
	}
	var want []event.Reason
	if s.results.NotRun() != "" {
		want = []event.Reason{event.AlwaysNotRun}
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("reasons of statuses (-want +got):\n%s", diff)
	}
}

// The executor looks at pods now and then, and they are gone soon after their end. It would run the step once more.
func TestAStepThatRanInAPodWhichIsGoneIsKnownToHaveRun(t *testing.T) {
	for name, tt := range map[string]struct {
		code int32
		want string
	}{
		"well":   {0, "bai.retried attempt 2: infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: gone"},
		"not so": {3, "bai.retried attempt 2: infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: gone; at the end step drop ended with exit code 3"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				p := w.start(watcher.Settings{})
				l := launchedRun("r1", 1)
				l.Always = []string{"drop"}
				w.cluster.set(refOf(l), withAlways(running(), stepGoing()))
				p.deliver(l)
				time.Sleep(time.Second)
				w.cluster.set(refOf(l), withAlways(lostWhileRunning(), stepGoing()))
				time.Sleep(10 * time.Second)
				if ends := w.endLines(); len(ends) > 0 {
					t.Errorf("the step still runs, and the attempt has ended: %q", ends)
				}
				w.cluster.set(refOf(l), withAlways(lostWhileRunning(), stepEnded(tt.code)))
				synctest.Wait()
				w.cluster.set(refOf(l), cluster.Snapshot{})
				time.Sleep(time.Minute)
				p.stop()
				if diff := cmp.Diff([]string{tt.want}, w.endLines()); diff != "" {
					t.Errorf("ends (-want +got):\n%s", diff)
				}
				if _, known, err := (always.Documents{Store: w.store}).Results(t.Context(), "r1", 1); err != nil || !known {
					t.Errorf("the executor is not told: %t, %v", known, err)
				}
			})
		})
	}
}

// The pods are gone by the time the executor looks, and a step does not run if one that it needs has failed.
func TestTheExecutorLearnsHowTheStepsEndedForWhichTheEndDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		l := launchedRun("r1", 1)
		l.Always = []string{"save", "drop"}
		w.cluster.set(refOf(l), withStepAtEnd(withAlways(running(), stepGoing()), "save", stepGoing()))
		p.deliver(l)
		time.Sleep(time.Second)
		w.cluster.set(refOf(l), withStepAtEnd(withAlways(lostWhileRunning(), stepGoing()), "save", stepEnded(3)))
		time.Sleep(10 * time.Second)
		p.stop()
		end, found, err := (always.Documents{Store: w.store}).Pending(t.Context(), "r1", 1)
		if err != nil || !found {
			t.Fatalf("no end waits: %v", err)
		}
		if diff := cmp.Diff([]always.StepResult{{Name: "save", Problem: "ended with exit code 3"}}, end.Ended); diff != "" {
			t.Errorf("ended (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"drop"}, end.Steps); diff != "" {
			t.Errorf("the end waits for (-want +got):\n%s", diff)
		}
	})
}
