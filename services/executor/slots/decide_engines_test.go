package slots

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestTheSlotsOfEnginesAreCountedApart(t *testing.T) {
	t.Parallel()
	item := func(run, engine string, pods int) Item {
		i := queueItem(run, "ann", "")
		i.Engine, i.Pods = engine, pods
		return i
	}
	holds := func(run, engine string, pods int) Allocation {
		return Allocation{AttemptKey: AttemptKey{Run: run, Attempt: 1}, Engine: engine, Pods: pods}
	}
	two := Quota{Slots: 1, Engines: map[string]int{"gpu": 2}}
	for name, tt := range map[string]struct {
		table []Allocation
		queue []Item
		quota Quota
		want  []string
	}{
		"each engine takes as many runs as it has slots": {
			nil, []Item{item("a", "", 1), item("b", "", 1), item("c", "gpu", 1), item("d", "gpu", 1), item("e", "gpu", 1)}, two, []string{"a", "c", "d"},
		},
		"a full engine delays no run of another": {
			[]Allocation{holds("x", "gpu", 1), holds("y", "gpu", 1)}, []Item{item("a", "gpu", 1), item("b", "", 1)}, two, []string{"b"},
		},
		"a gang that is not placed delays no gang of another engine": {
			[]Allocation{holds("x", "gpu", 4)}, []Item{item("a", "gpu", 4), item("b", "", 4)}, two, []string{"b"},
		},
		"nobody overtakes a gang that waits on the same engine": {
			[]Allocation{holds("x", "gpu", 4)}, []Item{item("a", "gpu", 4), item("b", "gpu", 1), item("c", "", 1)}, two, []string{"c"},
		},
		"a run whose engine was taken out of the settings goes to the default engine, which ends it": {
			nil, []Item{item("a", "gone", 1)}, two, []string{"a"},
		},
		"runs on an engine that was taken out take no slot of the default one": {
			[]Allocation{holds("x", "gone", 1)}, []Item{item("a", "", 1)}, two, []string{"a"},
		},
		"limits of users hold over all engines": {
			[]Allocation{{AttemptKey: AttemptKey{Run: "x", Attempt: 1}, Engine: "gpu", Pods: 1, QuotaKeys: "user ann"}},
			[]Item{item("a", "", 1)},
			Quota{Slots: 1, PerUser: 1, Engines: map[string]int{"gpu": 2}},
			nil,
		},
		"a run that waits for nodes of one engine holds back none of another": {
			[]Allocation{{AttemptKey: AttemptKey{Run: "x", Attempt: 1}, Engine: "gpu", Pods: 1, Launched: true, Wait: event.NodesInUse}},
			[]Item{item("a", "gpu", 1), item("b", "", 1)},
			two,
			[]string{"b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range admit(Table{Allocations: tt.table}, tt.queue, tt.quota) {
				got = append(got, e.Run)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("admitted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPositionsAreThoseInTheQueueOfTheEngine(t *testing.T) {
	t.Parallel()
	on := func(run, engine string) Item {
		i := queueItem(run, "ann", "")
		i.Engine = engine
		return i
	}
	var got []string
	for _, ev := range queuePositions([]Item{on("a", ""), on("b", "gpu"), on("c", "")}, nil, map[AttemptKey]string{}, time.Unix(0, 0)) {
		if s, ok := ev.(event.Status); ok {
			got = append(got, s.Run+": "+s.Message)
		}
	}
	want := []string{
		"a: waiting for a free slot, number 1 in the queue", "b: waiting for a free slot of engine gpu, number 1 in the queue",
		"c: waiting for a free slot, number 2 in the queue",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
