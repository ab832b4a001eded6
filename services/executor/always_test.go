package executor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/always"
)

const alwaysJob = "bai-r1-1-always"

// runWithAlways returns run r1 with a step that always runs.
func runWithAlways() event.Fetched {
	f := fetched("r1")
	f.Descriptor += "[[steps]]\nname = \"drop\"\nwhen = \"always\"\ncommand = \"drop-tables\"\n"
	return f
}

// podWithStep returns a pod whose step at the end ended with a code.
func podWithStep(code int32) corev1.Pod {
	at := metav1.NewTime(time.Now())
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "own-pod"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: cluster.ContainerCollect, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
		{Name: cluster.ContainerStep + "drop", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at, FinishedAt: at, Message: "sorry\n"}}},
	}
	return p
}

// endsWithStep has the Job for steps at the end complete as soon as it is created, and its step end with a code.
func (w *fixture) endsWithStep(code int32) {
	w.cluster.refuse = func(o cluster.Object) error {
		if j, ok := o.(*batchv1.Job); ok && j.Name == alwaysJob {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			w.cluster.podsOf = map[string][]corev1.Pod{alwaysJob: {podWithStep(code)}}
		}
		return nil
	}
}

// loseAttempt deletes the objects of attempt 1 of run r1 and stores that its end waits for a step.
func (w *fixture) loseAttempt(t *testing.T) {
	t.Helper()
	if err := w.cluster.Delete(t.Context(), cluster.Ref{Run: "r1", Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	w.finished["bai-r1-1"] = true
	end := event.Finished{Header: header("r1").Cause("finished", ""), Outcome: event.Canceled, Reason: event.CanceledByUser, Message: "canceled"}
	p := always.PendingEnd{Run: "r1", Attempt: 1, Steps: []string{"drop"}, Since: time.Now(), Finished: &end}
	if _, err := (always.Documents{Store: w.store}).PutIfAbsent(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func (w *fixture) results(t *testing.T) always.Results {
	t.Helper()
	r, _, err := (always.Documents{Store: w.store}).Results(t.Context(), "r1", 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The run has a cancel mark. Its objects are gone when the process that dies begins.
func TestAStepThatAlwaysRunsRunsOnceInAPodOfItsOwnWhereverTheExecutorDies(t *testing.T) {
	for _, engine := range []string{plan.EngineLocal, plan.EngineKubernetes} {
		t.Run(engine, func(t *testing.T) {
			for p := range crashtest.Points() {
				synctest.Test(t, func(t *testing.T) { playSteps(t, engine, p) })
			}
		})
	}
}

func playSteps(t *testing.T, engine string, p *crashtest.Process) {
	t.Helper()
	w, settings := newFixture(t), executor.Settings{Slots: 1, Engine: engine}
	w.runDuration = time.Hour
	w.endsWithStep(3)
	stop := w.start(settings)
	w.publish(runWithAlways())
	time.Sleep(time.Second)
	stop()
	w.loseAttempt(t)
	w.cancel("r1")
	stop = w.startIn(p, settings)
	time.Sleep(10 * time.Second)
	stop()
	stop = w.start(settings)
	time.Sleep(10 * time.Second)
	want := always.Results{Collectors: []string{"own-pod"}, Steps: []always.StepResult{{Name: "drop", Problem: "ended with exit code 3: sorry"}}}
	if diff := cmp.Diff(want, w.results(t)); diff != "" {
		t.Errorf("%s: results (-want +got):\n%s", p, diff)
	}
	end := event.Finished{Header: header("r1").Cause("finished", ""), Outcome: event.Canceled}
	w.publish(end)
	time.Sleep(10 * time.Second)
	stop()
	w.assertClean(t)
	w.assertCreatedOnce(t)
	if n := w.cluster.createCount["Job "+alwaysJob]; n != 1 {
		t.Errorf("%s: the Job for the step was created %d times", p, n)
	}
	for _, key := range w.docKeys(store.KindPendingEnd) {
		if strings.HasPrefix(key, "pending/") {
			t.Errorf("%s: %s is left", p, key)
		}
	}
}

func TestAStepThatCannotBeRunIsAnsweredFor(t *testing.T) {
	for name, tt := range map[string]struct {
		setup func(w *fixture)
		want  string
	}{
		"the cluster refuses its pod": {
			func(w *fixture) {
				w.cluster.refuse = func(o cluster.Object) error {
					if o.GetName() == alwaysJob {
						return &cluster.RefusedError{Object: "job " + alwaysJob, Message: "exceeded quota"}
					}
					return nil
				}
			},
			"job bai-r1-1-always was refused: exceeded quota",
		},
		"its pod does not start in time": {func(*fixture) {}, "the pod that was made for the steps could not be started in 10m0s"},
		"its pod is lost": {
			func(w *fixture) {
				w.cluster.refuse = func(o cluster.Object) error {
					if o.GetName() == alwaysJob {
						w.cluster.goneAt["Job "+alwaysJob] = time.Now().Add(time.Second)
					}
					return nil
				}
			},
			"the pod that was made for the steps was deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				w.runDuration = time.Hour
				tt.setup(w)
				stop := w.start(executor.Settings{Slots: 1})
				w.publish(runWithAlways())
				time.Sleep(time.Second)
				w.loseAttempt(t)
				time.Sleep(11 * time.Minute)
				stop()
				want := always.Results{Steps: []always.StepResult{{Name: "drop", NotRun: tt.want}}}
				if diff := cmp.Diff(want, w.results(t)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
