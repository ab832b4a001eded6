package executor_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// runWithUnknownKey returns a run whose descriptor has a key of a newer release and may
// wait 5 s.
func runWithUnknownKey(run string) event.Fetched {
	f := fetched(run)
	f.Descriptor = strings.Replace(descriptor, "cpus = 1", "cpus = 1\nquantum = true", 1) + "[limits]\npending_deadline = \"5s\"\n"
	return f
}

func TestADescriptorThatCannotBeReadIsReadAgainUntilItsTimeIsOver(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	end := event.Finished{Header: header("r1"), Outcome: event.Canceled}
	for name, tt := range map[string]struct {
		run   event.Fetched
		facts launch.Facts
		after time.Duration
		want  string
	}{
		"it waits": {run: runWithUnknownKey("r1"), after: 4 * time.Second, want: "waits"},
		"then it ends, and the platform is to blame": {run: runWithUnknownKey("r1"), after: 5 * time.Second, want: "never: failed platform VersionSkew: no newer executor came within 5s; this one cannot read what the gateway accepted: d.toml:6:1: hardware.quantum: "},
		"a newer executor receives it":               {run: fetched("r1"), after: time.Hour, want: "queue"},
		"a cancel ends it":                           {run: runWithUnknownKey("r1"), facts: launch.Facts{Canceled: true}, want: "never: canceled CanceledByUser: "},
		"a run that is over is forgotten":            {run: runWithUnknownKey("r1"), facts: launch.Facts{RunFinished: true}, after: time.Hour, want: "nothing"},
		"what was decided is said again":             {run: runWithUnknownKey("r1"), facts: launch.Facts{Plan: &launch.Plan{NoLaunch: true, FinalEvent: &end}}, want: "say canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			got := "waits"
			if r, decided := executor.DecideDeferred(launch.DeferredAttempt{Run: tt.run, Since: now}, tt.facts, executor.Settings{}.Planner(true), now.Add(tt.after)); decided {
				got = describeDecision(r)
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestARunWithAKeyOfANewerReleaseWaitsAndIsNeverTheUsersFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		stop := w.start(executor.Settings{Slots: 2, Reconcile: time.Second})
		w.publish(runWithUnknownKey("r1"), runWithUnknownKey("r2"), fetched("r3"))
		time.Sleep(2 * time.Second)
		w.cancel("r2")
		time.Sleep(20 * time.Second)
		stop()
		want := map[string]string{"r1": "failed VersionSkew", "r2": "canceled CanceledByUser", "r3": "succeeded "}
		if diff := cmp.Diff(want, w.outcomesWithReasons()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if left := w.docKeys("unread"); len(left) > 0 {
			t.Errorf("left aside: %v", left)
		}
		if jobs := slices.DeleteFunc(w.docKeys(store.KindPlan), func(key string) bool { return !strings.HasPrefix(key, "r1/") }); len(jobs) != 1 {
			t.Errorf("plans of the run that cannot be read: %v, want the one that it is never launched", jobs)
		}
		if w.cluster.createCount["Job bai-r1-1"] > 0 {
			t.Error("the run was launched without its key")
		}
	})
}

// TestARunThatANewerExecutorQueuedIsNotLaunchedByAnOlderOne: the older executor has the
// lease, gives the run a slot, and cannot read its descriptor.
func TestARunThatANewerExecutorQueuedIsNotLaunchedByAnOlderOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		if err := store.Create(t.Context(), w.store, store.KindQueue, "0100/1/r1/1", slots.QueuedRun{Run: runWithUnknownKey("r1"), Pods: 1}); err != nil {
			t.Fatal(err)
		}
		stop := w.start(executor.Settings{Slots: 1, Reconcile: time.Second})
		w.publish(fetched("r2"))
		time.Sleep(20 * time.Second)
		stop()
		want := map[string]string{"r1": "failed VersionSkew", "r2": "succeeded "}
		if diff := cmp.Diff(want, w.outcomesWithReasons()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if slots := w.slots(); len(slots) > 0 || w.cluster.createCount["Job bai-r1-1"] > 0 {
			t.Errorf("slots held: %v, Jobs made: %v", slots, w.cluster.createCount)
		}
	})
}

// outcomesWithReasons returns the outcomes of runs with their reasons.
func (w *fixture) outcomesWithReasons() map[string]string {
	w.t.Helper()
	all := make(map[string]string)
	for _, f := range published[event.Finished](w.t, w.broker) {
		all[f.Run] = string(f.Outcome) + " " + string(f.Reason)
	}
	return all
}
