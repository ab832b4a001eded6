package executor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// runWithKeep returns run r1 with a retention rule in its descriptor.
func runWithKeep(keep string) event.Fetched {
	f := fetched("r1")
	f.Descriptor += "[limits]\nkeep = \"" + keep + "\"\n"
	return f
}

func TestObjectsAreKeptAsLongAsIsAskedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		run      event.Fetched
		settings string
		becomes  string
		after    time.Duration
		kept     bool
	}{
		"not at all where nobody says":          {fetched("r1"), "", "", 5 * time.Second, false},
		"for a time":                            {runWithKeep("1h"), "", "", 59 * time.Minute, true},
		"and no longer":                         {runWithKeep("1h"), "", "", 61 * time.Minute, false},
		"as the settings say":                   {fetched("r1"), "1h", "", 59 * time.Minute, true},
		"unless the descriptor says better":     {runWithKeep("never"), "1h", "", 5 * time.Second, false},
		"only failed ones, where they are":      {runWithKeep("failed"), "", "", 5 * time.Second, false},
		"failed ones for a day":                 {runWithKeep("failed"), "", "failed", 23 * time.Hour, true},
		"and no longer than that":               {runWithKeep("failed"), "", "failed", 25 * time.Hour, false},
		"what is canceled is not":               {runWithKeep("1h"), "", "canceled", 20 * time.Second, false},
		"what was given up before it began not": {runWithKeep("failed"), "", "stuck", 5 * time.Second, false},
		"nor is that for a time":                {runWithKeep("1h"), "", "stuck", 5 * time.Second, false},
		"what somebody deleted is not":          {runWithKeep("failed"), "", "deleted", 5 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				w.userFailures["bai-r1-1"], w.unschedulable["bai-r1-1"] = tt.becomes == "failed", tt.becomes == "stuck"
				if tt.becomes == "canceled" || tt.becomes == "deleted" {
					w.runDuration = time.Hour
				}
				stop := w.start(executor.Settings{Slots: 1, Keep: tt.settings})
				w.publish(tt.run)
				time.Sleep(2 * time.Second)
				switch tt.becomes {
				case "canceled":
					w.cancel("r1")
				case "deleted":
					if err := w.cluster.Delete(t.Context(), cluster.Ref{Run: "r1", Attempt: 1}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(tt.after)
				stop()
				w.assertRetained(t, tt.kept)
			})
		})
	}
}

// assertRetained checks whether objects are left that hold no slot.
func (w *fixture) assertRetained(t *testing.T, want bool) {
	t.Helper()
	if got := len(w.cluster.objectKeys()) > 0; got != want {
		t.Errorf("left: %v", w.cluster.objectKeys())
	}
	if held := w.slots(); len(held) > 0 {
		t.Errorf("%v hold slots", held)
	}
	w.assertCreatedOnce(t)
}

// TestKeptObjectsSurviveReplays: retained objects stay and hold no slot although all
// events are replayed, and are deleted once.
func TestKeptObjectsSurviveReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.broker.redeliver = true
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(runWithKeep("1h"), fetched("r2"))
		time.Sleep(5 * time.Second)
		stop()
		w.broker.rewind()
		stop = w.start(executor.Settings{Slots: 1})
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"Job bai-r1-1", "Secret bai-r1-1"}, w.cluster.objectKeys()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
		stop()
		w.assertClean(t)
		w.assertCreatedOnce(t)
	})
}

func TestASettingOfWhatIsKeptThatIsNone(t *testing.T) {
	err := executor.Settings{Keep: "long"}.Validate()
	if err == nil || !strings.Contains(err.Error(), `executor.keep: "long", want never, failed or a time such as 1h`) {
		t.Errorf("%v", err)
	}
}

// TestServersAndWorkersAreEndedBeforeTheirRunIsKept: retained objects run nothing and
// hold no slot, for every strategy and after every crash.
func TestServersAndWorkersAreEndedBeforeTheirRunIsKept(t *testing.T) {
	for name, tt := range map[string]struct {
		strategy, keep, settings string
		fails, kept              bool
	}{
		"workers, for a time":                {"mpi", "1h", "", false, true},
		"workers of a failed run":            {"mpi", "failed", "", true, true},
		"not workers of one that ended well": {"mpi", "failed", "", false, false},
		"workers, as the settings say":       {"mpi", "", "1h", false, true},
		"a server, for a time":               {"inference", "1h", "", false, true},
		"a server of a failed run":           {"inference", "failed", "", true, true},
		"never a server":                     {"inference", "never", "1h", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				w.cluster.stopDelay, w.userFailures["bai-r1-1"] = 3*time.Minute, tt.fails
				stop := w.start(executor.Settings{Slots: 1, Keep: tt.settings})
				w.publish(multiRoleRun(tt.strategy, tt.keep))
				time.Sleep(time.Minute)
				if held := w.slots(); tt.kept && len(held) != 1 {
					t.Errorf("%v hold slots while pods end", held)
				}
				stop() // another executor takes over
				stop = w.start(executor.Settings{Slots: 1, Keep: tt.settings})
				time.Sleep(5 * time.Minute)
				stop()
				if w.cluster.running(cluster.Ref{Run: "r1", Attempt: 1}) {
					t.Error("something of it runs")
				}
				w.assertRetained(t, tt.kept)
			})
		})
	}
}

// multiRoleRun returns run r1 of a strategy with several roles.
func multiRoleRun(strategy, keep string) event.Fetched {
	f := fetched("r1")
	f.Descriptor = strings.Replace(f.Descriptor, "cpus = 1", "cpus = 1\nstrategy = \""+strategy+"\"", 1)
	if strategy == "inference" {
		f.Descriptor += "[server.hardware]\ncpus = 1\n[server.env]\ndocker_image = \"debian:12\"\nports = [8080]\nstart_command = \"serve\"\n"
	}
	if keep != "" {
		f.Descriptor += "[limits]\nkeep = \"" + keep + "\"\n"
	}
	return f
}

// TestARunHoldsItsSlotWhileItsPodsOweData: brokers are down for 20 minutes, and the
// deleted pods do not end before that.
func TestARunHoldsItsSlotWhileItsPodsOweData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.deletionDelay = 20 * time.Minute
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(fetched("r1"), fetched("r2"))
		time.Sleep(19 * time.Minute)
		if diff := cmp.Diff([]string{"Job bai-r1-1", "Secret bai-r1-1"}, w.cluster.objectKeys()); diff != "" {
			t.Errorf("while it owes data (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
		stop()
		w.assertClean(t)
		w.assertCreatedOnce(t)
	})
}

// TestPodsThatDoNotEndAreNotKept: a lost node never reports that its pods have ended.
func TestPodsThatDoNotEndAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.stopDelay = forever
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(multiRoleRun("mpi", "24h"))
		time.Sleep(3 * time.Hour)
		stop()
		w.assertRetained(t, false)
	})
}
