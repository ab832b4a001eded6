package slots

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
)

func header(run string) event.Header {
	return event.NewHeader("id", run, "pets", "ann", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

func TestAdmit(t *testing.T) {
	place := func(run string, pods int) Item {
		return Item{Key: "key of " + run, QueuedRun: QueuedRun{Run: event.Fetched{Header: header(run)}, Pods: pods}}
	}
	entry := func(run string, pods int, placed bool) Allocation {
		return Allocation{AttemptKey: AttemptKey{Run: run, Attempt: 1}, Pods: pods, Scheduled: placed}
	}
	for name, tt := range map[string]struct {
		table []Allocation
		queue []Item
		slots int
		want  []string
	}{
		"as many as there are slots, in order":                {nil, []Item{place("a", 1), place("b", 1), place("c", 1)}, 2, []string{"a", "b"}},
		"nobody where all slots are taken":                    {[]Allocation{entry("x", 1, false)}, []Item{place("a", 1)}, 1, nil},
		"nobody where more are taken than there are now":      {[]Allocation{entry("x", 1, false), entry("y", 1, false)}, []Item{place("a", 1)}, 1, nil},
		"who has a slot is passed over":                       {[]Allocation{entry("a", 1, false)}, []Item{place("a", 1), place("b", 1)}, 2, []string{"b"}},
		"one gang at a time":                                  {nil, []Item{place("a", 4), place("b", 4)}, 9, []string{"a"}},
		"no gang while one is not placed":                     {[]Allocation{entry("x", 4, false)}, []Item{place("a", 4)}, 9, nil},
		"the next gang once it is":                            {[]Allocation{entry("x", 4, true)}, []Item{place("a", 4)}, 9, []string{"a"}},
		"nobody overtakes a gang that waits":                  {[]Allocation{entry("x", 4, false)}, []Item{place("a", 4), place("b", 1)}, 9, nil},
		"who needs one pod may go while a gang is not placed": {[]Allocation{entry("x", 4, false)}, []Item{place("a", 1)}, 9, []string{"a"}},
		"a gang that ends is not waited for":                  {[]Allocation{{AttemptKey: AttemptKey{Run: "x", Attempt: 1}, Pods: 4, Terminating: true}}, []Item{place("a", 4)}, 9, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range admit(Table{Allocations: tt.table}, tt.queue, Quota{Slots: tt.slots}) {
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
	a, b := AttemptKey{Run: "a", Attempt: 1}, AttemptKey{Run: "b", Attempt: 1}
	for name, tt := range map[string]struct {
		entry      Allocation
		transition Transition
		want       []Allocation
		changed    bool
	}{
		"no news":              {Allocation{}, 0, []Allocation{{AttemptKey: a}}, false},
		"launched":             {Allocation{}, Launched, []Allocation{{AttemptKey: a, Launched: true}}, true},
		"launched once more":   {Allocation{Launched: true}, Launched, []Allocation{{AttemptKey: a, Launched: true}}, false},
		"placed":               {Allocation{Launched: true}, Scheduled, []Allocation{{AttemptKey: a, Launched: true, Scheduled: true}}, true},
		"ending":               {Allocation{}, Terminating, []Allocation{{AttemptKey: a, Terminating: true}}, true},
		"launched when ending": {Allocation{Terminating: true}, Launched, []Allocation{{AttemptKey: a, Launched: true, Terminating: true}}, true},
		"gone":                 {Allocation{Terminating: true}, Released, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.entry.AttemptKey = a
			before := Table{Fence: 7, Allocations: []Allocation{tt.entry}}
			got, changed := apply(before, map[AttemptKey]Transition{a: tt.transition, b: Released})
			if diff := cmp.Diff(Table{Fence: 7, Allocations: tt.want}, got); diff != "" || changed != tt.changed {
				t.Errorf("changed: %t (-want +got):\n%s", changed, diff)
			}
			if diff := cmp.Diff(tt.entry, before.Allocations[0]); diff != "" {
				t.Errorf("the table before was changed:\n%s", diff)
			}
		})
	}
}

func TestPositions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	queue := func(runs ...string) []Item {
		var places []Item
		for _, r := range runs {
			places = append(places, Item{QueuedRun: QueuedRun{Run: event.Fetched{Header: header(r)}}})
		}
		return places
	}
	lastReported := make(map[AttemptKey]string)
	for _, step := range []struct {
		queue []Item
		want  []string
	}{
		{queue("a", "b"), []string{"a: number 1 in the queue", "b: number 2 in the queue"}},
		{queue("a", "b"), nil},
		{queue("b", "c"), []string{"b: number 1 in the queue", "c: number 2 in the queue"}},
		{queue("a", "b"), []string{"a: number 1 in the queue", "b: number 2 in the queue"}},
	} {
		var got []string
		ids := make(map[string]bool)
		for _, ev := range queuePositions(step.queue, nil, lastReported, now) {
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

// queueItem returns a queued run of an owner, with a value of the label team.
func queueItem(run, owner, team string) Item {
	f := event.Fetched{Header: header(run)}
	f.Owner = owner
	if team != "" {
		f.Labels = map[string]string{"team": team}
	}
	return Item{Key: "key of " + run, QueuedRun: QueuedRun{Run: f, Pods: 1}}
}

func TestLimitsOfUsersAndLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		rules  Quota
		table  []Item // attempts that hold a slot
		queue  []Item
		want   []string
		barred map[string]string
	}{
		"who has as many as a user may is passed over": {
			Quota{Slots: 4, PerUser: 1},
			[]Item{queueItem("x", "ann", "")},
			[]Item{queueItem("a", "ann", ""), queueItem("b", "bob", ""), queueItem("c", "bob", "")},
			[]string{"b"},
			map[string]string{"a": "ann has 1 runs under way, the limit of a user"},
		},
		"a label has its own limit": {
			Quota{Slots: 4, PerLabel: map[string]int{"team=pets": 1}},
			nil,
			[]Item{queueItem("a", "ann", "pets"), queueItem("b", "bob", "pets"), queueItem("c", "bob", "cars"), queueItem("d", "bob", "cars")},
			[]string{"a", "c", "d"},
			map[string]string{},
		},
		"or one for each of its values": {
			Quota{Slots: 4, PerLabel: map[string]int{"team": 1}},
			[]Item{queueItem("x", "ann", "cars")},
			[]Item{queueItem("a", "ann", "pets"), queueItem("b", "bob", "pets"), queueItem("c", "bob", "cars")},
			[]string{"a"},
			map[string]string{"c": "1 runs with label team=cars are under way, the limit of that label"},
		},
		"the one of a value is before that of each": {
			Quota{Slots: 4, PerLabel: map[string]int{"team": 1, "team=pets": 2}},
			nil,
			[]Item{queueItem("a", "ann", "pets"), queueItem("b", "bob", "pets"), queueItem("c", "bob", "pets")},
			[]string{"a", "b"},
			map[string]string{},
		},
		"nobody goes where no slot is free": {
			Quota{Slots: 1, PerUser: 1}, []Item{queueItem("x", "ann", "")}, []Item{queueItem("b", "bob", "")}, nil, map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			table := Table{Allocations: admit(Table{}, tt.table, tt.rules)}
			for _, e := range admit(table, tt.queue, tt.rules) {
				got = append(got, e.Run)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			barred := map[string]string{}
			for h, why := range blockedReasons(table, tt.queue, tt.rules) {
				barred[h.Run] = why
			}
			if diff := cmp.Diff(tt.barred, barred); diff != "" {
				t.Errorf("barred (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoIsBarredIsToldWhy(t *testing.T) {
	queue, lastReported := []Item{queueItem("a", "ann", "")}, make(map[AttemptKey]string)
	h := AttemptKey{Run: "a", Attempt: 1}
	for i, step := range []struct{ why, want string }{
		{"ann has 2", "waiting for a free slot, number 1 in the queue; ann has 2"}, {"ann has 2", ""}, {"", "waiting for a free slot, number 1 in the queue"},
	} {
		events := queuePositions(queue, map[AttemptKey]string{h: step.why}, lastReported, time.Unix(int64(i), 0))
		got := ""
		for _, ev := range events {
			if s, ok := ev.(event.Status); ok {
				got += s.Message
			}
		}
		if got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}
