package flow_test

import (
	"maps"
	"os"
	"path/filepath"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/clustertest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// scenario is the history of one run or more.
type scenario struct {
	play func(w *fixture) (run string) // from the submit to the end of the run
	want ending
}

// ending is the final state of a run.
type ending struct {
	Outcome  event.Outcome
	Class    event.Class
	Reason   event.Reason
	ExitCode int // -1: none
	Attempt  int
	Phases   []event.Phase // phases of the run, in this order; except fetching, which may be over before it is reported
	Data     store.Completeness
}

// scenarios returns all stories.
func scenarios() map[string]scenario {
	all := launchedScenarios()
	maps.Copy(all, otherScenarios())
	return all
}

// launchedScenarios are those of runs whose benchmark runs.
func launchedScenarios() map[string]scenario {
	return map[string]scenario{
		"a run that ends well has its data, samples and lines": {
			play: succeeds,
			want: ending{
				Outcome: event.Succeeded, Attempt: 1, Data: store.Completeness{Complete: true, Lines: 3, Samples: 3},
				Phases: []event.Phase{event.PhaseSubmitted, event.PhaseQueued, event.PhaseLaunching, event.PhasePending, event.PhaseRunning, event.PhaseFinished},
			},
		},
		"a run whose benchmark exits 3 has failed by its user's fault": {
			play: fails,
			want: ending{
				Outcome: event.Failed, Class: event.ClassUser, Reason: event.NonZeroExit, ExitCode: 3, Attempt: 1,
				Data:   store.Completeness{Complete: true, Lines: 1},
				Phases: []event.Phase{event.PhaseSubmitted, event.PhaseQueued, event.PhaseLaunching, event.PhasePending, event.PhaseRunning, event.PhaseFinished},
			},
		},
		"a run that is canceled while it runs ends when its objects are gone": {
			play: canceledRunning,
			want: ending{
				Outcome: event.Canceled, Reason: event.CanceledByUser, ExitCode: -1, Attempt: 1,
				Data:   store.Completeness{Complete: true, Lines: 1, Samples: 1},
				Phases: []event.Phase{event.PhaseSubmitted, event.PhaseQueued, event.PhaseLaunching, event.PhasePending, event.PhaseRunning, event.PhaseCanceling, event.PhaseFinished},
			},
		},
		"a run whose pod is evicted is launched once more": {
			play: retried,
			want: ending{
				Outcome: event.Succeeded, Attempt: 2, Data: store.Completeness{Complete: true, Lines: 3, Samples: 1},
				Phases: []event.Phase{
					event.PhaseSubmitted, event.PhaseQueued, event.PhaseLaunching, event.PhasePending, event.PhaseRunning,
					event.PhaseQueued, event.PhaseLaunching, event.PhasePending, event.PhaseRunning, event.PhaseFinished,
				},
			},
		},
	}
}

// otherScenarios are those of runs that end before.
func otherScenarios() map[string]scenario {
	return map[string]scenario{
		"a run that is canceled while it waiting for a free slot is never launched": {
			play: canceledWaiting,
			want: ending{
				Outcome: event.Canceled, Reason: event.CanceledByUser, ExitCode: -1, Attempt: 1, Data: store.Completeness{Complete: true},
				Phases: []event.Phase{event.PhaseSubmitted, event.PhaseQueued, event.PhaseCanceling, event.PhaseFinished},
			},
		},
		"a run whose data nobody may read is never launched": {
			play: forbidden,
			want: ending{
				Outcome: event.Failed, Class: event.ClassUser, Reason: event.SourceRefused, ExitCode: -1, Attempt: 1,
				Data: store.Completeness{Complete: true}, Phases: []event.Phase{event.PhaseSubmitted, event.PhaseFinished},
			},
		},
		"a run whose data are not there is never launched": {
			play: missing,
			want: ending{
				Outcome: event.Failed, Class: event.ClassUser, Reason: event.FetchFailed, ExitCode: -1, Attempt: 1,
				Data: store.Completeness{Complete: true}, Phases: []event.Phase{event.PhaseSubmitted, event.PhaseFinished},
			},
		},
		"a run whose objects the cluster refuses has failed": {
			play: refused,
			want: ending{
				Outcome: event.Failed, Class: event.ClassUser, Reason: event.LaunchRefused, ExitCode: -1, Attempt: 1,
				Data:   store.Completeness{Complete: true},
				Phases: []event.Phase{event.PhaseSubmitted, event.PhaseQueued, event.PhaseLaunching, event.PhaseFinished},
			},
		},
	}
}

func succeeds(w *fixture) string {
	w.t.Helper()
	run := w.submit(w.addFile("words", "to be read"))
	w.awaitLaunch(run, 1)
	if got, err := os.ReadFile(filepath.Join(w.runPuller(run), "0")); err != nil || string(got) != "to be read" {
		w.t.Errorf("the pod has %q, %v, want what the source has", got, err)
	}
	w.startBenchmark(run, 1)
	w.runCollector(run, "epoch 1 loss=0.5\nepoch 2 loss=0.25\ndone\n", "{\"speed\": 12.5}\n")
	w.act(run, clustertest.Exit(0))
	w.awaitPhase(run, event.PhaseFinished)
	return run
}

func fails(w *fixture) string {
	w.t.Helper()
	run := w.submit("")
	w.startBenchmark(run, 1)
	w.runCollector(run, "it does not work\n", "")
	w.act(run, clustertest.Exit(3))
	w.awaitPhase(run, event.PhaseFinished)
	return run
}

func canceledRunning(w *fixture) string {
	w.t.Helper()
	run := w.submit("")
	w.startBenchmark(run, 1)
	w.runCollector(run, "loss=1\n", "")
	w.cancel(run)
	w.awaitPhase(run, event.PhaseFinished)
	return run
}

func canceledWaiting(w *fixture) string {
	w.t.Helper()
	first := w.submit("")
	w.startBenchmark(first, 1)
	run := w.submit("")
	w.awaitPhase(run, event.PhaseQueued)
	w.cancel(run)
	w.awaitPhase(run, event.PhaseFinished)
	w.runCollector(first, "", "")
	w.act(first, clustertest.Exit(0))
	w.awaitPhase(first, event.PhaseFinished)
	return run
}

func retried(w *fixture) string {
	w.t.Helper()
	run := w.submit("[limits]\nretries = 1\n")
	w.startBenchmark(run, 1)
	w.runCollector(run, "first\n", "")
	w.act(run, clustertest.Evict)
	w.startBenchmark(run, 2)
	w.runCollector(run, "second\nloss=2\n", "")
	w.act(run, clustertest.Exit(0))
	w.awaitPhase(run, event.PhaseFinished)
	return run
}

func forbidden(w *fixture) string {
	w.t.Helper()
	run := w.submit(source("/etc/hostname", ""))
	w.awaitPhase(run, event.PhaseFinished)
	return run
}

func missing(w *fixture) string {
	w.t.Helper()
	run := w.submit(source(filepath.Join(w.folder, "nothing"), ""))
	w.awaitPhase(run, event.PhaseFinished)
	return run
}

func refused(w *fixture) string {
	w.t.Helper()
	w.cluster.refuse(refusal())
	defer w.cluster.refuse(nil)
	run := w.submit("")
	w.awaitPhase(run, event.PhaseFinished)
	return run
}

// refusal is the answer of a cluster that takes no objects.
func refusal() *cluster.RefusedError {
	return &cluster.RefusedError{Object: "Job x", Reason: string(event.LaunchRefused), Message: "not here"}
}
