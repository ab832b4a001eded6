package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// sweep returns a descriptor with that cron rule, the given keys in its table schedule,
// and a sweep of two cells.
func sweep(cron, table string) string {
	text := strings.Replace(descriptor(cron, table), `"true"`, `"true {{size}}"`, 1)
	return text + "[sweep]\n[sweep.product]\nsize = [1, 2]\n"
}

// allSets returns all sets, in the order of their firing times.
func (g *gateway) allSets() []set.Set {
	g.w.t.Helper()
	all, err := g.sets.List(g.w.t.Context(), "", 1000, func(set.Set) bool { return true })
	if err != nil {
		g.w.t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b set.Set) int { return a.Firing.Compare(b.Firing) })
	return all
}

// firedSets returns the firing times of the sets, and their states.
func (g *gateway) firedSets() string {
	g.w.t.Helper()
	var words []string
	for _, s := range g.allSets() {
		words = append(words, s.Firing.Format("15:04")+" "+string(s.State))
	}
	return strings.Join(words, ", ")
}

// runSets submits the runs of all sets, and ends them, until no set changes any more.
func (g *gateway) runSets() {
	g.w.t.Helper()
	before := g.w.clock()
	for range 20 {
		g.w.setTime(g.w.clock().Add(2 * time.Second)) // every pass looks at all runs
		if _, err := g.setRunner.Reconcile(g.w.t.Context()); err != nil {
			g.w.t.Fatal(err)
		}
		g.w.finishSetRuns()
	}
	g.w.setTime(before)
}

// finishSetRuns ends every active run of a set.
func (w *fixture) finishSetRuns() {
	w.t.Helper()
	for _, run := range w.setRuns() {
		if run.Phase == event.PhaseFinished {
			continue
		}
		h := event.NewHeader("end "+run.ID, run.ID, run.Namespace, run.Owner, w.clock())
		h.Lineage = run.Lineage
		outcome := event.Succeeded
		if run.Phase == event.PhaseCanceling {
			outcome = event.Canceled
		}
		w.project(w.t.Context(), event.Finished{Header: h, Outcome: outcome, Message: "done"})
	}
}

// setRuns returns all runs of sets.
func (w *fixture) setRuns() []store.Run {
	w.t.Helper()
	runs, _, err := w.store.Runs(w.t.Context(), store.RunFilter{}, "", 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(runs, func(r store.Run) bool { return r.Set == "" })
}

func TestAFiringOfADescriptorWithASweepIsASetThatKnowsItsSchedule(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("nightly", sweep("*/10 * * * *", ""))
	for _, at := range []string{"10:00", "10:00:01", "10:10"} {
		g.reconcileAt(at)
		g.runSets()
	}
	want(t, "fired", g.firedSets(), "10:00 finished, 10:10 finished")
	want(t, "runs of firings", w.firedRuns(), "")
	want(t, "runs of sets", fmt.Sprint(len(w.setRuns())), "4")
	for _, one := range g.allSets() {
		if one.Schedule != s.ID || one.Owner != "ann" || one.Labels["task_name"] != "t" || one.Outcome != event.Succeeded {
			t.Errorf("set %+v", one)
		}
	}
	for _, run := range w.setRuns() {
		if run.Set == "" || run.Cell == "" || run.Schedule != "" {
			t.Errorf("run %+v", run)
		}
	}
	want(t, "history", history(t, g, s.ID), "10:10 set finished\n10:00 set finished")
	want(t, "missed", w.missedFirings(), "")
}

func TestASetThatHasNotEndedIsAnActiveFiring(t *testing.T) {
	for concurrency, tt := range map[string]struct{ fired, history string }{
		"allow":   {"10:00 running, 10:10 running", "10:10 set running\n10:00 set running missed"},
		"forbid":  {"10:00 running", "10:10 Overlap missed\n10:00 set running missed"},
		"replace": {"10:00 canceling, 10:10 running", "10:10 set running\n10:00 set canceling missed"},
	} {
		t.Run(concurrency, func(t *testing.T) {
			w := newFixture(t)
			g := w.gateway()
			s := g.put("n", sweep("*/10 * * * *", fmt.Sprintf("concurrency = %q", concurrency)))
			g.reconcileAt("10:00")
			g.reconcileAt("10:10")
			want(t, "fired", g.firedSets(), tt.fired)
			want(t, "history", history(t, g, s.ID), tt.history)
			first := g.allSets()[0].ID
			if !strings.Contains(w.missedFirings(), "10:00 set "+first+" had not ended when its schedule was to fire again") {
				t.Errorf("said %q", w.missedFirings())
			}
			if concurrency == "forbid" && !strings.Contains(w.missedFirings(), "10:10 a set of an earlier firing went on ("+first+"), and schedule.concurrency is forbid") {
				t.Errorf("said %q", w.missedFirings())
			}
			g.runSets()
			g.reconcileAt("10:20")
			if all := g.allSets(); all[len(all)-1].Firing.Format("15:04") != "10:20" {
				t.Errorf("after their end: %s", g.firedSets())
			}
		})
	}
}

// resumeFirst has firings make sets until the log has dropped the first, which a user had canceled, and resumes that one.
func (g *gateway) resumeFirst(concurrency string) (s schedule.Schedule, first string) {
	g.w.t.Helper()
	s = g.put("n", sweep("*/10 * * * *", fmt.Sprintf("history = 1\nconcurrency = %q", concurrency)))
	g.reconcileAt("10:00")
	first = g.allSets()[0].ID
	if _, err := g.sets.Cancel(g.w.t.Context(), "", first, "ann"); err != nil {
		g.w.t.Fatal(err)
	}
	g.runSets()
	g.reconcileAt("10:10")
	g.runSets()
	g.reconcileAt("10:20")
	g.runSets()
	if _, err := g.sets.Resume(g.w.t.Context(), "", first); err != nil {
		g.w.t.Fatal(err)
	}
	return s, first
}

func TestASetThatIsResumedIsAnActiveFiringAgain(t *testing.T) {
	for concurrency, tt := range map[string]struct{ fired, history string }{
		"allow": {
			"10:00 running, 10:10 finished, 10:20 finished, 10:30 running",
			"10:30 set running\n10:20 set finished\n10:00 set running",
		},
		"forbid": {
			"10:00 running, 10:10 finished, 10:20 finished",
			"10:30 Overlap missed\n10:00 set running",
		},
		"replace": {
			"10:00 canceling, 10:10 finished, 10:20 finished, 10:30 running",
			"10:30 set running\n10:20 set finished\n10:00 set canceling",
		},
	} {
		t.Run(concurrency, func(t *testing.T) {
			w := newFixture(t)
			g := w.gateway()
			s, _ := g.resumeFirst(concurrency)
			want(t, "history", history(t, g, s.ID), "10:20 set finished\n10:00 set running")
			g = w.gateway() // one that has resumed nothing itself
			g.reconcileAt("10:30")
			want(t, "fired", g.firedSets(), tt.fired)
			want(t, "history", history(t, g, s.ID), tt.history)
		})
	}
}

func TestADeletedScheduleCancelsASetThatWasResumed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.resumeFirst("allow")
	for i, wanted := range []string{"true 0 1", "false 0 0"} {
		existed, runs, sets := g.deleteAndCancel()
		want(t, fmt.Sprint("time ", i), fmt.Sprint(existed, runs, sets), wanted)
	}
	want(t, "sets", g.firedSets(), "10:00 canceling, 10:10 finished, 10:20 finished")
}

func TestATriggerThatForbidsTwoIsRefusedWhileAResumedSetGoesOn(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s, first := g.resumeFirst("forbid")
	_, _, err := g.Trigger(t.Context(), "ann", s.ID, "k")
	if active := new(schedule.ActiveRunError); !errors.As(err, &active) || active.Execution.Set != first {
		t.Errorf("while set %s goes on: %v", first, err)
	}
}

// A gateway crashes before or after each of its effects, and another gateway continues.
func TestAFiringIsOneSetWhereverItsGatewayDies(t *testing.T) {
	for _, concurrency := range []string{"allow", "forbid", "replace"} {
		for p := range crashtest.Points() {
			w := newFixture(t)
			w.gateway().put("n", sweep("*/10 * * * *", fmt.Sprintf("concurrency = %q", concurrency)))
			w.setClock("10:00")
			_, _ = w.crashingGateway(p).Reconcile(t.Context()) // the gateway may crash
			w.setClock("10:00:20")
			second := w.gateway()
			_, _ = second.Reconcile(t.Context()) // the crashed gateway may still hold the lease
			second.reconcileAt("10:00:40")
			second.runSets()
			second.reconcileAt("10:10")
			second.runSets()
			want(t, fmt.Sprintf("%s, %s", concurrency, p), second.firedSets(), "10:00 finished, 10:10 finished")
			want(t, fmt.Sprintf("%s, %s: runs", concurrency, p), fmt.Sprint(len(w.setRuns())), "4")
		}
	}
}

// A gateway crashes while it makes a set, and the next firing comes before another gateway
// has recorded that.
func TestASetThatACrashedGatewayMadeIsNotOverlooked(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		first := w.gateway()
		first.put("n", sweep("*/10 * * * *", `concurrency = "replace"`))
		w.setClock("10:00")
		_, _ = w.crashingGateway(p).Reconcile(t.Context()) // the gateway may crash
		second := w.gateway()
		second.reconcileAt("10:10")
		second.reconcileAt("10:10:20")
		unfinished := 0
		for _, s := range second.allSets() {
			if s.State == set.StateRunning {
				unfinished++
			}
		}
		want(t, p.String()+": "+second.firedSets(), fmt.Sprint(unfinished), "1")
	}
}

func TestAFiringIsOneSetHoweverManyClocksFire(t *testing.T) {
	w := newFixture(t)
	w.gateway().put("n", sweep("* * * * *", `missed = "all"`))
	w.setClock("10:03:30")
	var wg sync.WaitGroup
	for i := range 4 {
		g := w.splitBrainGateway(fmt.Sprint(i))
		wg.Go(func() {
			for range 3 {
				if _, err := g.Reconcile(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want(t, "fired", w.gateway().firedSets(), "10:00 running, 10:01 running, 10:02 running, 10:03 running")
}

// A gateway dies after it has made the run or the set of a firing, and the descriptor
// changes before another one repeats the firing.
func TestAFiringIsOneRunOrOneSetEvenIfTheDescriptorChangesInBetween(t *testing.T) {
	plain, swept := descriptor("*/10 * * * *", ""), sweep("*/10 * * * *", "")
	for name, tt := range map[string]struct{ before, after, runs, sets string }{
		"a sweep is added":   {plain, swept, "10:00 goes on", ""},
		"a sweep is removed": {swept, plain, "", "10:00 running"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			g := w.gateway()
			s := g.put("n", tt.before)
			g.reconcileAt("10:00")
			if err := w.store.DeleteDoc(t.Context(), store.Doc{Kind: store.KindFirings, Key: s.ID}); err != nil { // as if the gateway had died before it wrote this
				t.Fatal(err)
			}
			g.put("n", tt.after)
			w.setClock("10:00:30")
			if _, err := w.splitBrainGateway("x").Reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(t, "runs", w.firedRuns(), tt.runs)
			want(t, "sets", g.firedSets(), tt.sets)
		})
	}
}

func TestATriggerMakesOneSetForEachKey(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	w.setClock("10:00:30")
	s := g.put("n", sweep("@hourly", `concurrency = "forbid"`))
	w.setClock("10:07")
	first, err := g.api().TriggerSchedule(t.Context(), &baiv1.TriggerScheduleRequest{Schedule: "n", Owner: "ann", IdempotencyKey: "k"})
	if err != nil || first.GetSetId() == "" || first.GetRunId() != "" || first.GetRepeated() {
		t.Fatal(first, err)
	}
	again, repeated, err := g.Trigger(t.Context(), "ann", s.ID, "k")
	if err != nil || !repeated || again.Set != first.GetSetId() {
		t.Errorf("%s, %t, %v, want %s again", again, repeated, err, first.GetSetId())
	}
	_, err = g.api().TriggerSchedule(t.Context(), &baiv1.TriggerScheduleRequest{Schedule: "n", Owner: "ann"})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "set "+first.GetSetId()+" of the schedule goes on") {
		t.Errorf("while it goes on: %v", err)
	}
	g.reconcileAt("11:00")
	g.runSets()
	g.reconcileAt("12:00")
	g.runSets()
	want(t, "history", history(t, g, s.ID), "12:00 set finished\n11:00 Overlap missed\n10:07 set finished")
}

func TestATriggerThatDiesAnywhereIsOneSet(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.gateway().put("n", sweep("*/10 * * * *", `concurrency = "forbid"`))
		w.setClock("10:05")
		_, _, _ = w.crashingGateway(p).Trigger(t.Context(), "ann", "n", "k") // the gateway may crash
		g := w.gateway()
		w.setClock("10:06")
		if _, _, err := g.Trigger(t.Context(), "ann", "n", "k"); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		if _, _, err := g.Trigger(t.Context(), "ann", "n", "other"); !errors.As(err, new(*schedule.ActiveRunError)) {
			t.Errorf("%s: a second one: %v", p, err)
		}
		want(t, p.String(), fmt.Sprint(len(g.allSets())), "1")
	}
}

func TestABackfillMakesExactlyTheSetsThatAreMissing(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		g := w.gateway()
		g.put("n", sweep("0 * * * *", ""))
		w.setClock("10:00")
		g.reconcileAt("10:00")
		w.setClock("10:30")
		req := &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(clock("07:30"))}
		got, err := g.api().BackfillSchedule(t.Context(), req)
		if err != nil || len(got.GetMissing()) != 2 || got.GetPresent() != 1 {
			t.Fatalf("%s: %v, %v", p, got, err)
		}
		_, _ = w.crashingGateway(p).Reconcile(t.Context()) // the gateway may crash
		w.setClock("10:50")
		second := w.gateway()
		for range 3 {
			second.reconcileAt("10:50")
		}
		want(t, p.String(), second.firedSets(), "08:00 running, 09:00 running, 10:00 running")
		if got, err := second.api().BackfillSchedule(t.Context(), req); err != nil || len(got.GetMissing()) != 0 || got.GetPresent() != 3 {
			t.Errorf("%s: again: %v, %v", p, got, err)
		}
	}
}

func TestABackfillOfSetsThatForbidsTwoMakesOneAfterAnother(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put("n", sweep("0 * * * *", "concurrency = 'forbid'"))
	if _, err := g.Pause(t.Context(), "ann", "n", "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.api().BackfillSchedule(t.Context(), &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(clock("08:00"))}); err != nil {
		t.Fatal(err)
	}
	for i, fired := range []string{"08:00 running", "08:00 finished, 09:00 running", "08:00 finished, 09:00 finished"} {
		for range 2 {
			g.reconcileAt(fmt.Sprintf("10:%02d", i))
		}
		want(t, "fired", g.firedSets(), fired)
		g.runSets()
	}
}

func TestHistoryOfSetsIsAsLongAsAsked(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", sweep("* * * * *", "history = 3"))
	for i := range 6 {
		g.reconcileAt(fmt.Sprintf("10:%02d", i))
		g.runSets()
	}
	want(t, "history", history(t, g, s.ID), "10:05 set finished\n10:04 set finished\n10:03 set finished")
	l, _, err := store.Get[struct{ Sets []any }](t.Context(), w.store, store.KindFirings, s.ID+"!sets")
	want(t, "sets in the log", fmt.Sprint(len(l.Sets), err), "4 <nil>") // the last one had not finished when it was added
}

func TestASweepThatCannotBeRunAnyMoreIsMissed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", sweep("*/10 * * * *", ""))
	docs, err := w.store.Docs(t.Context(), store.KindScheduleVersion, "", 10)
	if err != nil || len(docs) != 1 {
		t.Fatal(docs, err)
	}
	d := docs[0]
	d.Value = []byte(strings.Replace(string(d.Value), "cpus = 1", "cpus = 0", 1)) // as if the rules were stricter now
	if _, err := w.store.ReplaceDoc(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	g.reconcileAt("10:00")
	want(t, "history", history(t, g, s.ID), "10:00 Refused missed")
	want(t, "sets", g.firedSets(), "")
}

func TestTheSetsOfAScheduleAreListed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	first, other := g.put("n", sweep("*/10 * * * *", "")), g.put("m", sweep("*/10 * * * *", ""))
	g.reconcileAt("10:00")
	for _, id := range []string{first.ID, other.ID} {
		got, err := baiv1.NewSetServiceClient(g.connect()).ListSets(t.Context(), &baiv1.ListSetsRequest{ScheduleId: id})
		if err != nil || len(got.GetSets()) != 1 || got.GetSets()[0].GetScheduleId() != id || !got.GetSets()[0].GetFiringTime().AsTime().Equal(clock("10:00")) {
			t.Errorf("of %s: %v, %v", id, got, err)
		}
	}
}

// deleteAndCancel deletes the schedule n with its runs, in pages, and returns how many runs and
// sets were canceled.
func (g *gateway) deleteAndCancel() (existed bool, runs, sets int32) {
	g.w.t.Helper()
	client := g.api()
	for token := ""; ; {
		got, err := client.DeleteSchedule(g.w.t.Context(), &baiv1.DeleteScheduleRequest{Schedule: "n", Owner: "ann", CancelRuns: true, PageToken: token})
		if err != nil {
			g.w.t.Fatal(err)
		}
		existed = existed || got.GetExisted()
		runs, sets = runs+got.GetCanceledRuns(), sets+got.GetCanceledSets()
		if token = got.GetNextPageToken(); token == "" {
			return existed, runs, sets
		}
	}
}

func TestADeletedScheduleCancelsItsRunsAndSetsIfAsked(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put("n", descriptor("*/10 * * * *", ""))
	g.reconcileAt("10:00")
	w.finishRuns()
	g.reconcileAt("10:10")
	g.put("n", sweep("*/10 * * * *", ""))
	g.reconcileAt("10:20")
	other := g.put("other", descriptor("*/30 * * * *", ""))
	g.reconcileAt("10:30")
	for i, wanted := range []string{"true 1 2", "false 0 0", "false 0 0"} {
		existed, runs, sets := g.deleteAndCancel()
		want(t, fmt.Sprint("time ", i), fmt.Sprint(existed, runs, sets), wanted)
	}
	want(t, "sets", g.firedSets(), "10:20 canceling, 10:30 canceling")
	for _, run := range w.runs() {
		if ended := run.Firing.Equal(clock("10:00")); !ended && (run.Schedule == other.ID) == (run.Phase == event.PhaseCanceling) {
			t.Errorf("run %+v", run)
		}
	}
	g.put("n", descriptor("*/10 * * * *", ""))
	g.reconcileAt("10:40")
	got, err := g.api().DeleteSchedule(t.Context(), &baiv1.DeleteScheduleRequest{Schedule: "n", Owner: "ann", CancelRuns: true, PageToken: "x"})
	if err != nil || got.GetExisted() || got.GetCanceledRuns() != 0 {
		t.Errorf("the next page, after it was submitted again: %v, %v", got, err)
	}
}

func TestADeletedScheduleCancelsItsRunsInPages(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put("n", descriptor("* * * * *", `missed_window = "24h"`+"\nmissed = 'all'"))
	for range 45 {
		g.reconcileAt("17:00")
	}
	all := len(w.runs())
	first, err := g.api().DeleteSchedule(t.Context(), &baiv1.DeleteScheduleRequest{Schedule: "n", Owner: "ann", CancelRuns: true})
	if err != nil || first.GetCanceledRuns() != 200 || first.GetNextPageToken() == "" {
		t.Fatalf("%v, %v", first, err)
	}
	if _, err := g.api().DeleteSchedule(t.Context(), &baiv1.DeleteScheduleRequest{Schedule: "n", Owner: "ann", CancelRuns: true, PageToken: "x"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a token of nobody: %v", err)
	}
	_, runs, _ := g.deleteAndCancel()
	want(t, "the others", fmt.Sprint(runs), fmt.Sprint(all-200))
	for _, run := range w.runs() {
		if run.Phase != event.PhaseCanceling {
			t.Fatalf("run %+v", run)
		}
	}
}

func TestADeletedScheduleCancelsARunWithoutAProjectionOnce(t *testing.T) {
	w := newFixture(t)
	w.noProjection = true
	g := w.gateway()
	g.put("n", descriptor("*/10 * * * *", ""))
	g.reconcileAt("10:00")
	for i, wanted := range []int32{1, 0} {
		_, runs, _ := g.deleteAndCancel()
		want(t, fmt.Sprint("time ", i), fmt.Sprint(runs), fmt.Sprint(wanted))
	}
	marks, err := w.store.Docs(t.Context(), store.KindCancel, "", 10)
	want(t, "cancel marks", fmt.Sprint(len(marks), err), "1 <nil>")
}

// A gateway crashes before or after each effect of a deletion, and another one repeats it.
func TestADeletedScheduleLeavesNoRunBehindWhereverAGatewayDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		g := w.gateway()
		g.put("n", descriptor("*/10 * * * *", ""))
		g.reconcileAt("10:00")
		g.put("n", sweep("*/10 * * * *", ""))
		g.reconcileAt("10:10")
		dying := w.crashingGateway(p)
		_, _ = dying.Delete(t.Context(), "ann", "n") // the gateway may crash
		_, _ = dying.CancelPage(t.Context(), "ann", "n", "", "ann")
		g.deleteAndCancel()
		want(t, p.String(), w.firedRuns()+", "+g.firedSets(), "10:00 canceled, 10:10 canceling")
	}
}

func TestARunOfAFiredSetCanBeRepeated(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put("n", sweep("*/10 * * * *", ""))
	g.reconcileAt("10:00")
	g.runSets()
	run := w.setRuns()[0]
	acc, err := g.submitter.Submit(t.Context(), submit.Request{Owner: "ann", Descriptor: []byte(run.Descriptor), RerunOf: run.ID})
	if err != nil || acc.Run == "" || acc.Submitted.Set != "" {
		t.Errorf("%+v, %v", acc, err)
	}
}
