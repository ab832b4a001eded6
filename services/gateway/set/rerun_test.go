package set_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// placesOf returns the places of the runs of one set, in the order of their submission.
func (w *fixture) placesOf(id string) string {
	var all []string
	for _, r := range w.runs() {
		if r.Set == id {
			all = append(all, fmt.Sprintf("%s %d", r.Cell, r.Repetition))
		}
	}
	return strings.Join(all, ", ")
}

// failedSet returns a set of 12 runs that was canceled: of 6 that were made, 1 failed, 2 were
// canceled and 3 succeeded.
func (g *gateway) failedSet() set.Set {
	g.w.t.Helper()
	s := g.put(descriptor("repetitions = 2\nmax_parallel = 6\norder = \"interleaved\"" + sixCells))
	g.pass()
	for i, r := range g.w.active() {
		switch {
		case r.Cell == "size=1K,n=2":
			g.w.finish(r, event.Failed)
		case i%2 == 0 && r.Cell != "size=1K,n=1":
		default:
			g.w.finish(r, event.Succeeded)
		}
	}
	if _, err := g.Cancel(g.w.t.Context(), "ann", s.ID, "ann"); err != nil {
		g.w.t.Fatal(err)
	}
	return g.runToEnd(s.ID)
}

// unsuccessful returns the places of a set that have no run that succeeded.
func (w *fixture) unsuccessful(s set.Set) string {
	succeeded := map[string]bool{}
	for _, r := range w.runs() {
		if r.Set == s.ID && r.Outcome == event.Succeeded {
			succeeded[fmt.Sprintf("%s %d", r.Cell, r.Repetition)] = true
		}
	}
	var all []string
	for _, repetition := range []int{1, 2} {
		for _, cell := range []string{"size=1K,n=1", "size=1K,n=2", "size=1K,n=3", "size=1M,n=1", "size=1M,n=2", "size=1M,n=3"} {
			if place := fmt.Sprintf("%s %d", cell, repetition); !succeeded[place] {
				all = append(all, place)
			}
		}
	}
	return strings.Join(all, ", ")
}

func TestARerunHasAllRunsOfItsSet(t *testing.T) {
	w := newFixture(t)
	w.scripts = fakeScripts{strings.Repeat("a", 64): {}}
	g := w.gateway()
	old, _, err := g.submit(submit.Request{Key: "k", Name: "n", Descriptor: []byte(descriptor(sixCells)), Script: strings.Repeat("a", 64), Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := g.Rerun(t.Context(), "ann", "n", set.Rerun{Owner: "bob", Key: "again"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "rerun of", s.RerunOf, old.ID)
	want(t, "pins", fmt.Sprint(w.scripts[strings.Repeat("a", 64)][s.ID]), "true")
	want(t, "set", summary(g.runToEnd(s.ID)), "finished, 6 of 6 submitted, 0 active, 6 succeeded, 0 failed, 0 canceled: succeeded")
	for _, r := range w.runs() {
		if r.Set == s.ID && (r.Owner != "bob" || r.Labels["a"] != "b") {
			t.Errorf("run %+v", r)
		}
	}
	first, err := g.Descriptor(t.Context(), old)
	second, err2 := g.Descriptor(t.Context(), s)
	want(t, "descriptor", second, first)
	want(t, "errors", fmt.Sprint(err, err2), "<nil> <nil>")
}

func TestARerunOfWhatFailedHasTheRunsThatDidNotSucceed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	old := g.failedSet()
	if old.Counts.Failed == 0 || old.Counts.Canceled == 0 || old.Counts.Succeeded == 0 || old.Next == old.Runs {
		t.Fatal(summary(old))
	}
	s, err := g.Rerun(t.Context(), "ann", old.ID, set.Rerun{Owner: "ann", Failed: true})
	if err != nil {
		t.Fatal(err)
	}
	expected := w.unsuccessful(old)
	for range 2 {
		g.pass()
		for i, r := range w.active() {
			w.finish(r, []event.Outcome{event.Succeeded, event.Failed}[i%2])
		}
	}
	s = g.runToEnd(s.ID)
	want(t, "runs", w.placesOf(s.ID), expected)
	want(t, "number", s.Runs, strings.Count(expected, ", ")+1)
	cells, _, err := g.Cells(t.Context(), s, "", 10)
	want(t, "cells", fmt.Sprint(len(cells), err), "6 <nil>")
	var selected []string
	for _, repetition := range []int{1, 2} {
		for _, c := range cells {
			if slices.Contains(c.Selected.Repetitions, repetition) {
				selected = append(selected, fmt.Sprintf("%s %d", c.Name, repetition))
			}
		}
	}
	want(t, "runs that the cells say", strings.Join(selected, ", "), expected)
	measured, _, err := g.Results(t.Context(), s, "", 10, nil)
	for i, c := range measured {
		want(t, "a cell without runs", c.NotSelected, len(cells[i].Selected.Repetitions) == 0)
	}
	want(t, "error", fmt.Sprint(err), "<nil>")

	third, err := g.Rerun(t.Context(), "ann", s.ID, set.Rerun{Owner: "ann", Failed: true})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "runs of a rerun of a rerun", third.Runs, s.Counts.Failed)
	third = g.runToEnd(third.ID)
	var state *set.StateError
	if _, err := g.Rerun(t.Context(), "ann", third.ID, set.Rerun{Owner: "ann", Failed: true}); !errors.As(err, &state) {
		t.Errorf("a rerun of a set that succeeded: %v", err)
	}
}

func TestCellsSayWhichRunsWereRefused(t *testing.T) {
	w := newFixture(t)
	w.scripts = fakeScripts{strings.Repeat("a", 64): {}}
	g := w.gateway()
	s, _, err := g.submit(submit.Request{
		Key: "k", Descriptor: []byte(descriptor("warmup = 1\nrepetitions = 3\nmax_parallel = 4\norder = \"random\"" + sixCells)), Script: strings.Repeat("a", 64),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.pass()
	delete(w.scripts, strings.Repeat("a", 64)) // it is evicted
	s = g.runToEnd(s.ID)
	cells, _, err := g.Cells(t.Context(), s, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	refused, all := 0, 0
	for _, c := range cells {
		numbers := len(c.Runs)
		if c.Refused != nil {
			refused += len(c.Refused.Repetitions) + len(c.Refused.Warmups)
			numbers += len(c.Refused.Repetitions) + len(c.Refused.Warmups)
		}
		all += numbers
		want(t, "runs of "+c.Name, numbers, 4)
		for _, r := range c.Runs {
			if !r.Warmup && c.Refused != nil && slices.Contains(c.Refused.Repetitions, r.Repetition) {
				t.Errorf("%s %d was made and refused", c.Name, r.Repetition)
			}
		}
	}
	want(t, "runs, refused and failed", fmt.Sprint(all, refused, len(s.Failures)), fmt.Sprint(24, s.Counts.Failed, 10))
}

// runCountingStore counts the runs that are read one by one.
type runCountingStore struct {
	*storetest.Memory

	reads atomic.Int64
}

func (s *runCountingStore) Run(ctx context.Context, id string) (store.Run, error) {
	s.reads.Add(1)
	return s.Memory.Run(ctx, id)
}

func TestARerunOfWhatFailedListsTheRunsAndReadsNoneByItself(t *testing.T) {
	w := newFixture(t)
	w.scripts = fakeScripts{strings.Repeat("a", 64): {}}
	g := w.gateway()
	old, _, err := g.submit(submit.Request{
		Key: "k", Descriptor: []byte(descriptor("repetitions = 300\nwarmup = 1\norder = \"random\"" + sixCells)), Script: strings.Repeat("a", 64),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		g.pass()
		for i, r := range w.active() {
			w.finish(r, []event.Outcome{event.Succeeded, event.Failed, event.Canceled}[i%3])
		}
	}
	delete(w.scripts, strings.Repeat("a", 64)) // it is evicted: some runs are refused
	w.wait(2 * time.Second)
	for range 3 {
		if _, err := g.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Cancel(t.Context(), "ann", old.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	old = g.runToEnd(old.ID)
	w.scripts[strings.Repeat("a", 64)] = map[string]bool{}
	counting := &runCountingStore{Memory: w.store}
	s, err := w.newGateway(counting, w).Rerun(t.Context(), "ann", old.ID, set.Rerun{Owner: "ann", Failed: true})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "runs", s.Runs, 6*301-old.Counts.Succeeded)
	want(t, "runs that were read", counting.reads.Load(), 0)
	if old.Counts.Succeeded < 300 || old.Counts.Failed < 300 || old.Counts.Canceled < 300 || old.Next == old.Runs || len(old.Refused) == 0 {
		t.Errorf("the set is %s, with %d bytes of refused runs", summary(old), len(old.Refused))
	}
}

func TestARerunOfWhatFailedKnowsRunsThatNoListShowsYet(t *testing.T) {
	for _, outcome := range []event.Outcome{event.Succeeded, event.Failed} {
		w := newFixture(t)
		g := w.gateway()
		old := g.put(descriptor("max_parallel = 2" + sixCells))
		g.pass()
		last := w.active()[0]
		w.finish(last, outcome)
		w.finish(w.active()[0], event.Failed)
		old = g.runToEnd(old.ID)
		lagging := w.newGateway(laggingLists{w.store, last.ID}, w)
		s, err := lagging.Rerun(t.Context(), "ann", old.ID, set.Rerun{Owner: "ann", Failed: true})
		if err != nil {
			t.Fatal(err)
		}
		want(t, string(outcome), s.Runs, old.Counts.Failed)
		w.wait(10 * time.Minute)
		s, err = lagging.Rerun(t.Context(), "ann", old.ID, set.Rerun{Owner: "ann", Failed: true})
		want(t, "once all runs must be listed", fmt.Sprint(s.Runs, err), "2 <nil>")
	}
}

func TestARerunOfWhatFailedIsRefusedBeforeTheEnd(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor(sixCells))
	var state *set.StateError
	if _, err := g.Rerun(t.Context(), "ann", s.ID, set.Rerun{Owner: "ann", Failed: true}); !errors.As(err, &state) {
		t.Errorf("a set that runs: %v", err)
	}
	var missing *set.MissingError
	if _, err := g.Rerun(t.Context(), "ann", "none", set.Rerun{Owner: "ann"}); !errors.As(err, &missing) {
		t.Errorf("no set: %v", err)
	}
}

func TestARerunLeavesSkippedRepetitionsOut(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	old := g.put(stopDescriptor(stopWhen))
	old = g.measureToEnd(old.ID, "latency", recorded)
	if _, err := g.Rerun(t.Context(), "ann", old.ID, set.Rerun{Owner: "ann", Failed: true}); err == nil || !strings.Contains(err.Error(), "all runs of set") {
		t.Errorf("all that were made succeeded: %v", err)
	}
	s, err := g.Rerun(t.Context(), "ann", old.ID, set.Rerun{Owner: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "skipped again", g.measureToEnd(s.ID, "latency", recorded).Skipped, old.Skipped)
}

func TestTheSameRerunIsTheSameSet(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	old := g.failedSet()
	req := set.Rerun{Owner: "ann", Key: "again", Failed: true}
	first, err := g.Rerun(t.Context(), "ann", old.ID, req)
	if err != nil {
		t.Fatal(err)
	}
	second, err := g.Rerun(t.Context(), "ann", old.ID, req)
	want(t, "repeated", second.ID+fmt.Sprint(err), first.ID+"<nil>")
	var taken *submit.NotUniqueError
	if _, err := g.Rerun(t.Context(), "ann", old.ID, set.Rerun{Owner: "ann", Key: "again"}); !errors.As(err, &taken) {
		t.Errorf("another rerun under the key: %v", err)
	}
}

// A gateway crashes before or after each of its effects, and another gateway continues.
func TestEachRunOfARerunIsMadeOnceWhereverAGatewayDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		second := w.gateway()
		old := second.failedSet()
		w.wait(20 * time.Second)
		dying := w.crashingGateway(p)
		req := set.Rerun{Owner: "ann", Key: "again", Failed: true}
		_, _ = dying.Rerun(t.Context(), "ann", old.ID, req) // the gateway may crash
		for more := true; more && !p.Dead(); {
			more, _ = dying.Reconcile(t.Context())
		}
		w.wait(20 * time.Second) // the lease ends
		s, err := second.Rerun(t.Context(), "ann", old.ID, req)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		s = second.runToEnd(s.ID)
		want(t, p.String(), w.placesOf(s.ID), w.unsuccessful(old))
		sets, err := second.List(t.Context(), "", 10, func(set.Set) bool { return true })
		want(t, p.String(), fmt.Sprint(len(sets), err), "2 <nil>")
	}
}

// The runs that succeeded decide which runs a rerun has once, when its request is stored.
func TestARerunStaysTheSameWhenItsSetGoesOn(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	old := g.failedSet()
	expected := w.unsuccessful(old)
	s, err := g.Rerun(t.Context(), "ann", old.ID, set.Rerun{Owner: "ann", Key: "again", Failed: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Resume(t.Context(), "ann", old.ID); err != nil {
		t.Fatal(err)
	}
	g.runToEnd(old.ID)
	g.runToEnd(s.ID)
	want(t, "runs", w.placesOf(s.ID), expected)
	requests, err := w.store.Docs(t.Context(), store.KindSetRequest, "", 10)
	want(t, "requests", fmt.Sprint(len(requests), err), "2 <nil>")
}
