package executor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// waits is a run of an owner in the queue, with the value of label team.
func waits(run, owner, team string) executor.Place {
	f := event.Fetched{Header: header(run)}
	f.Owner = owner
	if team != "" {
		f.Labels = map[string]string{"team": team}
	}
	return executor.Place{Key: "key of " + run, Waiting: executor.Waiting{Run: f, Pods: 1}}
}

func TestLimitsOfUsersAndLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		rules  executor.Rules
		ledger []executor.Place // who has a slot
		queue  []executor.Place
		want   []string
		barred map[string]string
	}{
		"who has as many as a user may is passed over": {
			executor.Rules{Slots: 4, PerUser: 1},
			[]executor.Place{waits("x", "ann", "")},
			[]executor.Place{waits("a", "ann", ""), waits("b", "bob", ""), waits("c", "bob", "")},
			[]string{"b"},
			map[string]string{"a": "ann has 1 runs under way, the limit of a user"},
		},
		"a label has its own limit": {
			executor.Rules{Slots: 4, PerLabel: map[string]int{"team=pets": 1}},
			nil,
			[]executor.Place{waits("a", "ann", "pets"), waits("b", "bob", "pets"), waits("c", "bob", "cars"), waits("d", "bob", "cars")},
			[]string{"a", "c", "d"},
			map[string]string{},
		},
		"or one for each of its values": {
			executor.Rules{Slots: 4, PerLabel: map[string]int{"team": 1}},
			[]executor.Place{waits("x", "ann", "cars")},
			[]executor.Place{waits("a", "ann", "pets"), waits("b", "bob", "pets"), waits("c", "bob", "cars")},
			[]string{"a"},
			map[string]string{"c": "1 runs with label team=cars are under way, the limit of that label"},
		},
		"the one of a value is before that of each": {
			executor.Rules{Slots: 4, PerLabel: map[string]int{"team": 1, "team=pets": 2}},
			nil,
			[]executor.Place{waits("a", "ann", "pets"), waits("b", "bob", "pets"), waits("c", "bob", "pets")},
			[]string{"a", "b"},
			map[string]string{},
		},
		"nobody goes where no slot is free": {
			executor.Rules{Slots: 1, PerUser: 1}, []executor.Place{waits("x", "ann", "")}, []executor.Place{waits("b", "bob", "")}, nil, map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			ledger := executor.Ledger{Entries: executor.Admit(executor.Ledger{}, tt.ledger, tt.rules)}
			for _, e := range executor.Admit(ledger, tt.queue, tt.rules) {
				got = append(got, e.Run)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			barred := map[string]string{}
			for h, why := range executor.Barred(ledger, tt.queue, tt.rules) {
				barred[h.Run] = why
			}
			if diff := cmp.Diff(tt.barred, barred); diff != "" {
				t.Errorf("barred (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoIsBarredIsToldWhy(t *testing.T) {
	queue, told := []executor.Place{waits("a", "ann", "")}, make(map[executor.Holder]string)
	h := executor.Holder{Run: "a", Attempt: 1}
	for i, step := range []struct{ why, want string }{
		{"ann has 2", "waiting for a free slot, number 1 in the queue; ann has 2"}, {"ann has 2", ""}, {"", "waiting for a free slot, number 1 in the queue"},
	} {
		said := executor.Positions(queue, map[executor.Holder]string{h: step.why}, told, time.Unix(int64(i), 0))
		got := ""
		for _, ev := range said {
			if s, ok := ev.(event.Status); ok {
				got += s.Message
			}
		}
		if got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

func TestAUserAtTheLimitDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lasts = time.Minute
		_, stop := w.run(executor.Settings{Slots: 2, PerUser: 1}, 0, false)
		other := fetched("r3")
		other.Owner = "bob"
		w.say(fetched("r1"), fetched("r2"), other)
		time.Sleep(3 * time.Second)
		if diff := cmp.Diff([]string{"r1/1", "r3/1"}, w.slots()); diff != "" {
			t.Errorf("slots (-want +got):\n%s", diff)
		}
		for _, run := range []string{"r1", "r2", "r3"} {
			w.cancel(run)
		}
		time.Sleep(5 * time.Minute)
		stop()
		w.over(t)
	})
}

// TestALaunchIsSaidOnce: a round of the admitter that looked before the launch
// had told its own does not launch once more.
func TestALaunchIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lasts = time.Second
		w.slow = func(kind store.Kind) time.Duration {
			if kind == store.KindLedger {
				return 50 * time.Millisecond
			}
			return 0
		}
		_, stop := w.run(executor.Settings{Slots: 3, Poll: time.Millisecond}, 0, false)
		runs := []string{"r1", "r2", "r3", "r4", "r5", "r6"}
		for _, run := range runs {
			w.say(fetched(run))
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		stop()
		w.over(t)
		w.once(t)
		w.broker.mu.Lock()
		defer w.broker.mu.Unlock()
		if n := len(w.broker.topics[event.TopicLaunched]); n != len(runs) {
			t.Errorf("%d launches were said of %d", n, len(runs))
		}
	})
}
