package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestAnIntervalThatNobodyWasThereForIsMadeUpForAsAsked(t *testing.T) {
	for missed, fired := range map[string]string{
		"skip": "10:00, 10:40", "latest": "10:00, 10:40", "all": "10:00, 10:10, 10:20, 10:30, 10:40",
	} {
		t.Run(missed, func(t *testing.T) {
			w := newFixture(t)
			g := w.gateway()
			g.put("n", descriptor("*/10 * * * *", fmt.Sprintf("missed = %q", missed)))
			g.reconcileAt("10:00")
			w.finishRuns()
			g.reconcileAt("10:40:05")
			w.finishRuns()
			want(t, "fired", w.firedRuns(), fired)
			if missed == "all" {
				want(t, "missed", w.missedFirings(), "")
			} else if !strings.HasPrefix(w.missedFirings(), "10:10 3 firings, the first for 2026-05-04T10:10:00Z: the platform was away") {
				t.Errorf("said %q", w.missedFirings())
			}
		})
	}
}

func TestForbidMakesNoRunBesideAnother(t *testing.T) {
	for name, blind := range map[string]bool{"which is known": false, "which was just submitted": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.noProjection = blind
			g := w.gateway()
			s := g.put("n", descriptor("*/10 * * * *", `concurrency = "forbid"`))
			g.reconcileAt("10:00")
			g.reconcileAt("10:10")
			if got := strings.Count(w.missedFirings(), "\n") + 1; got != 2 || !strings.Contains(w.missedFirings(), "had not ended") || !strings.Contains(w.missedFirings(), "concurrency is forbid") {
				t.Errorf("said %q", w.missedFirings())
			}
			if blind {
				return
			}
			w.finishRuns()
			g.reconcileAt("10:20")
			want(t, "fired", w.firedRuns(), "10:00, 10:20 goes on")
			want(t, "history", history(t, g, s.ID), "10:20 submitted\n10:10 Overlap missed\n10:00 finished missed")
		})
	}
}

// history returns the firings of a schedule as text.
func history(t *testing.T, g *gateway, id string) string {
	t.Helper()
	got, err := g.api().GetSchedule(t.Context(), &baiv1.GetScheduleRequest{Schedule: id})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, f := range got.GetSchedule().GetFirings() {
		word := f.GetTime().AsTime().Format("15:04")
		if f.GetCount() > 1 {
			word += fmt.Sprintf("-%s (%d)", f.GetLastTime().AsTime().Format("15:04"), f.GetCount())
		}
		if f.GetSetId() != "" {
			word += " set"
		}
		if f.GetRunId()+f.GetSetId() != "" {
			word += " " + strings.ToLower(strings.TrimPrefix(f.GetPhase().String(), "PHASE_"))
		} else {
			word += " " + f.GetReason()
		}
		if f.GetMissed() {
			word += " missed"
		}
		words = append(words, word)
	}
	return strings.Join(words, "\n")
}

func TestReplaceCancelsTheRunThatGoesOn(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put("n", descriptor("*/10 * * * *", `concurrency = "replace"`))
	for _, at := range []string{"10:00", "10:10", "10:20"} {
		g.reconcileAt(at)
	}
	want(t, "fired", w.firedRuns(), "10:00 canceled, 10:10 canceled, 10:20 goes on")
}

func TestOneGatewayFiresAtATimeAndAnotherFollowsWhenItIsGone(t *testing.T) {
	w := newFixture(t)
	a, b := w.gateway(), w.gateway()
	a.put("n", descriptor("* * * * *", ""))
	a.reconcileAt("10:00")
	w.setClock("10:00:05")
	if _, err := b.Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("while another fires: %v", err)
	}
	b.reconcileAt("10:01") // a has crashed
	b.reconcileAt("10:02")
	if _, err := a.Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a gateway that comes back: %v", err)
	}
	w.finishRuns()
	want(t, "fired", w.firedRuns(), "10:00, 10:01, 10:02")
	want(t, "of runs that went on", fmt.Sprint(strings.Count(w.missedFirings(), "had not ended")), "2")
}

// A gateway crashes before or after each of its effects, and another gateway continues.
func TestAFiringIsOneRunWhereverItsGatewayDies(t *testing.T) {
	for _, concurrency := range []string{"allow", "forbid", "replace"} {
		for p := range crashtest.Points() {
			w := newFixture(t)
			first := w.gateway()
			first.put("n", descriptor("*/10 * * * *", fmt.Sprintf("concurrency = %q", concurrency)))
			dying := w.crashingGateway(p)
			w.setClock("10:00")
			_, _ = dying.Reconcile(t.Context()) // the gateway may crash
			w.setClock("10:00:20")
			second := w.gateway()
			_, _ = second.Reconcile(t.Context()) // the crashed gateway may still hold the lease
			second.reconcileAt("10:00:40")
			w.relayOutbox(second)
			w.finishRuns()
			second.reconcileAt("10:10")
			w.relayOutbox(second)
			w.finishRuns()
			want(t, fmt.Sprintf("%s, %s", concurrency, p), w.firedRuns(), "10:00, 10:10")
		}
	}
}

// A gateway crashes at each of its effects, and another one follows, whose settings refuse the
// descriptor.
func TestAFiringWhoseRunWasMadeIsNotRefusedLater(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.gateway().put("n", strings.Replace(descriptor("*/10 * * * *", ""), "[info]\n", "[info]\nnotify = [\"perf\"]\n", 1))
		dying := w.crashingGateway(p)
		w.setClock("10:00")
		_, _ = dying.Reconcile(t.Context()) // the gateway may crash
		made := w.docs(store.KindOutbox) + w.docs(store.KindSubmission)
		w.parser = parser.Parser{Receivers: map[string][]string{}}
		follower := w.gateway()
		for _, at := range []string{"10:00:20", "10:00:40"} {
			w.setClock(at)
			_, _ = follower.Reconcile(t.Context()) // the crashed gateway may still hold the lease
		}
		if missed, runs := w.missedFirings(), len(w.runs()); (missed == "") != (made > 0) || (runs == 1) != (made > 0) {
			t.Errorf("%s: %d documents of the run, then %d runs, and missed: %q", p, made, runs, missed)
		}
	}
}

// Two gateways run for five minutes. The one that fires crashes in between, at any of
// its effects.
func TestAMinutelyScheduleFiresFiveTimesInFiveMinutesWhicheverGatewayIsKilled(t *testing.T) {
	for effects := range 12 {
		w := newFixture(t)
		w.gateway().put("n", descriptor("* * * * *", ""))
		dying := w.crashingGateway(crashtest.New(effects+1, effects%2 == 0))
		other := w.gateway()
		for second := 0; second < 5*60; second += 2 {
			w.setClock(fmt.Sprintf("10:%02d:%02d", second/60, second%60))
			_, _ = dying.Reconcile(t.Context()) // the gateway may have crashed, or wait for the other one
			if _, err := other.Reconcile(t.Context()); err != nil && !errors.Is(err, store.ErrHeld) {
				t.Fatal(err)
			}
			if second%10 == 0 {
				w.relayOutbox(other)
				w.finishRuns()
			}
		}
		want(t, fmt.Sprintf("killed at effect %d", effects), w.firedRuns(), "10:00, 10:01, 10:02, 10:03, 10:04")
		want(t, "missed", w.missedFirings(), "")
	}
}

// docs returns the number of documents of a kind.
func (w *fixture) docs(kind store.Kind) int {
	w.t.Helper()
	docs, err := w.store.Docs(w.t.Context(), kind, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(docs)
}

// relayOutbox publishes the submissions that are only stored.
func (w *fixture) relayOutbox(g *gateway) {
	w.t.Helper()
	now := w.clock()
	w.setTime(now.Add(10 * time.Second))
	if err := g.submitter.RelayOutbox(w.t.Context()); err != nil {
		w.t.Error(err)
	}
	w.setTime(now)
}

// All gateways may fire at the same time. Whatever the leases are, each firing is one
// run.
func TestAFiringIsOneRunHoweverManyClocksFire(t *testing.T) {
	w := newFixture(t)
	first := w.gateway()
	first.put("n", descriptor("* * * * *", `missed = "all"`))
	w.setClock("10:08:30")
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
	w.finishRuns()
	want(t, "fired", w.firedRuns(), "10:00, 10:01, 10:02, 10:03, 10:04, 10:05, 10:06, 10:07, 10:08")
}

func TestADescriptorThatCannotBeRunAnyMoreIsMissedAndTheScheduleGoesOn(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", ""))
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
	g.reconcileAt("10:10")
	want(t, "history", history(t, g, s.ID), "10:10 Refused missed\n10:00 Refused missed")
	want(t, "said", fmt.Sprint(strings.Count(w.missedFirings(), "hardware.cpus")), "2")
}

func TestHistoryIsAsLongAsAsked(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", descriptor("* * * * *", "history = 3"))
	for i := range 10 {
		g.reconcileAt(fmt.Sprintf("10:%02d", i))
		w.finishRuns()
	}
	want(t, "history", history(t, g, s.ID), "10:09 finished\n10:08 finished\n10:07 finished")
	if n := w.records(s.ID); n > 4 {
		t.Errorf("%d records", n)
	}
}

func TestWhatIsSaidOfAMissedFiringIsOneEventHoweverOften(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", `missed = "skip"`))
	g.reconcileAt("10:05")
	var got []event.Status
	for _, ev := range w.published {
		if st, ok := ev.(event.Status); ok {
			got = append(got, st)
		}
	}
	if len(got) != 1 || got[0].Run != s.ID || got[0].Schedule != s.ID || !got[0].Firing.Equal(clock("10:00")) || got[0].Validate() != nil {
		t.Fatalf("said %+v", got)
	}
	if _, err := event.Encode(got[0]); err != nil {
		t.Error(err)
	}
}

func TestRunsThatGoOnAreListedBesideTheHistory(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", "history = 1"))
	g.reconcileAt("10:00")
	w.finishRuns()
	for _, at := range []string{"10:10", "10:20"} {
		g.reconcileAt(at)
	}
	want(t, "history", history(t, g, s.ID), "10:20 submitted\n10:10 submitted missed\n10:00 finished")
}

// slowStore is a store in which time passes whenever the current version of a schedule is read.
type slowStore struct {
	*storetest.Memory

	onRead func()
}

// Doc implements store.Getter.
func (s slowStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if kind == store.KindScheduleVersion {
		s.onRead()
	}
	return s.Memory.Doc(ctx, kind, key)
}

func TestAPassOverManySchedulesRenewsTheLease(t *testing.T) {
	w := newFixture(t)
	g := w.newGateway(slowStore{w.store, func() { w.setTime(w.clock().Add(2 * time.Second)) }}, w)
	for i := range 10 {
		g.put(fmt.Sprint("n", i), descriptor("*/10 * * * *", ""))
	}
	g.reconcileAt("10:00")
	if _, err := w.gateway().Reconcile(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("another gateway fires schedules: %v", err)
	}
	want(t, "fired", fmt.Sprint(len(w.runs())), "10")
}
