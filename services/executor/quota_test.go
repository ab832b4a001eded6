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

// queueItem is a run of an owner in the queue, with the value of label team.
func queueItem(run, owner, team string) executor.Item {
	f := event.Fetched{Header: header(run)}
	f.Owner = owner
	if team != "" {
		f.Labels = map[string]string{"team": team}
	}
	return executor.Item{Key: "key of " + run, QueuedRun: executor.QueuedRun{Run: f, Pods: 1}}
}

func TestLimitsOfUsersAndLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		rules  executor.Quota
		ledger []executor.Item // who has a slot
		queue  []executor.Item
		want   []string
		barred map[string]string
	}{
		"who has as many as a user may is passed over": {
			executor.Quota{Slots: 4, PerUser: 1},
			[]executor.Item{queueItem("x", "ann", "")},
			[]executor.Item{queueItem("a", "ann", ""), queueItem("b", "bob", ""), queueItem("c", "bob", "")},
			[]string{"b"},
			map[string]string{"a": "ann has 1 runs under way, the limit of a user"},
		},
		"a label has its own limit": {
			executor.Quota{Slots: 4, PerLabel: map[string]int{"team=pets": 1}},
			nil,
			[]executor.Item{queueItem("a", "ann", "pets"), queueItem("b", "bob", "pets"), queueItem("c", "bob", "cars"), queueItem("d", "bob", "cars")},
			[]string{"a", "c", "d"},
			map[string]string{},
		},
		"or one for each of its values": {
			executor.Quota{Slots: 4, PerLabel: map[string]int{"team": 1}},
			[]executor.Item{queueItem("x", "ann", "cars")},
			[]executor.Item{queueItem("a", "ann", "pets"), queueItem("b", "bob", "pets"), queueItem("c", "bob", "cars")},
			[]string{"a"},
			map[string]string{"c": "1 runs with label team=cars are under way, the limit of that label"},
		},
		"the one of a value is before that of each": {
			executor.Quota{Slots: 4, PerLabel: map[string]int{"team": 1, "team=pets": 2}},
			nil,
			[]executor.Item{queueItem("a", "ann", "pets"), queueItem("b", "bob", "pets"), queueItem("c", "bob", "pets")},
			[]string{"a", "b"},
			map[string]string{},
		},
		"nobody goes where no slot is free": {
			executor.Quota{Slots: 1, PerUser: 1}, []executor.Item{queueItem("x", "ann", "")}, []executor.Item{queueItem("b", "bob", "")}, nil, map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			ledger := executor.SlotTable{Allocations: executor.Admit(executor.SlotTable{}, tt.ledger, tt.rules)}
			for _, e := range executor.Admit(ledger, tt.queue, tt.rules) {
				got = append(got, e.Run)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			barred := map[string]string{}
			for h, why := range executor.BlockedByQuota(ledger, tt.queue, tt.rules) {
				barred[h.Run] = why
			}
			if diff := cmp.Diff(tt.barred, barred); diff != "" {
				t.Errorf("barred (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoIsBarredIsToldWhy(t *testing.T) {
	queue, lastReported := []executor.Item{queueItem("a", "ann", "")}, make(map[executor.AttemptKey]string)
	h := executor.AttemptKey{Run: "a", Attempt: 1}
	for i, step := range []struct{ why, want string }{
		{"ann has 2", "waiting for a free slot, number 1 in the queue; ann has 2"}, {"ann has 2", ""}, {"", "waiting for a free slot, number 1 in the queue"},
	} {
		events := executor.QueuePositions(queue, map[executor.AttemptKey]string{h: step.why}, lastReported, time.Unix(int64(i), 0))
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

func TestAUserAtTheLimitDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = time.Minute
		_, stop := w.start(executor.Settings{Slots: 2, PerUser: 1}, 0, false)
		other := fetched("r3")
		other.Owner = "bob"
		w.publish(fetched("r1"), fetched("r2"), other)
		time.Sleep(3 * time.Second)
		if diff := cmp.Diff([]string{"r1/1", "r3/1"}, w.slots()); diff != "" {
			t.Errorf("slots (-want +got):\n%s", diff)
		}
		for _, run := range []string{"r1", "r2", "r3"} {
			w.cancel(run)
		}
		time.Sleep(5 * time.Minute)
		stop()
		w.assertClean(t)
	})
}

// TestALaunchIsSaidOnce: a round of the admitter that looked before the launch
// had told its own does not launch once more.
func TestALaunchIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = time.Second
		w.readDelay = func(kind store.Kind) time.Duration {
			if kind == store.KindSlotTable {
				return 50 * time.Millisecond
			}
			return 0
		}
		_, stop := w.start(executor.Settings{Slots: 3, Poll: time.Millisecond}, 0, false)
		runs := []string{"r1", "r2", "r3", "r4", "r5", "r6"}
		for _, run := range runs {
			w.publish(fetched(run))
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		stop()
		w.assertClean(t)
		w.assertCreatedOnce(t)
		w.broker.mu.Lock()
		defer w.broker.mu.Unlock()
		if n := len(w.broker.topics[event.TopicLaunched]); n != len(runs) {
			t.Errorf("%d launches were said of %d", n, len(runs))
		}
	})
}
