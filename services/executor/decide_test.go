package executor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestReceive(t *testing.T) {
	with := func(old, replacement string) event.Fetched {
		f := fetched("r1")
		f.Descriptor = strings.Replace(f.Descriptor, old, replacement, 1)
		return f
	}
	end := event.Finished{Header: header("r1"), Outcome: event.Canceled}
	for name, tt := range map[string]struct {
		run      event.Fetched
		facts    executor.Facts
		settings executor.Settings
		want     string
	}{
		"a run whose data are there waiting for a free slot":         {run: fetched("r1"), want: "queue"},
		"a run that has ended is left alone":                         {run: fetched("r1"), facts: executor.Facts{RunFinished: true, Canceled: true}, want: "nothing"},
		"a run that was launched before is left alone":               {run: fetched("r1"), facts: executor.Facts{Plan: &executor.Plan{}, Canceled: true}, want: "nothing"},
		"a run that was ended before it was launched is ended again": {run: fetched("r1"), facts: executor.Facts{Plan: &executor.Plan{NoLaunch: true, FinalEvent: &end}}, want: "say canceled"},
		"a run with a cancel mark is never launched":                 {run: fetched("r1"), facts: executor.Facts{Canceled: true}, want: "never: canceled CanceledByUser: canceled before it was launched"},
		"a descriptor that cannot be read waits for who can": {
			run:  with(`cpus = 1`, `cpus = 1`+"\n"+`cpsu = 2`),
			want: "aside",
		},
		"unless its run was canceled": {
			run: with(`cpus = 1`, `cpus = 1`+"\n"+`cpsu = 2`), facts: executor.Facts{Canceled: true},
			want: "never: canceled CanceledByUser: canceled before it was launched",
		},
		"an engine that is not here is named with those that are": {
			run:  with(`description = "x"`, `description = "x"`+"\n"+`execution_engine = "aws.sagemaker"`),
			want: `say failed user EngineUnavailable: info.execution_engine is "aws.sagemaker", which this platform does not have: it has default, local`,
		},
		"the engine that is here may be named": {
			run: with(`description = "x"`, `description = "x"`+"\n"+`execution_engine = "kubernetes"`), settings: executor.Settings{Engine: "kubernetes"},
			want: "queue",
		},
		"a strategy that cannot be launched as it is written was not accepted by this release": {
			run:  with("cpus = 1\n[env]\ndocker_image = \"debian:12\"\n[ml]\nbenchmark_code = \"true\"", "cpus = 1\nstrategy = \"horovod\"\n[env]\ndocker_image = \"debian:12\""),
			want: "aside",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := describeDecision(executor.Decide(tt.run, tt.facts, tt.settings.Planner(true)))
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := describeDecision(executor.Decide(tt.run, tt.facts, tt.settings.Planner(true))); again != got {
				t.Errorf("another time: %q", again)
			}
		})
	}
}

func describeDecision(r executor.Decision) string {
	switch {
	case r.Unreadable != nil:
		return "aside"
	case r.Enqueue != nil:
		return "queue"
	case r.PreventLaunch != nil:
		return "never: " + describeFinished(*r.PreventLaunch)
	}
	for _, ev := range r.Publish {
		if f, ok := ev.(event.Finished); ok {
			return "say " + describeFinished(f)
		}
	}
	return "nothing"
}

func describeFinished(f event.Finished) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s: %s", f.Outcome, f.Class, f.Reason, f.Message)), " ")
}

func TestAdmit(t *testing.T) {
	place := func(run string, pods int) executor.Item {
		return executor.Item{Key: "key of " + run, QueuedRun: executor.QueuedRun{Run: event.Fetched{Header: header(run)}, Pods: pods}}
	}
	entry := func(run string, pods int, placed bool) executor.Allocation {
		return executor.Allocation{AttemptKey: executor.AttemptKey{Run: run, Attempt: 1}, Pods: pods, Scheduled: placed}
	}
	for name, tt := range map[string]struct {
		ledger []executor.Allocation
		queue  []executor.Item
		slots  int
		want   []string
	}{
		"as many as there are slots, in order":                {nil, []executor.Item{place("a", 1), place("b", 1), place("c", 1)}, 2, []string{"a", "b"}},
		"nobody where all slots are taken":                    {[]executor.Allocation{entry("x", 1, false)}, []executor.Item{place("a", 1)}, 1, nil},
		"nobody where more are taken than there are now":      {[]executor.Allocation{entry("x", 1, false), entry("y", 1, false)}, []executor.Item{place("a", 1)}, 1, nil},
		"who has a slot is passed over":                       {[]executor.Allocation{entry("a", 1, false)}, []executor.Item{place("a", 1), place("b", 1)}, 2, []string{"b"}},
		"one gang at a time":                                  {nil, []executor.Item{place("a", 4), place("b", 4)}, 9, []string{"a"}},
		"no gang while one is not placed":                     {[]executor.Allocation{entry("x", 4, false)}, []executor.Item{place("a", 4)}, 9, nil},
		"the next gang once it is":                            {[]executor.Allocation{entry("x", 4, true)}, []executor.Item{place("a", 4)}, 9, []string{"a"}},
		"nobody overtakes a gang that waits":                  {[]executor.Allocation{entry("x", 4, false)}, []executor.Item{place("a", 4), place("b", 1)}, 9, nil},
		"who needs one pod may go while a gang is not placed": {[]executor.Allocation{entry("x", 4, false)}, []executor.Item{place("a", 1)}, 9, []string{"a"}},
		"a gang that ends is not waited for":                  {[]executor.Allocation{{AttemptKey: executor.AttemptKey{Run: "x", Attempt: 1}, Pods: 4, Terminating: true}}, []executor.Item{place("a", 4)}, 9, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range executor.Admit(executor.SlotTable{Allocations: tt.ledger}, tt.queue, executor.Quota{Slots: tt.slots}) {
				if e.QueueKey != "key of "+e.Run {
					t.Errorf("%s has the key %q", e.Run, e.QueueKey)
				}
				got = append(got, e.Run)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLearn(t *testing.T) {
	a, b := executor.AttemptKey{Run: "a", Attempt: 1}, executor.AttemptKey{Run: "b", Attempt: 1}
	for name, tt := range map[string]struct {
		entry      executor.Allocation
		transition executor.Transition
		want       []executor.Allocation
		changed    bool
	}{
		"no news":              {executor.Allocation{}, 0, []executor.Allocation{{AttemptKey: a}}, false},
		"launched":             {executor.Allocation{}, executor.Launched, []executor.Allocation{{AttemptKey: a, Launched: true}}, true},
		"launched once more":   {executor.Allocation{Launched: true}, executor.Launched, []executor.Allocation{{AttemptKey: a, Launched: true}}, false},
		"placed":               {executor.Allocation{Launched: true}, executor.Scheduled, []executor.Allocation{{AttemptKey: a, Launched: true, Scheduled: true}}, true},
		"ending":               {executor.Allocation{}, executor.Terminating, []executor.Allocation{{AttemptKey: a, Terminating: true}}, true},
		"launched when ending": {executor.Allocation{Terminating: true}, executor.Launched, []executor.Allocation{{AttemptKey: a, Launched: true, Terminating: true}}, true},
		"gone":                 {executor.Allocation{Terminating: true}, executor.Released, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.entry.AttemptKey = a
			before := executor.SlotTable{Fence: 7, Allocations: []executor.Allocation{tt.entry}}
			got, changed := executor.Apply(before, map[executor.AttemptKey]executor.Transition{a: tt.transition, b: executor.Released})
			if diff := cmp.Diff(executor.SlotTable{Fence: 7, Allocations: tt.want}, got); diff != "" || changed != tt.changed {
				t.Errorf("changed: %t (-want +got):\n%s", changed, diff)
			}
			if diff := cmp.Diff(tt.entry, before.Allocations[0]); diff != "" {
				t.Errorf("the ledger before was changed:\n%s", diff)
			}
		})
	}
}

func TestPositions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	queue := func(runs ...string) []executor.Item {
		var places []executor.Item
		for _, r := range runs {
			places = append(places, executor.Item{QueuedRun: executor.QueuedRun{Run: event.Fetched{Header: header(r)}}})
		}
		return places
	}
	lastReported := make(map[executor.AttemptKey]string)
	for _, step := range []struct {
		queue []executor.Item
		want  []string
	}{
		{queue("a", "b"), []string{"a: number 1 in the queue", "b: number 2 in the queue"}},
		{queue("a", "b"), nil},
		{queue("b", "c"), []string{"b: number 1 in the queue", "c: number 2 in the queue"}},
		{queue("a", "b"), []string{"a: number 1 in the queue", "b: number 2 in the queue"}},
	} {
		var got []string
		ids := make(map[string]bool)
		for _, ev := range executor.QueuePositions(step.queue, nil, lastReported, now) {
			s, ok := ev.(event.Status)
			if !ok || s.Phase != event.PhaseQueued || ids[s.ID] {
				t.Errorf("%+v", ev)
			}
			ids[s.ID] = true
			got = append(got, s.Run+": "+strings.TrimPrefix(s.Message, "waiting for a free slot, "))
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		now = now.Add(5 * time.Second)
	}
}

func TestSettings(t *testing.T) {
	s := executor.Settings{Engine: "docker", Slots: -1, Lease: -1, Priorities: map[string]int{"urgent": 5000}}
	want := []string{
		`executor.engine: "docker", want local or kubernetes`, "executor.slots: must not be negative", "executor.lease: must not be negative",
		`executor.priorities: "urgent", want label=value`, `executor.priorities: "urgent" has 5000, want -1000 to 1000`,
	}
	err := s.Validate()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nwant an error with %q", err, w)
		}
	}
	if err := (executor.Settings{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}
