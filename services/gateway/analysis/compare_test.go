package analysis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// compareText compares two sides, and describes the answer.
func (w *fixture) compareText(base, other string, change ...func(*analysis.CompareRequest)) string {
	w.t.Helper()
	req := analysis.CompareRequest{Old: base, New: other, Scope: analysis.Scope{Namespace: "default"}}
	for _, c := range change {
		c(&req)
	}
	c, err := w.Compare(w.t.Context(), req)
	if err != nil {
		return describeError(err)
	}
	lines := []string{fmt.Sprintf("%d runs, %d runs", len(c.Old.Runs), len(c.New.Runs))}
	for _, e := range append(c.Old.Excluded, c.New.Excluded...) {
		lines = append(lines, "excluded: "+e.Reason)
	}
	for _, s := range c.Series {
		lines = append(lines, describe(s))
	}
	for _, d := range c.Differences {
		lines = append(lines, fmt.Sprintf("%s: %s, %s, incomparable %t", d.Subject, d.Old, d.New, d.Incomparable))
	}
	return strings.Join(append(lines, c.Notes...), "\n")
}

func describe(s analysis.SeriesComparison) string {
	text := s.Metric
	if len(s.Labels) > 0 {
		text += fmt.Sprint(s.Labels)
	}
	if s.Unit != "" {
		text += " in " + s.Unit
	}
	if s.Cell != "" {
		text += " of " + s.Cell
	}
	text += fmt.Sprintf(": %s n=%d n=%d", s.Verdict, s.Base.N, s.Other.N)
	if s.Change != nil {
		text += fmt.Sprintf(" %+.1f %%", 100*s.Change.Value)
	}
	if s.Reason != "" {
		text += fmt.Sprintf(" %s lacking %d %d", s.Reason, s.LackingBase, s.LackingOther)
	}
	if s.LackingHistory > 0 {
		text += fmt.Sprintf(" or %d", s.LackingHistory)
	}
	if s.History > 0 {
		text += fmt.Sprintf(" history %d", s.History)
	}
	return text
}

func describeError(err error) string {
	var operand *analysis.OperandError
	var missing *analysis.MissingError
	var state *analysis.StateError
	switch {
	case errors.As(err, &operand):
		return "operand: " + operand.Error()
	case errors.As(err, &missing):
		return "missing: " + missing.Error()
	case errors.As(err, &state):
		return "state: " + state.Error()
	}
	return err.Error()
}

func withMinChange(c float64) func(*analysis.CompareRequest) {
	return func(r *analysis.CompareRequest) { r.MinChange = c }
}

// sidesCase is a comparison of runs that store stores.
type sidesCase struct {
	store       func(w *fixture)
	base, other string
	change      func(*analysis.CompareRequest)
	want        string
}

func checkComparisons(t *testing.T, cases map[string]sidesCase) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			if tt.change == nil {
				tt.change = func(*analysis.CompareRequest) {}
			}
			bothWays(t, func(t *testing.T, w *fixture) {
				t.Helper()
				tt.store(w)
				if diff := cmp.Diff(tt.want, w.compareText(tt.base, tt.other, tt.change)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestSidesAreCompared(t *testing.T) {
	checkComparisons(t, map[string]sidesCase{
		"two runs without a history say what is lacking": {
			store: func(w *fixture) { w.addAll("r", []float64{100, 120}, spec{direction: event.Higher}) },
			base:  "r1", other: "r2", want: "1 runs, 1 runs\nrate: unclear n=1 n=1 few_runs lacking 3 3 or 10",
		},
		"two runs of a task with a history are compared by its spread": {
			store: func(w *fixture) { w.addAll("r", append(around(100, 20), 100, 120), spec{direction: event.Lower}) },
			base:  "r21", other: "r22", want: "1 runs, 1 runs\nrate: worse n=1 n=1 +20.0 % history 20",
		},
		"runs of other machines are no part of the history": {
			store: func(w *fixture) {
				w.addAll("a", around(300, 20), spec{machine: "EPYC"})
				w.addAll("r", []float64{100, 120}, spec{machine: "Xeon"})
			},
			base: "r1", other: "r2", want: "1 runs, 1 runs\nrate: changed n=1 n=1 +20.0 % history 20",
		},
		"a range of time is compared with another one": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 7), spec{direction: event.Higher})
				w.addAll("b", around(110, 7), spec{direction: event.Higher})
			},
			base: "rates@2026-03-01..2026-03-08", other: "rates@2026-03-08..2026-03-15", want: "7 runs, 7 runs\nrate: better n=7 n=7 +10.0 %",
		},
		"a change that is small enough is the same": {
			store: func(w *fixture) { w.addAll("r", append(around(100, 12), around(100.1, 12)...), spec{}) },
			base:  "rates@2026-03-01..2026-03-13", other: "rates@2026-03-13..2026-03-25", change: withMinChange(0.02),
			want: "12 runs, 12 runs\nrate: same n=12 n=12 +0.1 %",
		},
		"labels and units make series of their own": {
			store: func(w *fixture) {
				w.add(spec{name: "a", values: []float64{1, 2}, unit: "s"})
				w.add(spec{name: "b", values: []float64{1, 2, 3}, unit: "s"})
			},
			base: "a", other: "b", want: "1 runs, 1 runs\nratemap[i:0] in s: unclear n=1 n=1 few_runs lacking 3 3 or 10\nratemap[i:1] in s: unclear n=1 n=1 few_runs lacking 3 3 or 10\nonly b has metric rate in s with i=2",
		},
		"without a common series there is no comparison": {
			store: func(w *fixture) {
				w.add(spec{name: "a", values: []float64{1}, unit: "s"})
				w.add(spec{name: "b", values: []float64{1}, unit: "B"})
			},
			base: "a", other: "b", want: "state: a and b have no metric in common: only a has metric rate in s; only b has metric rate in B",
		},
		"a metric that no side has is named": {
			store: func(w *fixture) { w.addAll("r", []float64{1, 2}, spec{}) },
			base:  "r1", other: "r2", change: func(r *analysis.CompareRequest) { r.Metrics = []string{"loss"} },
			want: "state: r1 and r2 have no metric in common (leave out --metric for all)",
		},
		"what else differs is listed": {
			store: func(w *fixture) {
				w.add(spec{name: "a", values: []float64{1}, machine: "EPYC", image: "img:1"})
				w.add(spec{name: "b", values: []float64{1}, machine: "Xeon", image: "img:1"})
			},
			base: "a", other: "b", want: "1 runs, 1 runs\nrate: unclear n=1 n=1 few_runs lacking 3 3 or 10\nmachine: [EPYC, 8 CPUs, 32 GiB (c999daeb)], [Xeon, 8 CPUs, 32 GiB (157d729c)], incomparable true",
		},
		"runs that do not count are named with the reason": {
			store: func(w *fixture) {
				w.add(spec{name: "a", values: []float64{1}, set: "s", change: func(r *store.Run) { r.Warmup = true }})
				w.add(spec{name: "b", values: []float64{1}, set: "s", change: func(r *store.Run) { r.Outcome, r.Reason = event.Failed, event.NonZeroExit }})
				w.add(spec{name: "c", values: []float64{1}, set: "s", change: func(r *store.Run) { r.Phase, r.Outcome = event.PhaseRunning, "" }})
				w.add(spec{name: "d", values: []float64{1}, set: "s", unsummarised: true, change: func(r *store.Run) { r.Collectors = []string{"p"} }})
				w.add(spec{name: "e", values: []float64{1}, set: "s"})
				w.add(spec{name: "f", values: []float64{1}})
			},
			base: "s", other: "f", want: "1 runs, 1 runs\nexcluded: it is a warm-up\nexcluded: it failed (NonZeroExit)\nexcluded: it has not ended\nexcluded: its samples are not summarised yet\nrate: unclear n=1 n=1 few_runs lacking 3 3 or 10",
		},
		"a run that failed has nothing to compare": {
			store: func(w *fixture) {
				w.add(spec{name: "a", change: func(r *store.Run) { r.Outcome = event.Failed }})
				w.add(spec{name: "b", values: []float64{1}})
			},
			base: "a", other: "b", want: "state: a has no results to compare: it failed (name runs that succeeded)",
		},
		"a run that does not exist is missing": {
			store: func(w *fixture) { w.add(spec{name: "b", values: []float64{1}}) },
			base:  "a", other: "b", want: `missing: run or set "a" of owner "" does not exist`,
		},
		"a task without runs in the range has none": {
			store: func(w *fixture) { w.add(spec{name: "b", values: []float64{1}}) },
			base:  "rates@-1h", other: "b", want: "state: rates@-1h has no runs (name another)",
		},
		"a smallest change of 100 % and more is refused": {
			store: func(*fixture) {}, base: "a", other: "b", change: withMinChange(1), want: "operand: min_change is 1: give at least 0, and less than 1: 0.02 is 2 %",
		},
	})
}

func TestTheCellsOfSidesAreComparedEach(t *testing.T) {
	checkComparisons(t, map[string]sidesCase{
		"the cells of two sets are compared each": {
			store: func(w *fixture) {
				for _, cell := range []string{"n=1", "n=2", "n=3"} {
					w.addAll("a"+cell, around(100, 5), spec{set: "one", cell: cell, direction: event.Higher})
				}
				for _, cell := range []string{"n=2", "n=1", "n=4", "n=5"} {
					w.addAll("b"+cell, around(90, 5), spec{set: "two", cell: cell, direction: event.Higher})
				}
			},
			base: "one", other: "two", want: "15 runs, 20 runs\nrate of n=1: worse n=5 n=5 -10.0 %\nrate of n=2: worse n=5 n=5 -10.0 %\nonly one has cell n=3\nonly two has cells n=4, n=5",
		},
		"a set of several cells is no side of a run": {
			store: func(w *fixture) {
				w.add(spec{name: "r", values: []float64{1}})
				w.add(spec{set: "s", cell: "n=1", values: []float64{1}})
				w.add(spec{set: "s", cell: "n=2", values: []float64{1}})
			},
			base: "r", other: "s", want: "state: s has 2 cells, and r is no set (compare it with a set, or name runs of one cell)",
		},
		"a set of one cell is": {
			store: func(w *fixture) {
				w.addAll("r", []float64{1}, spec{})
				w.addAll("s", []float64{1, 1, 1, 1}, spec{set: "s", cell: "n=1"})
			},
			base: "s", other: "r1", want: "4 runs, 1 runs\nrate: unclear n=4 n=1 few_runs lacking 0 3 or 10",
		},
		"the cells of a sweep are compared each in ranges of time, too": {
			store: func(w *fixture) {
				for _, level := range []float64{1, 0.9} {
					w.addAll("small", around(100*level, 5), spec{set: "s", cell: "n=1", direction: event.Higher})
					w.addAll("large", around(900/level, 5), spec{set: "s", cell: "n=2", direction: event.Higher})
				}
			},
			base: "rates@2026-03-01..2026-03-11", other: "rates@2026-03-11", want: "10 runs, 10 runs\nrate of n=1: worse n=5 n=5 -10.0 %\nrate of n=2: better n=5 n=5 +11.1 %",
		},
		"runs of no cell are compared with such runs": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 5), spec{set: "s", cell: "n=1"})
				w.addAll("b", around(500, 5), spec{})
				w.addAll("c", around(200, 5), spec{set: "t", cell: "n=1"})
			},
			base: "rates@2026-03-01..2026-03-11", other: "rates@2026-03-11", want: "10 runs, 5 runs\nrate of n=1: changed n=5 n=5 +100.0 %\nonly rates@2026-03-01..2026-03-11 has runs of no cell",
		},
		"a run of a cell is compared with that cell of a set": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 5), spec{set: "s", cell: "n=1"})
				w.addAll("b", around(500, 5), spec{set: "s", cell: "n=2"})
				w.addAll("r", []float64{1}, spec{set: "t", cell: "n=2"})
			},
			base: "s", other: "r1", want: "10 runs, 1 runs\nrate of n=2: unclear n=5 n=1 few_runs lacking 0 3 or 10\nonly s has cell n=1",
		},
		"two runs of two cells are compared, as they are named": {
			store: func(w *fixture) {
				w.addAll("r", []float64{1}, spec{set: "s", cell: "n=1"})
				w.addAll("q", []float64{1}, spec{set: "s", cell: "n=2"})
			},
			base: "r1", other: "q1", want: "1 runs, 1 runs\nrate: unclear n=1 n=1 few_runs lacking 3 3 or 10",
		},
		"two ranges of two cells have nothing in common": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 5), spec{set: "s", cell: "n=1"})
				w.addAll("b", around(500, 5), spec{set: "t", cell: "n=2"})
			},
			base: "rates@2026-03-01..2026-03-06", other: "rates@2026-03-06",
			want: "state: rates@2026-03-01..2026-03-06 and rates@2026-03-06 have no metric in common: only rates@2026-03-01..2026-03-06 has cell n=1; only rates@2026-03-06 has cell n=2",
		},
		"a range of several cells is no side of a run of none": {
			store: func(w *fixture) {
				w.add(spec{set: "s", cell: "n=1", values: []float64{1}})
				w.add(spec{set: "s", cell: "n=2", values: []float64{1}})
				w.add(spec{name: "r", values: []float64{1}})
			},
			base: "rates@2026-03-01..2026-03-03", other: "r",
			want: "state: rates@2026-03-01..2026-03-03 has 2 cells, and r is no set (compare it with a set, or name runs of one cell)",
		},
	})
}

func TestUnitsThatHaveChangedAreConverted(t *testing.T) {
	checkComparisons(t, map[string]sidesCase{
		"a unit that has changed is converted to the newer one": {
			store: func(w *fixture) {
				w.addAll("a", around(0.1, 5), spec{unit: "s", direction: event.Lower})
				w.addAll("b", around(120, 5), spec{unit: "ms", direction: event.Lower})
			},
			base: "rates@2026-03-01..2026-03-06", other: "rates@2026-03-06", want: "5 runs, 5 runs\nrate in ms: worse n=5 n=5 +20.0 %",
		},
		"the history is converted, too": {
			store: func(w *fixture) {
				w.addAll("a", around(0.1, 20), spec{unit: "s", direction: event.Lower})
				w.addAll("r", []float64{0.1}, spec{unit: "s"})
				w.addAll("n", []float64{130}, spec{unit: "ms", direction: event.Lower})
			},
			base: "r1", other: "n1", want: "1 runs, 1 runs\nrate in ms: worse n=1 n=1 +30.0 % history 20",
		},
		"a unit that has changed within a side is converted, too": {
			store: func(w *fixture) {
				w.addAll("a", around(0.1, 5), spec{unit: "s"})
				w.addAll("b", around(100, 5), spec{unit: "ms", direction: event.Lower})
				w.addAll("c", around(120, 5), spec{unit: "ms", direction: event.Lower})
				w.addAll("d", around(120000, 5), spec{unit: "us", direction: event.Lower})
			},
			base: "rates@2026-03-01..2026-03-11", other: "rates@2026-03-11", want: "10 runs, 10 runs\nrate in us: worse n=10 n=10 +20.0 %",
		},
		"units that one run has both of are two series, and the same ones are compared": {
			store: func(w *fixture) {
				both := func(all *store.Summaries) {
					all.Summaries = append(all.Summaries, store.Summary{Metric: "rate", Unit: "ms", Median: all.Summaries[0].Median * 7})
				}
				w.addAll("a", around(100, 5), spec{unit: "s"})
				w.addAll("b", around(200, 5), spec{unit: "s", summaries: both})
			},
			base: "rates@2026-03-01..2026-03-06", other: "rates@2026-03-06", want: "5 runs, 5 runs\nrate in s: changed n=5 n=5 +100.0 %\nonly rates@2026-03-06 has metric rate in ms",
		},
		"the history is converted where its unit has changed": {
			store: func(w *fixture) {
				w.addAll("a", around(0.1, 20), spec{unit: "s"})
				w.addAll("b", around(100, 4), spec{unit: "ms"})
				w.addAll("r", []float64{100, 130}, spec{unit: "ms", direction: event.Lower})
			},
			base: "r1", other: "r2", want: "1 runs, 1 runs\nrate in ms: worse n=1 n=1 +30.0 % history 24",
		},
	})
}

func TestWhatFewRunsHaveIsComparedByTheHistory(t *testing.T) {
	checkComparisons(t, map[string]sidesCase{
		"sets of few repetitions are compared by the history of their cells": {
			store: func(w *fixture) {
				w.addAll("a", around(100, 12), spec{set: "past", cell: "n=1", direction: event.Lower})
				w.addAll("b", around(900, 12), spec{set: "past", cell: "n=2", direction: event.Lower})
				w.addAll("c", around(500, 4), spec{set: "past", cell: "n=3", direction: event.Lower})
				for i, level := range []float64{1, 1.3} {
					w.addAll("a", around(100*level, 2), spec{set: fmt.Sprint(i), cell: "n=1", direction: event.Lower})
					w.addAll("b", around(900, 2), spec{set: fmt.Sprint(i), cell: "n=2", direction: event.Lower})
					w.addAll("c", around(500, 2), spec{set: fmt.Sprint(i), cell: "n=3", direction: event.Lower})
				}
			},
			base: "0", other: "1", want: "6 runs, 6 runs\nrate of n=1: worse n=2 n=2 +30.0 % history 12\nrate of n=2: unclear n=2 n=2 +0.0 % noise lacking 0 0 history 12\nrate of n=3: unclear n=2 n=2 few_runs lacking 2 2 or 6",
		},
		"a metric that few runs have is compared by the history": {
			store: func(w *fixture) {
				loss := func(v float64) func(*store.Summaries) {
					return func(all *store.Summaries) {
						all.Summaries = append(all.Summaries, store.Summary{Metric: "loss", Direction: event.Lower, Median: store.Float(v)})
					}
				}
				for _, v := range around(1, 20) {
					w.addAll("past", []float64{100}, spec{summaries: loss(v)})
				}
				for _, v := range []float64{1, 1.5} {
					w.addAll("r", around(100, 5), spec{})
					w.addAll("l", []float64{100}, spec{summaries: loss(v)})
				}
			},
			base: "rates@2026-03-21..2026-03-27", other: "rates@2026-03-27", want: "6 runs, 6 runs\nloss: worse n=1 n=1 +50.0 % history 20\nrate: unclear n=6 n=6 +0.0 % noise lacking 0 0",
		},
		"a run of a cell is compared by the history of that cell, however many others there are": {
			store: func(w *fixture) {
				for _, v := range around(100, 12) {
					for cell := range 7 {
						w.addAll("past", []float64{v * float64(1+cell)}, spec{set: "s", cell: fmt.Sprint("n=", cell), direction: event.Lower})
					}
				}
				w.addAll("r", []float64{500, 600}, spec{set: "t", cell: "n=4", direction: event.Lower})
			},
			base: "r1", other: "r2", want: "1 runs, 1 runs\nrate: worse n=1 n=1 +20.0 % history 12",
		},
		"runs of no task have no history that could be longer": {
			store: func(w *fixture) {
				w.addAll("r", []float64{1, 1}, spec{change: func(r *store.Run) { delete(r.Labels, store.LabelTask) }})
			},
			base: "r1", other: "r2", want: "1 runs, 1 runs\nrate: unclear n=1 n=1 few_runs lacking 3 3",
		},
	})
}

func TestWhatThePlatformMeasuresMakesNoMetricLessClear(t *testing.T) {
	w := newFixture(t)
	took := func(d time.Duration) func(*store.Run) {
		return func(r *store.Run) {
			started, ended := r.Created.Add(time.Second), r.Created.Add(d)
			r.Started, r.Ended = &started, &ended
		}
	}
	w.addAll("a", around(100, 4), spec{change: took(5 * time.Second)})
	w.addAll("b", around(200, 4), spec{change: took(6 * time.Second)})
	want := "4 runs, 4 runs\nrate: changed n=4 n=4 +100.0 %\nrun.duration in s: unclear n=4 n=4 +25.0 % many_metrics lacking 0 0\nrun.queued in s: same n=4 n=4 +0.0 %"
	if diff := cmp.Diff(want, w.compareText("rates@2026-03-01..2026-03-05", "rates@2026-03-05..2026-03-09")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
