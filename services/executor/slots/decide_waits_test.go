package slots

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// waiting returns an allocation that waits in the cluster.
func waiting(run, pool string, why event.Reason) Allocation {
	return Allocation{AttemptKey: AttemptKey{Run: run, Attempt: 1}, Pods: 1, Launched: true, Pool: pool, Wait: why}
}

func TestWhoWaitsInTheClusterLetsOthersPassOrHoldsThemBack(t *testing.T) {
	item := func(run, label string) Item {
		i := queueItem(run, "ann", "")
		if label != "" {
			i.Pool = Pool{"kind": label}
		}
		return i
	}
	const heldBack = "a run before it waits for nodes that this one could take"
	for name, tt := range map[string]struct {
		table   []Allocation
		queue   []Item
		want    []string
		blocked map[string]string
	}{
		"a suspended attempt takes no slot": {
			[]Allocation{waiting("x", "", event.QueueSuspended), waiting("y", "", event.QueueSuspended), waiting("z", "", event.QueueSuspended)},
			[]Item{item("a", ""), item("b", ""), item("c", "")},
			[]string{"a", "b"},
			map[string]string{},
		},
		"one that ends does": {
			[]Allocation{{AttemptKey: AttemptKey{Run: "x", Attempt: 1}, Terminating: true, Wait: event.QueueSuspended}},
			[]Item{item("a", ""), item("b", "")},
			[]string{"a"},
			map[string]string{},
		},
		"nobody overtakes a run that waits for the same nodes": {
			[]Allocation{waiting("x", "kind=large", event.NodesInUse)},
			[]Item{item("a", "large"), item("b", "")},
			nil,
			map[string]string{"a": heldBack, "b": heldBack},
		},
		"others do": {
			[]Allocation{waiting("x", "kind=large", event.NodesInUse)},
			[]Item{item("a", "large"), item("b", "small")},
			[]string{"b"},
			map[string]string{"a": heldBack},
		},
		"nor one that such a run holds back": {
			[]Allocation{waiting("x", "kind=large", event.NodesInUse)},
			[]Item{item("a", ""), item("b", "small")},
			nil,
			map[string]string{"a": heldBack, "b": heldBack},
		},
		"a run with its nodes holds nobody back": {
			[]Allocation{waiting("x", "kind=large", "")}, []Item{item("a", "large")}, []string{"a"}, map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			table := Table{Allocations: tt.table}
			for _, e := range admit(table, tt.queue, Quota{Slots: 2}) {
				got = append(got, e.Run)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("admitted (-want +got):\n%s", diff)
			}
			blocked := map[string]string{}
			for h, why := range blockedReasons(table, tt.queue, Quota{Slots: 2}) {
				blocked[h.Run] = why
			}
			if diff := cmp.Diff(tt.blocked, blocked); diff != "" {
				t.Errorf("blocked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuspendedAttemptsBeyondTheBoundTakeSlots(t *testing.T) {
	var table []Allocation
	for range maxSuspended + 1 {
		table = append(table, waiting("x", "", event.QueueSuspended))
	}
	if n := (Quota{Slots: 4}).usage(table); n.free() != 3 {
		t.Errorf("%d slots are free, want 3", n.free())
	}
}
