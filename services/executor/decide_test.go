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
		"a run that has ended is left alone":                         {run: fetched("r1"), facts: executor.Facts{Over: true, Canceled: true}, want: "nothing"},
		"a run that was launched before is left alone":               {run: fetched("r1"), facts: executor.Facts{Plan: &executor.Plan{}, Canceled: true}, want: "nothing"},
		"a run that was ended before it was launched is ended again": {run: fetched("r1"), facts: executor.Facts{Plan: &executor.Plan{Never: true, Last: &end}}, want: "say canceled"},
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
			got := received(executor.Receive(tt.run, tt.facts, tt.settings))
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := received(executor.Receive(tt.run, tt.facts, tt.settings)); again != got {
				t.Errorf("another time: %q", again)
			}
		})
	}
}

func received(r executor.Reception) string {
	switch {
	case r.Aside:
		return "aside"
	case r.Queue != nil:
		return "queue"
	case r.Never != nil:
		return "never: " + endLine(*r.Never)
	}
	for _, ev := range r.Say {
		if f, ok := ev.(event.Finished); ok {
			return "say " + endLine(f)
		}
	}
	return "nothing"
}

func endLine(f event.Finished) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s: %s", f.Outcome, f.Class, f.Reason, f.Message)), " ")
}

func TestAdmit(t *testing.T) {
	place := func(run string, pods int) executor.Place {
		return executor.Place{Key: "key of " + run, Waiting: executor.Waiting{Run: event.Fetched{Header: header(run)}, Pods: pods}}
	}
	entry := func(run string, pods int, placed bool) executor.Entry {
		return executor.Entry{Holder: executor.Holder{Run: run, Attempt: 1}, Pods: pods, Placed: placed}
	}
	for name, tt := range map[string]struct {
		ledger []executor.Entry
		queue  []executor.Place
		slots  int
		want   []string
	}{
		"as many as there are slots, in order":                {nil, []executor.Place{place("a", 1), place("b", 1), place("c", 1)}, 2, []string{"a", "b"}},
		"nobody where all slots are taken":                    {[]executor.Entry{entry("x", 1, false)}, []executor.Place{place("a", 1)}, 1, nil},
		"nobody where more are taken than there are now":      {[]executor.Entry{entry("x", 1, false), entry("y", 1, false)}, []executor.Place{place("a", 1)}, 1, nil},
		"who has a slot is passed over":                       {[]executor.Entry{entry("a", 1, false)}, []executor.Place{place("a", 1), place("b", 1)}, 2, []string{"b"}},
		"one gang at a time":                                  {nil, []executor.Place{place("a", 4), place("b", 4)}, 9, []string{"a"}},
		"no gang while one is not placed":                     {[]executor.Entry{entry("x", 4, false)}, []executor.Place{place("a", 4)}, 9, nil},
		"the next gang once it is":                            {[]executor.Entry{entry("x", 4, true)}, []executor.Place{place("a", 4)}, 9, []string{"a"}},
		"nobody overtakes a gang that waits":                  {[]executor.Entry{entry("x", 4, false)}, []executor.Place{place("a", 4), place("b", 1)}, 9, nil},
		"who needs one pod may go while a gang is not placed": {[]executor.Entry{entry("x", 4, false)}, []executor.Place{place("a", 1)}, 9, []string{"a"}},
		"a gang that ends is not waited for":                  {[]executor.Entry{{Holder: executor.Holder{Run: "x", Attempt: 1}, Pods: 4, Ending: true}}, []executor.Place{place("a", 4)}, 9, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range executor.Admit(executor.Ledger{Entries: tt.ledger}, tt.queue, executor.Rules{Slots: tt.slots}) {
				if e.Queue != "key of "+e.Run {
					t.Errorf("%s has the key %q", e.Run, e.Queue)
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
	a, b := executor.Holder{Run: "a", Attempt: 1}, executor.Holder{Run: "b", Attempt: 1}
	for name, tt := range map[string]struct {
		entry   executor.Entry
		news    executor.News
		want    []executor.Entry
		changed bool
	}{
		"no news":              {executor.Entry{}, 0, []executor.Entry{{Holder: a}}, false},
		"launched":             {executor.Entry{}, executor.Launched, []executor.Entry{{Holder: a, Launched: true}}, true},
		"launched once more":   {executor.Entry{Launched: true}, executor.Launched, []executor.Entry{{Holder: a, Launched: true}}, false},
		"placed":               {executor.Entry{Launched: true}, executor.Placed, []executor.Entry{{Holder: a, Launched: true, Placed: true}}, true},
		"ending":               {executor.Entry{}, executor.Ending, []executor.Entry{{Holder: a, Ending: true}}, true},
		"launched when ending": {executor.Entry{Ending: true}, executor.Launched, []executor.Entry{{Holder: a, Launched: true, Ending: true}}, true},
		"gone":                 {executor.Entry{Ending: true}, executor.Gone, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.entry.Holder = a
			before := executor.Ledger{Fence: 7, Entries: []executor.Entry{tt.entry}}
			got, changed := executor.Learn(before, map[executor.Holder]executor.News{a: tt.news, b: executor.Gone})
			if diff := cmp.Diff(executor.Ledger{Fence: 7, Entries: tt.want}, got); diff != "" || changed != tt.changed {
				t.Errorf("changed: %t (-want +got):\n%s", changed, diff)
			}
			if diff := cmp.Diff(tt.entry, before.Entries[0]); diff != "" {
				t.Errorf("the ledger before was changed:\n%s", diff)
			}
		})
	}
}

func TestPositions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	queue := func(runs ...string) []executor.Place {
		var places []executor.Place
		for _, r := range runs {
			places = append(places, executor.Place{Waiting: executor.Waiting{Run: event.Fetched{Header: header(r)}}})
		}
		return places
	}
	told := make(map[executor.Holder]string)
	for _, step := range []struct {
		queue []executor.Place
		want  []string
	}{
		{queue("a", "b"), []string{"a: number 1 in the queue", "b: number 2 in the queue"}},
		{queue("a", "b"), nil},
		{queue("b", "c"), []string{"b: number 1 in the queue", "c: number 2 in the queue"}},
		{queue("a", "b"), []string{"a: number 1 in the queue", "b: number 2 in the queue"}},
	} {
		var got []string
		ids := make(map[string]bool)
		for _, ev := range executor.Positions(step.queue, nil, told, now) {
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
