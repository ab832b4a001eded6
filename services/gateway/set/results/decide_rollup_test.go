package results

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set/results/rollup"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestResultsOfACellAreStoredOnceTheyDoNotChangeAnyMore(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	run := func(id string, change func(*store.Run)) store.Run {
		r := store.Run{ID: id, Descriptor: "x", Phase: event.PhaseFinished, Outcome: event.Succeeded}
		if change != nil {
			change(&r)
		}
		return r
	}
	goesOn := func(r *store.Run) { r.Phase, r.Outcome = event.PhaseRunning, "" }
	failed := func(r *store.Run) { r.Outcome = event.Failed }
	complete := map[string]bool{"a": true, "b": true}
	running, finished := SetState{}, func(ago time.Duration) SetState { return SetState{Finished: true, Ended: now.Add(-ago)} }
	for name, tt := range map[string]struct {
		set       SetState
		runs      []store.Run
		summaries map[string]bool
		bare      map[string]bool
		want      string
	}{
		"all runs have complete summaries":                     {running, []store.Run{run("a", nil), run("b", nil)}, complete, nil, "settled, whole"},
		"a run goes on":                                        {running, []store.Run{run("a", nil), run("b", goesOn)}, complete, nil, "open"},
		"a run was projected without its submission":           {running, []store.Run{run("a", nil), run("b", func(r *store.Run) { r.Descriptor = "" })}, complete, nil, "open"},
		"a failed run needs no summary":                        {running, []store.Run{run("a", nil), run("b", failed)}, map[string]bool{"a": true}, nil, "settled, whole"},
		"a summary is incomplete":                              {running, []store.Run{run("a", nil), run("b", nil)}, map[string]bool{"a": true, "b": false}, nil, "open"},
		"a run has no summary":                                 {finished(time.Hour), []store.Run{run("a", nil), run("b", nil)}, map[string]bool{"a": true}, nil, "open"},
		"a run has no samples":                                 {running, []store.Run{run("a", nil), run("b", nil)}, map[string]bool{"a": true}, map[string]bool{"b": true}, "settled, whole"},
		"runs are lacking":                                     {running, []store.Run{run("a", nil)}, complete, nil, "open"},
		"runs are lacking, and the set has just finished":      {finished(9 * time.Minute), []store.Run{run("a", nil)}, complete, nil, "open"},
		"runs are lacking, and the set finished some time ago": {finished(10 * time.Minute), []store.Run{run("a", nil)}, complete, nil, "settled"},
		"no run was made":                                      {finished(10 * time.Minute), nil, complete, nil, "settled"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCellReader(1, "x", nil)
			c.summary = tt.summaries
			for _, r := range tt.runs {
				c.addRun(r)
			}
			got := "open"
			if results, ok := settled(tt.set, c, 2, tt.bare, now); ok && results.Whole {
				got = "settled, whole"
			} else if ok {
				got = "settled"
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestStoredResultsOfCellsThatLackRunsAreThoseOfOneEndOfTheSet(t *testing.T) {
	ended := SetState{Finished: true, EndedRuns: 7}
	goesOn := ended
	goesOn.Finished = false
	for name, tt := range map[string]struct {
		set   SetState
		ended int
		want  string
	}{
		"the set has not gone on since":     {ended, 7, "[1 2]"},
		"the set has gone on and has ended": {ended, 6, "[1]"},
		"the set goes on":                   {goesOn, 7, "[1]"},
	} {
		var cells []int
		for _, c := range current(tt.set, []rollup.CellResults{{Index: 1, Whole: true}, {Index: 2}}, tt.ended) {
			cells = append(cells, c.Index)
		}
		if got := fmt.Sprint(cells); got != tt.want {
			t.Errorf("%s: cells %s, want %s", name, got, tt.want)
		}
	}
}

func TestBlocksOfASet(t *testing.T) {
	for name, tt := range map[string]struct {
		set        SetState
		begin, end int
		want       string
	}{
		"a small set is one block":                    {SetState{Cells: 6, Repetitions: 1}, 0, 6, "[{0 6}]"},
		"a block has 500 runs":                        {SetState{Cells: 1200, Repetitions: 1}, 0, 1200, "[{0 500} {500 1000} {1000 1200}]"},
		"warm-ups are runs":                           {SetState{Cells: 200, Repetitions: 4, Warmup: 1}, 150, 151, "[{100 200}]"},
		"a cell with more runs is a block":            {SetState{Cells: 3, Repetitions: 900}, 1, 3, "[{1 2} {2 3}]"},
		"a page has the blocks that its cells lie in": {SetState{Cells: 1200, Repetitions: 1}, 499, 501, "[{0 500} {500 1000}]"},
	} {
		if got := fmt.Sprint(tt.set.blocks(tt.begin, tt.end)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestABlockGrows(t *testing.T) {
	b := storedBlock{block: block{10, 14}}
	b = b.with([]rollup.CellResults{{Index: 11}, {Index: 13}}, &runRef{Run: "b", Created: time.Unix(2, 0)})
	b = b.with([]rollup.CellResults{{Index: 10}}, &runRef{Run: "a", Created: time.Unix(1, 0)}).with(nil, nil)
	if got := fmt.Sprint(b.missing(), b.whole(), " ", b.oldest.Run); got != "[12] false a" {
		t.Errorf("lacks %s", got)
	}
	if b = b.with([]rollup.CellResults{{Index: 12}}, nil); !b.whole() || !slices.IsSortedFunc(b.cells, func(x, y rollup.CellResults) int { return x.Index - y.Index }) {
		t.Errorf("%+v is not whole and in order", b)
	}
}
