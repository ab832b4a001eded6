package set_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/set/results"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// twelve is the places of two repetitions of sixCells.
const twelve = `size=1K,n=1 1
size=1K,n=1 2
size=1K,n=2 1
size=1K,n=2 2
size=1K,n=3 1
size=1K,n=3 2
size=1M,n=1 1
size=1M,n=1 2
size=1M,n=2 1
size=1M,n=2 2
size=1M,n=3 1
size=1M,n=3 2`

func TestASetRunsEachRepetitionOfEachCellOnce(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("repetitions = 2\nmax_parallel = 5" + sixCells))
	s = g.runToEnd(s.ID)
	want(t, "set", summary(s), "finished, 12 of 12 submitted, 0 active, 12 succeeded, 0 failed, 0 canceled: succeeded")
	want(t, "runs", w.places(), twelve)
	for _, r := range w.runs() {
		if r.Set != s.ID || r.Labels["task_name"] != "t" || r.Owner != "ann" || strings.Contains(r.Descriptor, "sweep") || strings.Contains(r.Descriptor, "{{") {
			t.Errorf("run %+v", r)
		}
	}
}

func TestWarmUpsComeFirstAndAreMarked(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("warmup = 1\nrepetitions = 1\nmax_parallel = 1\n[sweep.product]\nsize = [\"1K\"]\nn = [1]"))
	g.pass()
	want(t, "first", w.places(), "size=1K,n=1 1 warmup")
	g.runToEnd(s.ID)
	want(t, "all", w.places(), "size=1K,n=1 1\nsize=1K,n=1 1 warmup")
}

func TestNoMoreRunsAreActiveThanMaxParallel(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("max_parallel = 4" + sixCells))
	g.pass()
	want(t, "active", len(w.active()), 4)
	w.wait(time.Minute)
	w.finish(w.active()[0], event.Succeeded)
	g.pass()
	want(t, "active after an end", len(w.active()), 4)
	want(t, "set", summary(g.get(s.ID)), "running, 5 of 6 submitted, 4 active, 1 succeeded, 0 failed, 0 canceled")
	want(t, "times", g.get(s.ID).Times, set.Times{Runs: 1, Seconds: 60})
}

func TestARunThatHasEndedIsNoticedWithoutTheInterval(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("max_parallel = 1" + sixCells))
	g.pass()
	run := w.active()[0]
	w.finish(run, event.Succeeded)
	if _, err := g.Reconcile(t.Context()); err != nil { // no run is read
		t.Fatal(err)
	}
	want(t, "set", g.get(s.ID).Counts.Succeeded, 0)
	run, err := w.store.Run(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	g.RunEnded(run)
	if _, err := g.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "set that has heard of it", g.get(s.ID).Counts.Succeeded, 1)
}

func TestTheSameRequestIsTheSameSet(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	text := []byte(descriptor(sixCells))
	first, repeated, err := g.submit(submit.Request{Key: "k", Descriptor: text})
	if err != nil || repeated {
		t.Fatal(repeated, err)
	}
	second, repeated, err := g.submit(submit.Request{Key: "k", Descriptor: text, File: "another name of the file"})
	if err != nil || !repeated || second.ID != first.ID {
		t.Errorf("repeated: %s, %t, %v", second.ID, repeated, err)
	}
	var taken *submit.NotUniqueError
	if _, _, err = g.submit(submit.Request{Key: "k", Descriptor: []byte(descriptor("repetitions = 2" + sixCells))}); !errors.As(err, &taken) || taken.Field != "idempotency_key" {
		t.Errorf("another request under the key: %v", err)
	}
	for range 2 {
		if _, repeated, err = g.submit(submit.Request{Descriptor: text}); err != nil || repeated {
			t.Errorf("without a key: %t, %v", repeated, err)
		}
	}
	all, err := g.List(t.Context(), "", 100, func(set.Set) bool { return true })
	want(t, "sets", fmt.Sprint(len(all), err), "3 <nil>")
}

func TestANameIsThatOfOneSet(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	text := []byte(descriptor(sixCells))
	first, _, err := g.submit(submit.Request{Key: "k", Name: "n", Descriptor: text})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", "k"} {
		if s, repeated, err := g.submit(submit.Request{Key: key, Name: "n", Descriptor: text}); err != nil || !repeated || s.ID != first.ID {
			t.Errorf("under the same key: %s, %t, %v", s.ID, repeated, err)
		}
	}
	for _, key := range []string{"other", "other", ""} {
		_, _, err := g.submit(submit.Request{Key: key, Name: "n", Descriptor: text})
		if want := fmt.Sprintf("set %s has the name \"n\": choose another, or leave it empty", first.ID); err == nil || err.Error() != want {
			t.Errorf("under the key %q: %v", key, err)
		}
	}
	want(t, "found by its name", g.get("n").ID, first.ID)
	for _, ref := range []string{"none", "", "01KDVR00000000000000000000"} {
		var missing *set.MissingError
		if _, err := g.Find(t.Context(), "ann", ref); !errors.As(err, &missing) {
			t.Errorf("found %q: %v", ref, err)
		}
	}
}

func TestAFailureStopsASetThatAsksForThatAndItCanBeResumed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("max_parallel = 2\non_failure = \"stop\"" + sixCells))
	g.pass()
	w.finish(w.active()[0], event.Failed)
	g.pass()
	want(t, "set", summary(g.get(s.ID)), "stopping, 2 of 6 submitted, 1 active, 0 succeeded, 1 failed, 0 canceled")
	w.finishRuns(event.Succeeded)
	g.pass()
	s = g.get(s.ID)
	want(t, "set that has stopped", summary(s), "finished, 2 of 6 submitted, 0 active, 1 succeeded, 1 failed, 0 canceled: failed")
	if len(s.Failures) != 1 || s.Failures[0].Run == "" || !strings.HasPrefix(s.Failures[0].Cell, "size=1K,n=") || s.Failures[0].Message != "it ended" || s.Counts.Classes[event.ClassInfra] != 1 {
		t.Errorf("failures are %+v", s.Failures)
	}
	w.wait(time.Hour)
	g.pass() // closes the set
	if _, err := g.Resume(t.Context(), "ann", s.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "set that was resumed", summary(g.runToEnd(s.ID)), "finished, 6 of 6 submitted, 0 active, 5 succeeded, 1 failed, 0 canceled: failed")
	want(t, "runs", strings.Count(w.places(), "\n")+1, 6)
}

func TestACanceledSetEndsItsRunsAndMakesNoMore(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("max_parallel = 2" + sixCells))
	g.pass()
	for range 2 {
		if got, err := g.Cancel(t.Context(), "ann", s.ID, "bob"); err != nil || got.State != set.StateCanceling || got.CanceledBy != "bob" {
			t.Fatal(got, err)
		}
	}
	g.pass()
	for _, run := range w.active() {
		want(t, "phase", run.Phase, event.PhaseCanceling)
	}
	want(t, "set", summary(g.get(s.ID)), "canceling, 2 of 6 submitted, 2 active, 0 succeeded, 0 failed, 0 canceled")
	s = g.runToEnd(s.ID)
	want(t, "set that has ended", summary(s), "finished, 2 of 6 submitted, 0 active, 0 succeeded, 0 failed, 2 canceled: canceled")
	if _, err := g.Cancel(t.Context(), "ann", s.ID, "eve"); err != nil || g.get(s.ID).CanceledBy != "bob" {
		t.Errorf("canceled again: %v", err)
	}
	if _, err := g.Resume(t.Context(), "ann", s.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "set that was resumed", summary(g.runToEnd(s.ID)), "finished, 6 of 6 submitted, 0 active, 4 succeeded, 0 failed, 2 canceled: canceled")
	var state *set.StateError
	if _, err := g.Resume(t.Context(), "ann", s.ID); !errors.As(err, &state) {
		t.Errorf("resumed at its end: %v", err)
	}
}

func TestACanceledRunWithoutAProjectionIsCanceled(t *testing.T) {
	w := newFixture(t)
	w.noProjection = true
	g := w.gateway()
	s := g.put(descriptor("max_parallel = 2" + sixCells))
	g.pass()
	if _, err := g.Cancel(t.Context(), "ann", s.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	g.pass()
	marks, err := w.store.Docs(t.Context(), store.KindCancel, "", 10)
	want(t, "cancel marks", fmt.Sprint(len(marks), err), "2 <nil>")
}

func TestARefusedRunIsAFailureAndTheSetGoesOn(t *testing.T) {
	w := newFixture(t)
	w.scripts = fakeScripts{strings.Repeat("a", 64): {}}
	g := w.gateway()
	s, _, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(descriptor("max_parallel = 2" + sixCells)), Script: strings.Repeat("A", 64)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "pins", len(w.scripts[strings.Repeat("a", 64)]), 1)
	delete(w.scripts, strings.Repeat("a", 64)) // it is evicted
	s = g.runToEnd(s.ID)
	want(t, "set", summary(s), "finished, 6 of 6 submitted, 0 active, 0 succeeded, 6 failed, 0 canceled: failed")
	if len(s.Failures) != 6 || s.Failures[0].Run != "" || !strings.Contains(s.Failures[0].Message, "not kept here") || s.Failures[0].Cell != "size=1K,n=1" || s.Failures[0].Repetition != 1 {
		t.Errorf("failures are %+v", s.Failures)
	}
	if _, err := g.Resume(t.Context(), "ann", s.ID); err == nil {
		t.Error("it was resumed")
	}
}

func TestASetWhoseDescriptorHasNoPlanAnyMoreStops(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"because it is refused":       func(text string) string { return strings.Replace(text, "max_parallel", "most_parallel", 1) },
		"because it has other runs":   func(text string) string { return strings.Replace(text, "max_parallel", "repetitions", 1) },
		"because it has no sweep now": func(text string) string { return strings.ReplaceAll(text, "[sweep", "[swoop") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			g := w.gateway()
			s := g.put(descriptor("max_parallel = 2" + sixCells))
			docs, err := w.store.Docs(t.Context(), store.KindSetRequest, "", 10)
			if err != nil || len(docs) != 1 {
				t.Fatal(docs, err)
			}
			docs[0].Value = []byte(change(string(docs[0].Value)))
			if _, err := w.store.ReplaceDoc(t.Context(), docs[0]); err != nil {
				t.Fatal(err)
			}
			g.pass()
			s = g.get(s.ID)
			if s.State != set.StateFinished || s.Outcome != event.Failed || !strings.HasPrefix(s.Message, "no more runs can be made: ") {
				t.Errorf("%s: %s", summary(s), s.Message)
			}
			want(t, "runs", len(w.runs()), 0)
			var state *set.StateError
			if _, _, err := g.Cells(t.Context(), s, "", 10); !errors.As(err, &state) {
				t.Errorf("cells: %v", err)
			}
		})
	}
}

// A gateway makes runs and crashes at each of its effects. The next one is of a release by
// whose rules the descriptor has no plan.
func TestRunsThatWereMadeAreNotOverlookedWhenTheDescriptorHasNoPlanAnyMore(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		s := w.gateway().put(descriptor("max_parallel = 3" + sixCells))
		dying := w.crashingGateway(p)
		for range 3 {
			_, _ = dying.Reconcile(t.Context()) // the gateway may crash
		}
		docs, err := w.store.Docs(t.Context(), store.KindSetRequest, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		docs[0].Value = []byte(strings.Replace(string(docs[0].Value), "max_parallel", "most_parallel", 1))
		if _, err := w.store.ReplaceDoc(t.Context(), docs[0]); err != nil {
			t.Fatal(err)
		}
		w.wait(20 * time.Second) // the lease ends
		second := w.gateway()
		_ = second.submitter.RelayOutbox(t.Context())
		s = second.runToEnd(s.ID)
		want(t, p.String(), s.Outcome, event.Failed)
		want(t, p.String(), fmt.Sprint(len(w.active()), s.Counts.Failed, s.Counts.Succeeded), fmt.Sprint(0, 0, len(w.runs())))
		want(t, p.String(), len(w.runs()), s.Next-len(s.Withdrawn))
	}
}

func TestAFullStoreRefusesASetAndDelaysItsRuns(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	w.full = "the disk is full"
	var full *submit.StorageFullError
	if _, _, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(descriptor(sixCells))}); !errors.As(err, &full) {
		t.Errorf("a set: %v", err)
	}
	w.full = ""
	s := g.put(descriptor(sixCells))
	w.full = "the disk is full"
	var err error
	for more := true; more && err == nil; {
		more, err = g.Reconcile(t.Context())
	}
	if !errors.As(err, &full) {
		t.Errorf("a run: %v", err)
	}
	w.full = ""
	want(t, "set", summary(g.runToEnd(s.ID)), "finished, 6 of 6 submitted, 0 active, 6 succeeded, 0 failed, 0 canceled: succeeded")
}

// A gateway crashes before or after each of its effects, and another gateway continues.
func TestEachRunOfASetIsMadeOnceWhereverAGatewayDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		dying := w.crashingGateway(p)
		text := []byte(descriptor("repetitions = 2\nmax_parallel = 5" + sixCells))
		_, _, _ = dying.submit(submit.Request{Key: "k", Descriptor: text}) // the gateway may crash
		for more := true; more && !p.Dead(); {
			more, _ = dying.Reconcile(t.Context())
		}
		w.wait(20 * time.Second) // the lease ends
		second := w.gateway()
		s, _, err := second.submit(submit.Request{Key: "k", Descriptor: text})
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		s = second.runToEnd(s.ID)
		want(t, p.String(), summary(s), "finished, 12 of 12 submitted, 0 active, 12 succeeded, 0 failed, 0 canceled: succeeded")
		want(t, p.String(), w.places(), twelve)
	}
}

// A gateway crashes before or after each effect of a cancel, and another one continues.
func TestACanceledSetLeavesNoRunBehindWhereverAGatewayDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		dying := w.crashingGateway(p)
		second := w.gateway()
		s := second.put(descriptor("repetitions = 2\nmax_parallel = 5" + sixCells))
		for range 2 { // the runs are active, and not all of them submitted
			_, _ = dying.Reconcile(t.Context())
		}
		_, _ = dying.Cancel(t.Context(), "ann", s.ID, "ann")
		for more := true; more && !p.Dead(); {
			more, _ = dying.Reconcile(t.Context())
		}
		w.wait(20 * time.Second)
		if _, err := second.Cancel(t.Context(), "ann", s.ID, "ann"); err != nil {
			t.Fatal(err)
		}
		s = second.runToEnd(s.ID)
		want(t, p.String(), s.Outcome, event.Canceled)
		want(t, p.String(), len(w.active()), 0)
		want(t, p.String(), len(w.runs()), s.Next-len(s.Withdrawn))
		if _, err := second.Resume(t.Context(), "ann", s.ID); err != nil {
			t.Fatal(err)
		}
		s = second.runToEnd(s.ID)
		want(t, p.String(), s.Counts.Succeeded+s.Counts.Canceled, 12)
		want(t, p.String(), w.places(), twelve)
	}
}

func TestACancelSubmitsNoMoreRunsAndAResumeMakesThem(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("repetitions = 2" + sixCells))
	if _, err := g.Reconcile(t.Context()); err != nil { // the runs are active, and not submitted
		t.Fatal(err)
	}
	want(t, "active", len(g.get(s.ID).Active), 12)
	if _, err := g.Cancel(t.Context(), "ann", s.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	g.pass()
	want(t, "canceled", summary(g.get(s.ID)), "finished, 12 of 12 submitted, 0 active, 0 succeeded, 0 failed, 0 canceled: canceled")
	want(t, "runs", w.places(), "")
	want(t, "submitted", g.get(s.ID).Submitted(), 0)
	if _, err := g.Resume(t.Context(), "ann", s.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "resumed", summary(g.runToEnd(s.ID)), "finished, 12 of 12 submitted, 0 active, 12 succeeded, 0 failed, 0 canceled: succeeded")
	want(t, "runs of the resumed set", w.places(), twelve)
}

func TestACanceledSetEndsWhileTheStoreIsFull(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("max_parallel = 2" + sixCells))
	g.pass()
	w.full = "the disk is full"
	w.finish(w.active()[0], event.Succeeded)
	for range 3 {
		w.wait(2 * time.Second)
		_, _ = g.Reconcile(t.Context()) // a further run is active, and cannot be submitted
	}
	if _, err := g.Cancel(t.Context(), "ann", s.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	want(t, "set", summary(g.runToEnd(s.ID)), "finished, 3 of 6 submitted, 0 active, 1 succeeded, 0 failed, 1 canceled: canceled")
	w.full = ""
	if _, err := g.Resume(t.Context(), "ann", s.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "resumed", summary(g.runToEnd(s.ID)), "finished, 6 of 6 submitted, 0 active, 5 succeeded, 0 failed, 1 canceled: canceled")
}

// cancelToEnd cancels a set after the lease of another gateway has ended, waits for its end, and may resume it.
func (g *gateway) cancelToEnd(id string, resume bool) {
	g.w.t.Helper()
	g.w.wait(20 * time.Second)
	if _, err := g.Cancel(g.w.t.Context(), "ann", id, "ann"); err != nil {
		g.w.t.Fatal(err)
	}
	g.runToEnd(id)
	if !resume {
		return
	}
	if _, err := g.Resume(g.w.t.Context(), "ann", id); err != nil {
		g.w.t.Fatal(err)
	}
	g.pass()
}

// A gateway that takes itself for the leader is paused before each of its effects. Meanwhile
// the set is canceled, another gateway ends it, and it may be resumed.
func TestAPausedGatewayMakesNoRunOfASetThatWasCanceledMeanwhile(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		for p := range crashtest.Overtaken() {
			w := newFixture(t)
			paused := w.newGateway(p.Store(storetest.PrivateLeases{Memory: w.store, Suffix: "paused"}), p.Bus(w))
			second := w.gateway()
			s := second.put(descriptor("repetitions = 2\nmax_parallel = 3" + sixCells))
			p.OvertakeWith(func() { second.cancelToEnd(s.ID, resumed) })
			for range 3 {
				_, _ = paused.Reconcile(t.Context())
			}
			s = second.runToEnd(s.ID)
			second.pass()
			want(t, p.String(), len(w.active()), 0)
			want(t, p.String(), len(w.runs()), s.Counts.Succeeded+s.Counts.Canceled)
			want(t, p.String(), len(w.runs()), s.Next-len(s.Withdrawn))
		}
	}
}

func TestNoSetStaysOpenWhereverAGatewayDies(t *testing.T) {
	w := newFixture(t)
	text := []byte(descriptor(sixCells))
	for p := range crashtest.Points() {
		_, _, _ = w.crashingGateway(p).submit(submit.Request{Key: p.String(), Descriptor: text}) // the gateway may crash
	}
	g := w.gateway()
	for range 5 {
		g.pass()
		w.finishRuns(event.Succeeded)
	}
	w.wait(2 * time.Minute)
	g.pass()
	docs, err := w.store.Docs(t.Context(), store.KindOpenSet, "", 10)
	want(t, "open sets", fmt.Sprint(len(docs), err), "0 <nil>")
	unfinished, err := g.List(t.Context(), "", 100, func(s set.Set) bool { return s.State != set.StateFinished })
	want(t, "unfinished sets", fmt.Sprint(len(unfinished), err), "0 <nil>")
}

func TestOneGatewayRunsSetsAtATimeAndAnotherFollowsWhenItIsGone(t *testing.T) {
	w := newFixture(t)
	a, b := w.gateway(), w.gateway()
	s := a.put(descriptor("max_parallel = 1" + sixCells))
	a.pass()
	if _, err := b.Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("while another runs sets: %v", err)
	}
	w.wait(20 * time.Second)
	b.pass()
	if _, err := a.Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a gateway that comes back: %v", err)
	}
	b.runToEnd(s.ID)
	want(t, "runs", len(w.runs()), 6)
}

// Two gateways that both hold the lease make each run once.
func TestGatewaysThatBothHoldTheLeaseMakeEachRunOnce(t *testing.T) {
	w := newFixture(t)
	a, b := w.splitBrainGateway("a"), w.splitBrainGateway("b")
	s := a.put(descriptor("repetitions = 2\nmax_parallel = 5" + sixCells))
	for range 100 {
		w.wait(2 * time.Second)
		for _, g := range []*gateway{a, b, a} {
			if _, err := g.Reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.finishRuns(event.Succeeded)
	}
	want(t, "set", summary(a.get(s.ID)), "finished, 12 of 12 submitted, 0 active, 12 succeeded, 0 failed, 0 canceled: succeeded")
	want(t, "runs", w.places(), twelve)
}

func TestCellsComeInPagesWithTheirRuns(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("repetitions = 2" + sixCells))
	g.runToEnd(s.ID)
	var got []string
	for token, first := "", true; first || token != ""; first = false {
		cells, next, err := g.Cells(t.Context(), s, token, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			got = append(got, fmt.Sprintf("%d %s %d", c.Index, c.Name, len(c.Runs)))
		}
		got, token = append(got, "-"), next
	}
	want(t, "cells", strings.Join(got, "\n"), "0 size=1K,n=1 2\n1 size=1K,n=2 2\n2 size=1K,n=3 2\n3 size=1M,n=1 2\n-\n4 size=1M,n=2 2\n5 size=1M,n=3 2\n-")
	for _, token := range []string{"x", "6.", "-1.", "1", "0.x"} {
		var refused *results.TokenError
		if _, _, err := g.Cells(t.Context(), s, token, 4); !errors.As(err, &refused) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestACellWithManyRunsIsContinuedByTheNextPage(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(descriptor("[sweep.product]\nsize = [\"1K\"]\nn = [1, 2]"))
	for i := range 1500 {
		h := event.NewHeader(fmt.Sprint(i), fmt.Sprintf("run%04d", i), "default", "ann", w.clock())
		h.Set, h.Cell, h.Repetition = s.ID, "size=1K,n=1", i+1
		w.project(t.Context(), event.Submitted{Header: h})
	}
	var got []int
	for token, first := "", true; first || token != ""; first = false {
		cells, next, err := g.Cells(t.Context(), s, token, 50)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			got = append(got, c.Index, len(c.Runs))
		}
		token = next
	}
	want(t, "cells and their runs", fmt.Sprint(got), "[0 1000 0 500 1 0]")
}
