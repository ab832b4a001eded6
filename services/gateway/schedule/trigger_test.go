package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestATriggerFiresBesideTheTimesOnceForEachKey(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	w.setClock("10:00:30")
	s := g.put("n", descriptor("@hourly", `concurrency = "forbid"`))
	w.setClock("10:07")
	first, repeated, err := g.Trigger(t.Context(), "ann", "n", "k")
	if err != nil || repeated {
		t.Fatalf("%t, %v", repeated, err)
	}
	again, repeated, err := g.Trigger(t.Context(), "ann", s.ID, "k")
	if err != nil || !repeated || again != first {
		t.Errorf("%s, %t, %v, want %s again", again, repeated, err, first)
	}
	_, err = g.api().TriggerSchedule(t.Context(), &baiv1.TriggerScheduleRequest{Schedule: "n", Owner: "ann"})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), first.Run) {
		t.Errorf("while it goes on: %v", err)
	}
	g.reconcileAt("11:00")
	want(t, "while the triggered run goes on", w.firedRuns(), "10:07 goes on")
	w.finishRuns()
	g.reconcileAt("12:00")
	w.finishRuns()
	want(t, "fired", w.firedRuns(), "10:07, 12:00")
	want(t, "history", history(t, g, s.ID), "12:00 finished\n11:00 Overlap missed\n10:07 finished")
}

func TestATriggerAndAFiringOfTheSameSecondAreOneRunWhereNoTwoMayGoOn(t *testing.T) {
	for name, tt := range map[string]struct {
		concurrency string
		trigger     bool // trigger before the firing
		fired       string
	}{
		"forbid, and the trigger was first":  {"forbid", true, "10:00 goes on"},
		"forbid, and the firing was first":   {"forbid", false, "10:00 goes on"},
		"replace, and the trigger was first": {"replace", true, "10:00 canceled, 10:00 goes on"},
		"replace, and the firing was first":  {"replace", false, "10:00 canceled, 10:00 goes on"},
		"allow":                              {"allow", true, "10:00 goes on, 10:00 goes on"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.noProjection = true // a new run has no projection yet
			g, other := w.gateway(), w.gateway()
			g.put("n", descriptor("*/10 * * * *", fmt.Sprintf("concurrency = %q", tt.concurrency)))
			w.setClock("10:00")
			trigger := func() {
				if _, _, err := other.Trigger(t.Context(), "ann", "n", "k"); err != nil && !errors.As(err, new(*schedule.ActiveRunError)) {
					t.Error(err)
				}
			}
			if tt.trigger {
				trigger()
			}
			g.reconcileAt("10:00")
			if !tt.trigger {
				trigger()
			}
			w.projectAll()
			if got := sorted(w.firedRuns()); got != tt.fired {
				t.Errorf("fired %s, want %s", got, tt.fired)
			}
		})
	}
}

func sorted(words string) string {
	all := strings.Split(words, ", ")
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestTriggersAndFiringsAtOnceMakeOneRunWhereNoTwoMayGoOn(t *testing.T) {
	for range 20 {
		w := newFixture(t)
		w.noProjection = true
		g := w.gateway()
		g.put("n", descriptor("*/10 * * * *", `concurrency = "forbid"`))
		w.setClock("10:00")
		var all sync.WaitGroup
		for i := range 4 {
			other := w.gateway()
			all.Go(func() {
				if _, _, err := other.Trigger(t.Context(), "ann", "n", fmt.Sprint(i)); err != nil && !errors.As(err, new(*schedule.ActiveRunError)) {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			if _, err := g.Reconcile(t.Context()); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if _, err := g.Reconcile(t.Context()); err != nil { // a firing whose turn had not come
			t.Error(err)
		}
		w.projectAll()
		want(t, "fired", w.firedRuns(), "10:00 goes on")
	}
}

// unreadableKeys is a store whose first read of an idempotency key fails.
type unreadableKeys struct {
	*storetest.Memory

	failed bool
}

// Doc implements store.Getter.
func (s *unreadableKeys) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if kind == store.KindIdempotencyKey && !s.failed {
		s.failed = true
		return store.Doc{}, errors.New("the store is away")
	}
	return s.Memory.Doc(ctx, kind, key)
}

func TestARepeatedTriggerNeverCancelsItsOwnRun(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put("n", descriptor("@hourly", `concurrency = "replace"`))
	w.setClock("10:07")
	first, _, err := g.Trigger(t.Context(), "ann", "n", "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.newGateway(&unreadableKeys{Memory: w.store}, w).Trigger(t.Context(), "ann", "n", "k"); err == nil {
		t.Error("the trigger went on though it could not be looked up")
	}
	again, repeated, err := g.Trigger(t.Context(), "ann", "n", "k")
	if err != nil || !repeated || again != first {
		t.Errorf("%s, %t, %v, want %s again", again, repeated, err, first)
	}
	want(t, "fired", w.firedRuns(), "10:07 goes on")
}

func TestARunWhoseRecordsWereRemovedDoesNotBlockItsSchedule(t *testing.T) {
	w := newFixture(t)
	w.noProjection = true
	g := w.gateway()
	g.put("n", descriptor("@hourly", `concurrency = "forbid"`))
	w.setClock("10:07")
	if _, _, err := g.Trigger(t.Context(), "ann", "n", "k"); err != nil {
		t.Fatal(err)
	}
	if err := store.MarkForgotten(t.Context(), w.store, w.clock().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.Trigger(t.Context(), "ann", "n", "other"); err != nil {
		t.Error(err)
	}
}

func TestATriggerThatDiesAnywhereHoldsNothingUpForLong(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.gateway().put("n", descriptor("*/10 * * * *", `concurrency = "forbid"`))
		w.setClock("10:05")
		_, _, _ = w.crashingGateway(p).Trigger(t.Context(), "ann", "n", "k") // the gateway may crash
		w.checkTriggerAgain(p.String())
	}
}

// checkTriggerAgain repeats a trigger that failed a minute later, and then tries
// another trigger, which is refused.
func (w *fixture) checkTriggerAgain(when string) {
	w.t.Helper()
	g := w.gateway()
	w.setClock("10:06")
	if _, _, err := g.Trigger(w.t.Context(), "ann", "n", "k"); err != nil {
		w.t.Fatalf("%s: %v", when, err)
	}
	if _, _, err := g.Trigger(w.t.Context(), "ann", "n", "other"); !errors.As(err, new(*schedule.ActiveRunError)) {
		w.t.Errorf("%s: a second one: %v", when, err)
	}
	if n := len(w.runs()); n > 1 { // submit first has to complete the run, which is not projected yet
		w.t.Errorf("%s: %d runs", when, n)
	}
}
