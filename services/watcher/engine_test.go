package watcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/watcher"
)

// readCluster is a cluster whose watch begins only while it can be read.
type readCluster struct{ *fakeCluster }

func (c readCluster) ready(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c readCluster) Watch(ctx context.Context, see func(cluster.Snapshot)) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	return c.fakeCluster.Watch(ctx, see)
}

// addEngine adds an engine gpu.
func (w *fixture) addEngine() *fakeCluster {
	c := newCluster()
	w.engines = map[string]watcher.Engine{"gpu": {Cluster: readCluster{c}, Ready: readCluster{c}.ready}}
	return c
}

// launchOn has a run on an engine, whose pod runs.
func (w *fixture) launchOn(p *process, c *fakeCluster, run, engine string) event.Launched {
	l := launchedRun(run, 0)
	l.Cluster = engine
	w.putRun(store.Run{ID: run, Namespace: "pets", Attempt: 1, Phase: event.PhaseRunning, Revision: 1})
	c.set(refOf(l), running())
	p.deliver(l)
	return l
}

// linesOf returns the published events of a run, one line each.
func (w *fixture) linesOf(run string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []event.Event
	for _, ev := range w.published {
		if ev.Head().Run == run {
			events = append(events, ev)
		}
	}
	return eventLines(events)
}

func TestAnEngineThatDoesNotAnswerDelaysNoOtherAndItsRunsSayIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		gpu := w.addEngine()
		p := w.start(watcher.Settings{})
		there, here := w.launchOn(p, gpu, "r1", "gpu"), w.launchOn(p, w.cluster, "r2", "local")
		time.Sleep(time.Second)
		gpu.failWith(errors.New("no route to host"))
		w.cluster.set(refOf(here), done())
		time.Sleep(time.Minute)
		gpu.failWith(nil)
		time.Sleep(time.Minute)
		gpu.set(refOf(there), done())
		time.Sleep(time.Minute)
		p.stop()
		want := []string{
			"bai.status attempt 1: running: running the benchmark",
			"bai.status attempt 1: running: engine gpu does not answer since 2000-01-01T00:00:05Z, and the pods may go on there: look at job bai-r1-1: no route to host",
			"bai.status attempt 1: running: running the benchmark",
			"bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)",
		}
		if diff := cmp.Diff(want, w.linesOf("r1")); diff != "" {
			t.Errorf("the run of the engine (-want +got):\n%s", diff)
		}
		want = []string{"bai.status attempt 1: running: running the benchmark", "bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)"}
		if diff := cmp.Diff(want, w.linesOf("r2")); diff != "" {
			t.Errorf("the run of the other (-want +got):\n%s", diff)
		}
	})
}

// The replica that starts during an outage reports it with the time that the first one stored, and ends it.
func TestAReplicaThatStartsInAnOutageEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		gpu := w.addEngine()
		p := w.start(watcher.Settings{})
		w.launchOn(p, gpu, "r1", "gpu")
		time.Sleep(time.Second)
		gpu.failWith(errors.New("no route to host"))
		time.Sleep(time.Minute)
		p.stop()
		p = w.start(watcher.Settings{})
		time.Sleep(time.Minute)
		gpu.failWith(nil)
		time.Sleep(time.Minute)
		p.stop()
		lines := w.linesOf("r1")
		if len(lines) != 3 || lines[0] != lines[2] || lines[1] == lines[0] {
			t.Errorf("said %q, want the state, the outage and the state again", lines)
		}
	})
}

func TestARunWhoseEngineIsNotInTheSettingsWaitsUntilItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		gpu := w.addEngine()
		engines := w.engines
		w.engines = nil
		p := w.start(watcher.Settings{})
		l := w.launchOn(p, gpu, "r1", "gpu")
		time.Sleep(5 * time.Minute)
		p.stop()
		w.engines = engines
		p = w.start(watcher.Settings{})
		time.Sleep(time.Minute)
		gpu.set(refOf(l), done())
		time.Sleep(time.Second)
		p.stop()
		want := []string{
			"bai.status attempt 1: running: engine gpu does not answer since 2000-01-01T00:00:00Z, and the pods may go on there: " +
				"look at job bai-r1-1: the settings have no such engine any more: put its table in engines back until its runs have ended",
			"bai.status attempt 1: running: running the benchmark",
			"bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)",
		}
		if diff := cmp.Diff(want, w.linesOf("r1")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A cluster that shows the objects of a run on another engine, as a copy of a namespace does, does not end the run.
func TestOnlyTheEngineOfARunIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		gpu := w.addEngine()
		p := w.start(watcher.Settings{})
		l := w.launchOn(p, w.cluster, "r1", "local")
		time.Sleep(time.Second)
		gpu.set(refOf(l), done())
		time.Sleep(time.Minute)
		p.stop()
		if diff := cmp.Diff([]string{"bai.status attempt 1: running: running the benchmark"}, w.linesOf("r1")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
