package set_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/set/results"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// rollUp stores all results of a set that can be stored now.
func (g *gateway) rollUp(id string) {
	g.w.t.Helper()
	for more := true; more; {
		var err error
		if more, err = g.RollUp(g.w.t.Context(), id); err != nil {
			g.w.t.Fatal(err)
		}
	}
}

// cellResults returns all results of a set.
func (g *gateway) cellResults(id string, metrics ...string) (all []results.CellResults) {
	g.w.t.Helper()
	for token := ""; ; {
		page, next, err := g.Results(g.w.t.Context(), g.get(id), token, 1000, metrics)
		if err != nil {
			g.w.t.Fatal(err)
		}
		if all, token = append(all, page...), next; token == "" {
			return all
		}
	}
}

// storedResults returns the number of documents with stored results.
func (w *fixture) storedResults() int {
	w.t.Helper()
	docs, err := w.store.Docs(w.t.Context(), store.KindSetRollup, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(docs)
}

// unstored is a store that never shows stored results.
type unstored struct{ *storetest.Memory }

func (s unstored) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if kind == store.KindSetRollup {
		return store.Doc{}, store.ErrNotFound
	}
	return s.Memory.Doc(ctx, kind, key)
}

// forgetful is a store whose runs were deleted.
type forgetful struct{ *storetest.Memory }

func (forgetful) Run(context.Context, string) (store.Run, error) {
	return store.Run{}, store.ErrNotFound
}

func (forgetful) Runs(context.Context, store.RunFilter, string, int) ([]store.Run, string, error) {
	return nil, "", nil
}

// sameResults fails the test if results differ.
func sameResults(t *testing.T, subject string, got, want []results.CellResults) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(results.CellResults{}), cmpopts.EquateNaNs()); diff != "" {
		t.Fatalf("%s (-runs +stored):\n%s", subject, diff)
	}
}

func TestResultsThatAreStoredAreThoseOfTheRuns(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	id := g.put(descriptor("repetitions = 2\nwarmup = 1" + sixCells)).ID
	g.runToEnd(id)
	w.summarise(func(r store.Run) float64 { return float64(10*len(r.Cell) + r.Repetition) },
		store.Summary{Metric: "other", Labels: map[string]string{"gpu": "0"}, Median: 2}, store.Summary{Metric: "system.load", Median: 3})
	before, some := g.cellResults(id), g.cellResults(id, "other", "m")
	g.rollUp(id)
	want(t, "documents", w.storedResults(), 1)
	sameResults(t, "all metrics", g.cellResults(id), before)
	sameResults(t, "two metrics", g.cellResults(id, "other", "m"), some)
	sameResults(t, "results in another process", w.gateway().cellResults(id), before)
}

func TestStoredResultsAreReadWithoutTheRuns(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	id := g.put(descriptor(sixCells)).ID
	g.runToEnd(id)
	w.summarise(func(store.Run) float64 { return 1 })
	g.rollUp(id)
	reads := &countingReads{Memory: w.store}
	other := w.newGateway(reads, w)
	want(t, "cells", len(other.cellResults(id)), 6)
	want(t, "lists of runs and reads of summaries", reads.n, 0)
}

// countingReads counts the lists of runs and the reads of summaries.
type countingReads struct {
	*storetest.Memory

	n int
}

func (s *countingReads) Runs(ctx context.Context, f store.RunFilter, token string, limit int) ([]store.Run, string, error) {
	s.n++
	return s.Memory.Runs(ctx, f, token, limit)
}

func (s *countingReads) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if kind == store.KindSummary {
		s.n++
	}
	return s.Memory.Doc(ctx, kind, key)
}

func TestResultsOfASetThatRunsAreStoredByAndBy(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	id := g.put(descriptor("max_parallel = 200\n[sweep.product]\nsize = [\"1K\"]\nn = [" + numbers(501) + "]")).ID
	for range 3 { // 600 runs, without the last one
		for range 10 {
			g.pass()
		}
		for _, r := range w.active() {
			if !strings.HasSuffix(r.Cell, "n=501") {
				w.finish(r, event.Succeeded)
			}
		}
	}
	g.pass()
	w.summarise(func(store.Run) float64 { return 1 })
	want(t, "the set", g.get(id).State, set.StateRunning)
	g.rollUp(id)
	want(t, "documents of the set that runs", w.storedResults(), 1)
	g.runToEnd(id)
	g.rollUp(id)
	want(t, "documents", w.storedResults(), 2)
}

// numbers returns a list of the numbers from 1 to n.
func numbers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(all, ", ")
}

func TestRunsWithoutSamplesAreStored(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	id := g.put(descriptor(sixCells)).ID
	g.runToEnd(id)
	before := g.cellResults(id)
	g.rollUp(id)
	want(t, "documents before it is known that there are no samples", w.storedResults(), 0)
	for _, r := range w.runs() {
		if err := w.store.PutPoints(t.Context(), store.RunPoints{PointRun: store.PointRun{Run: r.ID, Complete: true}}); err != nil {
			t.Fatal(err)
		}
	}
	g.rollUp(id)
	want(t, "documents", w.storedResults(), 1)
	sameResults(t, "results", g.cellResults(id), before)
}

func TestResultsOfDeletedRunsAreNotShown(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	id := g.put(descriptor(sixCells)).ID
	g.runToEnd(id)
	w.summarise(func(store.Run) float64 { return 1 })
	g.rollUp(id)
	for _, c := range w.newGateway(forgetful{w.store}, w).cellResults(id) {
		want(t, "repetitions of "+c.Name, c.Succeeded, 0)
	}
}

func TestDamagedResultsAreReadFromTheRuns(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	id := g.put(descriptor(sixCells)).ID
	g.runToEnd(id)
	w.summarise(func(store.Run) float64 { return 1 })
	before := g.cellResults(id)
	if err := store.Create(t.Context(), w.store, store.KindSetRollup, id+"!0-6", map[string]any{"format": 9, "cells": "AAAA"}); err != nil {
		t.Fatal(err)
	}
	sameResults(t, "results", g.cellResults(id), before)
	g.rollUp(id)
	reads := &countingReads{Memory: w.store}
	sameResults(t, "results that are stored anew", w.newGateway(reads, w).cellResults(id), before)
	want(t, "lists of runs and reads of summaries", reads.n, 0)
}

// A rollupStorm does things to a set in any order.
type rollupStorm struct {
	*fixture

	rt   *rapid.T
	g    *gateway
	id   string
	bare map[string]bool // runs without samples
}

// TestStoredResultsAreNeverStale does things to a set in any order and looks at the results after
// each: they are those that are read from the runs.
func TestStoredResultsAreNeverStale(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newFixture(t)
		s := &rollupStorm{fixture: w, rt: rt, g: w.gateway(), bare: make(map[string]bool)}
		live := w.newGateway(unstored{w.store}, w)
		text := rapid.SampledFrom([]string{
			"repetitions = 2\nwarmup = 1\nmax_parallel = 3", "repetitions = 2\non_failure = \"stop\"", "max_parallel = 2\norder = \"random\"\nseed = 7\nrepetitions = 2",
			"[sweep.stop_when]\nmetric = \"m\"\nhalf_width = \"40%\"\nmin = 6\nmax = 8",
		}).Draw(rt, "sweep")
		s.id = s.g.put(descriptor(text + "\n[sweep.product]\nsize = [\"1K\"]\nn = [1, 2, 3]")).ID
		rt.Repeat(map[string]func(*rapid.T){
			"pass":      func(*rapid.T) { s.g.pass() },
			"end":       s.end,
			"summarise": s.summarise,
			"cancel":    func(*rapid.T) { _, _ = s.g.Cancel(t.Context(), "ann", s.id, "ann") },
			"resume":    func(*rapid.T) { _, _ = s.g.Resume(t.Context(), "ann", s.id) },
			"wait":      func(rt *rapid.T) { w.wait(time.Duration(rapid.IntRange(1, 20).Draw(rt, "minutes")) * time.Minute) },
			"roll up":   func(*rapid.T) { s.g.rollUp(s.id) },
			"restart":   func(*rapid.T) { s.g = w.gateway(); w.wait(time.Minute) },
			"":          func(*rapid.T) { sameResults(t, "results", s.g.cellResults(s.id), live.cellResults(s.id)) },
		})
	})
}

// end ends some of the active runs.
func (s *rollupStorm) end(rt *rapid.T) {
	for _, r := range s.active() {
		outcome := rapid.SampledFrom([]event.Outcome{event.Succeeded, event.Succeeded, event.Failed, ""}).Draw(rt, "outcome")
		if r.Phase == event.PhaseCanceling && outcome != "" {
			outcome = event.Canceled
		}
		if outcome != "" {
			s.finish(r, outcome)
		}
	}
}

// summarise does for some runs that have ended what metrics-pusher may do next.
func (s *rollupStorm) summarise(rt *rapid.T) {
	ctx := s.t.Context()
	for _, r := range s.runs() {
		if r.Phase != event.PhaseFinished || s.bare[r.ID] || rapid.Bool().Draw(rt, "later") {
			continue
		}
		if rapid.IntRange(0, 3).Draw(rt, "samples") == 0 {
			if _, err := s.store.Doc(ctx, store.KindSummary, r.ID); err != nil {
				s.bare[r.ID] = true
				_ = s.store.PutPoints(ctx, store.RunPoints{PointRun: store.PointRun{Run: r.ID, Complete: true}})
			}
			continue
		}
		next := store.Summaries{Run: r.ID, Complete: rapid.Bool().Draw(rt, "complete"), Summaries: []store.Summary{
			{Metric: "m", Unit: "ms", N: 10, Median: store.Float(rapid.IntRange(1, 9).Draw(rt, "median"))},
		}}
		_, err := store.Update(ctx, s.store, store.KindSummary, r.ID, func(is store.Summaries, _ bool) (store.Summaries, bool, error) {
			return next, !is.Complete, nil
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// laggingLists is a store whose lists of runs do not show a run yet.
type laggingLists struct {
	*storetest.Memory

	hidden string
}

func (s laggingLists) Runs(ctx context.Context, f store.RunFilter, token string, limit int) ([]store.Run, string, error) {
	runs, next, err := s.Memory.Runs(ctx, f, token, limit)
	return slices.DeleteFunc(runs, func(r store.Run) bool { return r.ID == s.hidden }), next, err
}

func TestACellWhoseLastRunIsNotListedYetIsNotStored(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	id := g.put(descriptor("repetitions = 2\n[sweep.product]\nsize = [\"1K\"]\nn = [1]")).ID
	g.runToEnd(id)
	w.summarise(func(store.Run) float64 { return 1 })
	lagging := w.newGateway(laggingLists{w.store, w.runs()[1].ID}, w)
	lagging.rollUp(id)
	want(t, "documents", w.storedResults(), 0)
	w.wait(10 * time.Minute)
	lagging.rollUp(id)
	want(t, "documents once all runs must be listed", w.storedResults(), 1)
}

// begin has the Runner of the gateway run until the end of the test.
func (g *gateway) begin() {
	ctx, stop := context.WithCancel(g.w.t.Context())
	var runner sync.WaitGroup
	g.w.t.Cleanup(func() {
		stop()
		runner.Wait()
	})
	runner.Go(func() { _ = g.Run(ctx) })
}

func TestTheRunnerStoresTheResultsOfItsSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		g := w.gateway()
		id := g.put(descriptor(sixCells)).ID
		g.begin()
		for g.get(id).State != set.StateFinished {
			w.wait(2 * time.Second)
			time.Sleep(2 * time.Second)
			w.finishRuns(event.Succeeded)
		}
		w.summarise(func(store.Run) float64 { return 1 })
		w.wait(time.Minute)
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "documents", w.storedResults(), 1)
	})
}

func TestAReadOfRunsHasTheRunnerStoreTheResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		g := w.gateway()
		id := g.put(descriptor(sixCells)).ID
		g.runToEnd(id)
		w.summarise(func(store.Run) float64 { return 1 })
		later := w.gateway()
		later.begin()
		w.wait(time.Hour)
		later.cellResults(id)
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "documents", w.storedResults(), 1)
	})
}
