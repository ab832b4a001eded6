package executor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// onEngine returns the event of a run that names an engine.
func onEngine(run, engine string) event.Fetched {
	ev := fetched(run)
	ev.Descriptor = strings.Replace(ev.Descriptor, `description = "x"`, `description = "x"`+"\nexecution_engine = \""+engine+"\"", 1)
	return ev
}

// twoEngines returns settings with an engine gpu beside the default one.
func twoEngines() executor.Settings {
	return executor.Settings{Slots: 1, Engines: map[string]executor.EngineSettings{"gpu": {Kind: plan.EngineKubernetes, Slots: 2, Pods: transpile.Settings{Scope: "far"}}}}
}

// addEngine adds a cluster for the engine gpu.
func (w *fixture) addEngine() *fakeCluster {
	gpu := newCluster()
	gpu.deletionDelay = w.cluster.deletionDelay
	w.engines = map[string]*fakeCluster{"gpu": gpu}
	return gpu
}

func TestRunsGoToTheEnginesThatTheyNameAndFillTheSlotsOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		gpu := w.addEngine()
		w.runDuration = time.Minute
		stop := w.start(twoEngines())
		w.publish(onEngine("r1", "gpu"), onEngine("r2", "gpu"), onEngine("r3", "gpu"), onEngine("r4", "default"), onEngine("r5", "local"))
		time.Sleep(3 * time.Second)
		if diff := cmp.Diff([]string{"r1/1", "r2/1", "r4/1"}, slices.Sorted(slices.Values(w.slots()))); diff != "" {
			t.Errorf("slots (-want +got):\n%s", diff)
		}
		if o := gpu.object("Job bai-r1-1"); o == nil || o.GetNamespace() != "far" || w.cluster.object("Job bai-r1-1") != nil {
			t.Errorf("the job of the engine is %v, on %v", o, w.cluster.objectKeys())
		}
		time.Sleep(10 * time.Minute)
		stop()
		w.assertClean(t)
		if left := gpu.objectKeys(); len(left) > 0 {
			t.Errorf("left on the engine: %q", left)
		}
		if gpu.maxJobs != 2 || w.cluster.maxJobs != 1 {
			t.Errorf("%d and %d runs at a time, want 2 and 1", gpu.maxJobs, w.cluster.maxJobs)
		}
		for _, l := range published[event.Launched](t, w.broker) {
			if want := map[bool]string{true: "gpu", false: "local"}[l.Run < "r4"]; l.Cluster != want {
				t.Errorf("%s was launched on %s, want %s", l.Run, l.Cluster, want)
			}
		}
	})
}

func TestAnEngineThatDoesNotAnswerDelaysNoOtherAndItsRunsSayIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		gpu := w.addEngine()
		gpu.failWith(errors.New("no route to host"))
		stop := w.start(twoEngines())
		w.publish(onEngine("r1", "gpu"), onEngine("r2", "gpu"))
		for i := range 20 {
			w.publish(onEngine("s"+string(rune('a'+i)), "default"))
		}
		time.Sleep(20 * time.Second)
		outcomes := w.runOutcomes()
		if len(outcomes) != 20 || outcomes["r1"] != "" {
			t.Errorf("ended: %v, want all runs of the other engine", outcomes)
		}
		w.cancel("r2")
		time.Sleep(10 * time.Second)
		w.publish(onEngine("t1", "default"))
		time.Sleep(time.Second)
		if w.runOutcomes()["t1"] == "" {
			t.Error("a command for the engine that is away delays others")
		}
		want := []string{"engine gpu does not answer, trying again: create bai-r1-1: no route to host"}
		if diff := cmp.Diff(want, reportedOutages(t, w, "r1")); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
		gpu.failWith(nil)
		time.Sleep(10 * time.Minute)
		stop()
		w.assertClean(t)
		if got := w.runOutcomes(); got["r1"] != "succeeded" || got["r2"] != "canceled" {
			t.Errorf("ends of the runs of the engine: %q, %q", got["r1"], got["r2"])
		}
		if left := gpu.objectKeys(); len(left) > 0 {
			t.Errorf("left on the engine: %q", left)
		}
	})
}

// reportedOutages returns the statuses of a run that say that its engine does not answer.
func reportedOutages(t *testing.T, w *fixture, run string) (reported []string) {
	t.Helper()
	for _, s := range published[event.Status](t, w.broker) {
		if s.Run == run && s.Phase == event.PhaseLaunching && strings.Contains(s.Message, "does not answer") {
			reported = append(reported, s.Message)
		}
	}
	return reported
}

func TestARunWhoseEngineWasTakenOutOfTheSettingsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		gpu := w.addEngine()
		w.runDuration = time.Hour
		stop := w.start(twoEngines())
		w.publish(onEngine("r1", "gpu"), onEngine("r2", "gpu"), onEngine("r3", "gpu"))
		time.Sleep(3 * time.Second)
		stop()
		stop = w.start(executor.Settings{Slots: 1})
		time.Sleep(3 * time.Second)
		var ends []string
		for _, f := range published[event.Finished](t, w.broker) {
			ends = append(ends, f.Run+" "+string(f.Reason)+": "+f.Message)
		}
		want := []string{`r3 EngineUnavailable: info.execution_engine is "gpu", which this platform does not have: it has default, local`}
		if diff := cmp.Diff(want, ends); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		if gpu.object("Job bai-r1-1") == nil {
			t.Error("the objects of a run are gone whose engine nobody can ask")
		}
		stop()
		stop = w.start(twoEngines()) // it is back
		w.cancel("r1")
		w.cancel("r2")
		time.Sleep(10 * time.Minute)
		stop()
		w.assertClean(t)
		if left := gpu.objectKeys(); len(left) > 0 {
			t.Errorf("left on the engine: %q", left)
		}
	})
}
