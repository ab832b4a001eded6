package analysis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// set sets a baseline, and describes it.
func (w *fixture) setBaseline(name, operand, reason string) string {
	w.t.Helper()
	b, err := w.SetBaseline(w.t.Context(), analysis.Scope{Owner: "ann", Namespace: "default"}, name, operand, reason, "bob")
	if err != nil {
		return describeError(err)
	}
	return describeBaseline(b)
}

func describeBaseline(b analysis.Baseline) string {
	var all []string
	for _, r := range b.Revisions {
		all = append(all, fmt.Sprintf("%d: %s, %d runs, by %s %s", r.Number, r.Operand, len(r.Runs), r.Owner, r.Reason))
	}
	return b.Namespace + "/" + b.Name + " " + strings.Join(all, "; ")
}

func TestABaselineStandsForTheRunsThatItWasSetTo(t *testing.T) {
	w := newFixture(t)
	w.addAll("a", around(100, 5), spec{direction: event.Higher})
	w.add(spec{name: "failed", change: func(r *store.Run) { r.Outcome = event.Failed }})
	for _, step := range []struct{ name, operand, reason, want string }{
		{"main", "a1", "", "default/main 1: a1, 1 runs, by bob "},
		{"main", "a1", "", "default/main 1: a1, 1 runs, by bob "}, // again changes nothing
		{"main", "rates@2026-03-01", "release 2", "default/main 2: rates@2026-03-01, 5 runs, by bob release 2; 1: a1, 1 runs, by bob "},
		{"copy", "baseline:main", "", "default/copy 1: baseline:main, 5 runs, by bob "},
		{"Main", "a1", "", `operand: name "Main" is not the name of a baseline: take at most 63 of a-z, 0-9, "-" and "."`},
		{"main", "failed", "", "state: failed has no run that succeeded (name another)"},
		{"main", "b", "", `missing: run or set "b" of owner "ann" does not exist`},
		{"main", "baseline:none", "", "missing: baseline none of team default does not exist (baictl baseline list)"},
		{"main", "a1", strings.Repeat("x", 1025), "operand: reason has 1025 bytes: take at most 1024"},
	} {
		if diff := cmp.Diff(step.want, w.setBaseline(step.name, step.operand, step.reason)); diff != "" {
			t.Errorf("%s to %s (-want +got):\n%s", step.name, step.operand, diff)
		}
	}
	w.addAll("b", around(90, 5), spec{direction: event.Higher})
	want := "5 runs, 5 runs\nexcluded: it failed\nrate: worse n=5 n=5 -10.0 %"
	if diff := cmp.Diff(want, w.compareText("baseline:main", "rates@2026-03-06")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABaselineOfASetIsComparedCellByCell(t *testing.T) {
	w := newFixture(t)
	for i, cell := range []string{"n=1", "n=2"} {
		w.addAll("a"+cell, around(100, 5), spec{set: "one", cell: cell})
		w.addAll("b"+cell, around(float64(100+50*i), 5), spec{set: "two", cell: cell})
	}
	w.setBaseline("main", "one", "")
	want := "10 runs, 10 runs\nrate of n=1: unclear n=5 n=5 +0.0 % noise lacking 0 0\nrate of n=2: changed n=5 n=5 +50.0 %"
	if diff := cmp.Diff(want, w.compareText("baseline:main", "two")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABaselineOfARangeIsComparedCellByCell(t *testing.T) {
	w := newFixture(t)
	for i, cell := range []string{"n=1", "n=2"} {
		w.addAll("a"+cell, around(float64(100+800*i), 5), spec{set: "s", cell: cell})
	}
	w.setBaseline("main", "rates@2026-03-01", "")
	for i, cell := range []string{"n=1", "n=2"} {
		w.addAll("b"+cell, around(float64(100+850*i), 5), spec{set: "t", cell: cell})
	}
	want := "10 runs, 10 runs\nrate of n=1: unclear n=5 n=5 +0.0 % noise lacking 0 0\nrate of n=2: changed n=5 n=5 +5.6 %"
	if diff := cmp.Diff(want, w.compareText("baseline:main", "rates@2026-03-11")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBaselinesAreListedByTeamAndDeleted(t *testing.T) {
	w := newFixture(t)
	w.add(spec{name: "a", values: []float64{1}})
	for _, name := range []string{"b", "a", "c"} {
		w.setBaseline(name, "a", "")
	}
	if _, err := w.SetBaseline(t.Context(), analysis.Scope{Namespace: "default-2"}, "z", "a", "", "bob"); err != nil {
		t.Fatal(err)
	}
	names := func(namespace, after string, n int) (all []string) {
		found, err := w.Baselines(t.Context(), namespace, after, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range found {
			all = append(all, b.Name)
		}
		return all
	}
	if diff := cmp.Diff([][]string{{"a", "b"}, {"c"}, {"z"}}, [][]string{names("default", "", 2), names("default", "b", 2), names("default-2", "", 9)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []bool{true, false} {
		if existed, err := w.DeleteBaseline(t.Context(), "default", "b"); existed != want || err != nil {
			t.Errorf("existed %t, %v", existed, err)
		}
	}
	if diff := cmp.Diff([]string{"a", "c"}, names("default", "", 9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABaselineKeepsItsNewestRevisions(t *testing.T) {
	w := newFixture(t)
	w.addAll("a", around(100, 60), spec{})
	for i := range 60 {
		w.setBaseline("main", fmt.Sprintf("a%d", i+1), "")
	}
	b, err := w.Baseline(t.Context(), "default", "main")
	if err != nil || len(b.Revisions) != 50 || b.Newest().Number != 60 || b.Newest().Operand != "a60" {
		t.Errorf("%d revisions, %v: %+v", len(b.Revisions), err, b.Newest())
	}
}
