package projection_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const runID = "01k8h4fzqh3v7x9y2m5n8p0r4t"

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// at returns the header of an event of an attempt, published that many seconds after
// noon. Its ID is made of the kind and these numbers.
func at(kind string, attempt, second int) event.Header {
	h := event.NewHeader(fmt.Sprintf("%s-%d-%d", kind, attempt, second), runID, "default", "ann", noon())
	h.Attempt, h.PublishedAt = attempt, noon().Add(time.Duration(second)*time.Second)
	return h
}

func submitted() event.Submitted {
	return event.Submitted{
		Header: at("submitted", 1, 0), Name: "nightly", File: "bench.toml", Descriptor: "spec_version = 1",
		Labels: map[string]string{"color": "red"},
	}
}

func fetched(second int) event.Fetched {
	return event.Fetched{
		Header: at("fetched", 1, second), Descriptor: "spec_version = 1",
		Data: []event.Data{{Source: "https://example.com/cats", Path: "/cats", SHA256: "abc", Size: 3}},
	}
}

func status(attempt, second int, phase event.Phase, message string) event.Status {
	return event.Status{Header: at("status", attempt, second), Phase: phase, Message: message}
}

// inCluster returns the status of a run whose pods wait for other runs.
func inCluster() event.Status {
	s := status(1, 4, event.PhaseQueued, "it waits")
	s.Reason = event.NodesInUse
	return s
}

func progress(attempt, second int, phase event.Phase, done int64) event.Status {
	s := status(attempt, second, phase, fmt.Sprint(done, " of 100"))
	s.Progress = &event.Progress{Done: done, Total: 100, Unit: "items"}
	return s
}

func launched(attempt, second int) event.Launched {
	return event.Launched{Header: at("launched", attempt, second), Cluster: "local", Scope: "default", Job: "job"}
}

func retried(attempt, second int, collectors ...string) event.Retried {
	return event.Retried{Header: at("retried", attempt, second), Class: event.ClassInfra, Reason: event.NodeLost, Message: "the node was lost", Collectors: collectors}
}

func finished(attempt, second int, outcome event.Outcome, collectors ...string) event.Finished {
	f := event.Finished{Header: at("finished-"+string(outcome), attempt, second), Outcome: outcome, Message: "it " + string(outcome), Collectors: collectors}
	if outcome == event.Failed {
		f.Class, f.Reason = event.ClassUser, event.NonZeroExit
	}
	return f
}

func cancel(second int) event.Command {
	return event.Command{Header: at("cancel", 1, second), Kind: event.CommandCancel, By: "bob"}
}

// history is a store of one run that keeps the contract of PutRun.
type history struct {
	run      *store.Run
	changes  []store.Change
	recorded map[string]bool // by event ID
}

// apply applies ev as a Projector does.
func (h *history) apply(ev event.Event) {
	run, change, ok := projection.Apply(h.run, ev)
	if ok && !h.recorded[change.Event] {
		h.run, h.changes, h.recorded[change.Event] = &run, append(h.changes, change), true
	}
}

func applyAll(evs ...event.Event) *history {
	h := &history{recorded: make(map[string]bool)}
	for _, ev := range evs {
		h.apply(ev)
	}
	return h
}

// line returns the run and its last change in one line.
func (h *history) line() string {
	r, c := h.run, h.changes[len(h.changes)-1]
	s := fmt.Sprintf("%s %d", r.Phase, r.Attempt)
	for _, word := range []string{string(r.Outcome), string(r.Class), string(r.Reason), strings.ReplaceAll(r.Message, " ", "-")} {
		if word != "" {
			s += " " + word
		}
	}
	if r.Progress != nil {
		s += fmt.Sprintf(" %d/%d", r.Progress.Done, r.Progress.Total)
	}
	if len(r.Collectors) > 0 {
		s += fmt.Sprint(" ", r.Collectors)
	}
	if c.Late {
		s += " late"
	}
	return s
}

func TestApply(t *testing.T) {
	for name, tt := range map[string]struct {
		events []event.Event
		want   string // as by history.line
	}{
		"a submitted run is submitted": {
			[]event.Event{submitted()}, "submitted 1 submitted-by-ann",
		},
		"a status says the phase and the message": {
			[]event.Event{submitted(), status(1, 1, event.PhaseFetching, "0 of 2")}, "fetching 1 0-of-2",
		},
		"a fetched run is queued": {
			[]event.Event{submitted(), fetched(2)}, "queued 1 fetched-1-data-set",
		},
		"a launched run is pending": {
			[]event.Event{submitted(), fetched(2), launched(1, 3)}, "pending 1 created-job-job",
		},
		"a phase never goes back": {
			[]event.Event{submitted(), launched(1, 3), status(1, 4, event.PhaseFetching, "1 of 2")}, "pending 1 created-job-job",
		},
		"a pending run may wait in the cluster": {
			[]event.Event{submitted(), launched(1, 3), inCluster()}, "queued 1 NodesInUse it-waits",
		},
		"a launch that comes later does not hide that": {
			[]event.Event{submitted(), inCluster(), launched(1, 3)}, "queued 1 NodesInUse it-waits",
		},
		"nor does an earlier wait for a slot": {
			[]event.Event{submitted(), inCluster(), status(1, 2, event.PhaseQueued, "third in line")}, "queued 1 NodesInUse it-waits",
		},
		"a run that waited in the cluster is pending again": {
			[]event.Event{submitted(), launched(1, 3), inCluster(), status(1, 5, event.PhasePending, "preparing the pod")}, "pending 1 preparing-the-pod",
		},
		"a running one does not wait in the cluster": {
			[]event.Event{submitted(), status(1, 3, event.PhaseRunning, "it runs"), inCluster()}, "running 1 it-runs",
		},
		"a fact that was overtaken does not hide what the phase's status said": {
			[]event.Event{submitted(), status(1, 2, event.PhaseQueued, "third in line"), fetched(3)}, "queued 1 third-in-line",
		},
		"a later status of the same phase replaces the message and keeps the progress": {
			[]event.Event{submitted(), progress(1, 1, event.PhaseFetching, 40), status(1, 2, event.PhaseFetching, "waits for another run's transfer")},
			"fetching 1 waits-for-another-run's-transfer 40/100",
		},
		"a new phase forgets the progress": {
			[]event.Event{submitted(), progress(1, 1, event.PhaseFetching, 40), fetched(2)}, "queued 1 fetched-1-data-set",
		},
		"an event before the submission makes a run": {
			[]event.Event{launched(1, 3)}, "pending 1 created-job-job",
		},
		"a submission that was overtaken brings its run no further back": {
			[]event.Event{launched(1, 3), submitted()}, "pending 1 created-job-job",
		},
		"a retried run is queued in the next attempt": {
			[]event.Event{submitted(), launched(1, 3), status(1, 4, event.PhaseRunning, "runs"), retried(2, 5, "p1")},
			"queued 2 NodeLost the-node-was-lost [p1]",
		},
		"an attempt that overtakes its retry is not set back by it": {
			[]event.Event{submitted(), launched(1, 3), launched(2, 6), retried(2, 5, "p1")}, "pending 2 created-job-job [p1]",
		},
		"an earlier attempt's status changes nothing": {
			[]event.Event{submitted(), retried(2, 5), status(1, 6, event.PhaseRunning, "runs")}, "queued 2 NodeLost the-node-was-lost",
		},
		"a canceled run is canceling": {
			[]event.Event{submitted(), launched(1, 3), cancel(4)}, "canceling 1 canceled-by-bob",
		},
		"a canceled run stays so whatever happens": {
			[]event.Event{submitted(), cancel(1), status(1, 2, event.PhaseRunning, "runs"), retried(2, 3)}, "canceling 2 canceled-by-bob",
		},
		"a command that was given in the first attempt cancels the second": {
			[]event.Event{submitted(), retried(2, 3), cancel(1)}, "canceling 2 canceled-by-bob",
		},
		"what ends a canceled run says more": {
			[]event.Event{submitted(), cancel(1), status(1, 2, event.PhaseCanceling, "waits for 1 pod")}, "canceling 1 waits-for-1-pod",
		},
		"a finished run is over": {
			[]event.Event{submitted(), launched(1, 3), finished(1, 9, event.Failed, "p1")}, "finished 1 failed user NonZeroExit it-failed [p1]",
		},
		"the first terminal fact wins": {
			[]event.Event{submitted(), finished(1, 9, event.Succeeded, "p1"), finished(1, 8, event.Failed, "p2")}, "finished 1 succeeded it-succeeded [p1] late",
		},
		"the first terminal fact wins also over a later attempt": {
			[]event.Event{submitted(), retried(2, 3), finished(1, 9, event.Canceled)}, "finished 2 canceled it-canceled",
		},
		"what comes after the end is late": {
			[]event.Event{submitted(), finished(1, 9, event.Succeeded), status(1, 4, event.PhaseRunning, "runs")}, "finished 1 succeeded it-succeeded late",
		},
		"a retry that its run's end overtook still says whose data are awaited": {
			[]event.Event{submitted(), finished(2, 9, event.Succeeded, "p2"), retried(2, 5, "p1", "p2")}, "finished 2 succeeded it-succeeded [p2 p1] late",
		},
		"a status cannot end a run": {
			[]event.Event{submitted(), status(1, 1, event.PhaseFinished, "hacked")}, "submitted 1 submitted-by-ann",
		},
		"a phase that this version does not know changes nothing": {
			[]event.Event{submitted(), status(1, 1, "warping", "engage")}, "submitted 1 submitted-by-ann",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := applyAll(tt.events...)
			if got := h.line(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if n := int64(len(tt.events)); h.run.Revision != n || h.changes[n-1].Revision != n {
				t.Errorf("revision %d after %d events", h.run.Revision, n)
			}
		})
	}
}

func TestAProjectionIsWhole(t *testing.T) {
	code, began, ended := 0, noon().Add(5*time.Second), noon().Add(8*time.Second)
	end := finished(1, 9, event.Succeeded, "p1")
	end.ExitCode, end.Started, end.Ended = &code, &began, &ended
	got := applyAll(submitted(), fetched(2), launched(1, 3), status(1, 4, event.PhaseRunning, "runs"), end)
	want := &store.Run{
		ID: runID, Name: "nightly", Namespace: "default", Owner: "ann", Labels: map[string]string{"color": "red"},
		File: "bench.toml", Descriptor: "spec_version = 1",
		Phase: event.PhaseFinished, Outcome: event.Succeeded, Message: "it succeeded", Attempt: 1, ExitCode: &code,
		Created: noon(), Updated: noon().Add(9 * time.Second), Started: &began, Ended: &ended,
		Data: fetched(2).Data, Collectors: []string{"p1"}, Revision: 5,
	}
	if diff := cmp.Diff(want, got.run); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(store.Change{
		Run: runID, Revision: 5, Event: end.ID, Topic: event.TopicFinished, Time: noon().Add(9 * time.Second), Attempt: 1,
		Phase: event.PhaseFinished, Outcome: event.Succeeded, Message: "it succeeded",
	}, got.changes[4]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStartAndEndAreKnownAlsoWhereTheEndDoesNotSayThem(t *testing.T) {
	h := applyAll(submitted(), status(1, 4, event.PhaseRunning, "runs"), status(1, 5, event.PhaseRunning, "still"), finished(1, 9, event.Canceled))
	if want := noon().Add(4 * time.Second); !h.run.Started.Equal(want) {
		t.Errorf("started %s, want %s", h.run.Started, want)
	}
	if want := noon().Add(9 * time.Second); !h.run.Ended.Equal(want) {
		t.Errorf("ended %s, want %s", h.run.Ended, want)
	}
}

func TestAFloodOfProgressIsThinnedOutAndTheRunStillMovesOn(t *testing.T) {
	h := applyAll(submitted())
	const hours = 24
	for second := 0; second < hours*3600; second += 5 {
		s := progress(1, second, event.PhaseFetching, int64(second))
		h.apply(s)
		if gap := s.PublishedAt.Sub(h.run.Updated); gap > 5*time.Minute {
			t.Fatalf("nothing was recorded for %s", gap)
		}
	}
	if n := len(h.changes); n < 100 || n > 1500 {
		t.Errorf("%d changes are kept of %d", n, hours*720)
	}
	h.apply(fetched(hours * 3600))
	h.apply(finished(1, hours*3600, event.Succeeded))
	if h.run.Phase != event.PhaseFinished {
		t.Errorf("phase %s", h.run.Phase)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	s := status(1, 1, event.PhaseFetching, strings.Repeat("ä", 1<<20))
	s.Reason = event.Reason(strings.Repeat("R", 1<<20))
	h := applyAll(submitted(), s)
	if n, m := len(h.run.Message), len(h.changes[1].Reason); n > 5000 || m > 200 {
		t.Errorf("%d and %d bytes are kept", n, m)
	}
}

// anyEvents draws events of one run in any order, many more than are recorded without
// throttling.
func anyEvents() *rapid.Generator[[]event.Event] {
	one := rapid.Custom(func(t *rapid.T) event.Event {
		attempt, second := rapid.IntRange(1, 3).Draw(t, "attempt"), rapid.IntRange(0, 200).Draw(t, "second")
		phase := rapid.SampledFrom(event.Phases()).Draw(t, "phase")
		outcome := rapid.SampledFrom([]event.Outcome{event.Succeeded, event.Failed, event.Canceled}).Draw(t, "outcome")
		pod := rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "pod")
		return rapid.SampledFrom([]event.Event{
			submitted(), fetched(2), launched(attempt, second), retried(attempt+1, second, pod), finished(attempt, second, outcome, pod), cancel(3),
			status(attempt, second, phase, "a"), progress(attempt, second, phase, int64(second)), status(attempt, second, phase, "b"), progress(attempt, second, phase, 3),
		}).Draw(t, "event")
	})
	return rapid.SliceOfN(one, 1, 200)
}

// TestReplayChangesNothing applies each event again, in any order, after all events.
func TestReplayChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		evs := append(anyEvents().Draw(t, "events"), anyEvents().Draw(t, "more events")...)
		h := applyAll(evs...)
		before, n := *h.run, len(h.changes)
		for _, ev := range rapid.Permutation(evs).Draw(t, "again") {
			h.apply(ev)
		}
		if diff := cmp.Diff(before, *h.run); diff != "" || len(h.changes) != n {
			t.Errorf("%d changes, then %d (-before +after):\n%s", n, len(h.changes), diff)
		}
	})
}

// TestHistoryIsInOrder checks for any events in any order that revisions have no gap,
// that phases do not go back within an attempt, and that only late changes follow the
// terminal one.
func TestHistoryIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := applyAll(anyEvents().Draw(t, "events")...)
		ended := false
		for i, c := range h.changes {
			if c.Revision != int64(i)+1 {
				t.Fatalf("revision %d at place %d", c.Revision, i)
			}
			if c.Late != ended {
				t.Fatalf("change %d: late %t, but ended %t", i, c.Late, ended)
			}
			if ended = c.Phase == event.PhaseFinished; ended != (h.run.Outcome != "" && i >= terminal(h.changes)) {
				t.Fatalf("change %d: phase %s", i, c.Phase)
			}
		}
	})
}

// terminal returns the index of the terminal change, or the number of changes.
func terminal(changes []store.Change) int {
	for i, c := range changes {
		if c.Topic == event.TopicFinished {
			return i
		}
	}
	return len(changes)
}

func TestPhasesDoNotGoBackWithinAnAttempt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{recorded: make(map[string]bool)}
		phase, attempt := event.PhaseSubmitted, 0
		for _, ev := range anyEvents().Draw(t, "events") {
			h.apply(ev)
			r := h.run
			if r.Attempt < attempt || r.Attempt == attempt && slices.Index(event.Phases(), r.Phase) < slices.Index(event.Phases(), phase) {
				t.Fatalf("from %s %d to %s %d", phase, attempt, r.Phase, r.Attempt)
			}
			if phase == event.PhaseCanceling && r.Phase != event.PhaseFinished && r.Phase != phase {
				t.Fatalf("from canceling to %s", r.Phase)
			}
			phase, attempt = r.Phase, r.Attempt
		}
	})
}

func TestARunKnowsTheMachinesOfEachAttemptInAnyOrderOfEvents(t *testing.T) {
	use := func(node string) []event.MachineUse { return []event.MachineUse{{Node: node}} }
	again, end := retried(2, 3), finished(2, 9, event.Succeeded)
	again.Machines, end.Machines = use("a"), use("b")
	none := finished(1, 9, event.Canceled)
	want := map[int][]event.MachineUse{1: use("a"), 2: use("b")}
	for name, tt := range map[string]struct {
		events []event.Event
		want   map[int][]event.MachineUse
	}{
		"in order":                                {[]event.Event{submitted(), again, end}, want},
		"the retry comes last":                    {[]event.Event{submitted(), end, again}, want},
		"a second end changes nothing":            {[]event.Event{submitted(), again, end, finished(2, 10, event.Failed)}, want},
		"an end without them leaves them unknown": {[]event.Event{submitted(), none}, nil},
	} {
		var run *store.Run
		for _, ev := range tt.events {
			next, _, _ := projection.Apply(run, ev)
			run = &next
		}
		if diff := cmp.Diff(tt.want, run.Machines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
