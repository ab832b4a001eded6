package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestABackfillMakesExactlyTheRunsThatAreMissing(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	w.setClock("10:30")
	s := g.put("n", descriptor("0 * * * *", ""))
	for _, at := range []string{"11:00", "12:00"} {
		g.reconcileAt(at)
		w.finishRuns()
	}
	day := &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(clock("00:00")), To: timestamppb.New(clock("00:00").AddDate(0, 0, 1))}
	w.setClock("12:30")
	for i, tt := range []struct{ missing, present int }{{11, 2}, {0, 13}, {0, 13}} {
		got, err := g.api().BackfillSchedule(t.Context(), day)
		if err != nil || len(got.GetMissing()) != tt.missing || int(got.GetPresent()) != tt.present {
			t.Errorf("time %d: %v, %v, want %+v", i, got, err, tt)
		}
		for range 5 {
			g.reconcileAt("12:30")
		}
		w.finishRuns()
		want(t, "fired", w.firedRuns(), "00:00, 01:00, 02:00, 03:00, 04:00, 05:00, 06:00, 07:00, 08:00, 09:00, 10:00, 11:00, 12:00")
	}
	if orders, err := w.store.Docs(t.Context(), store.KindBackfill, "", 10); err != nil || len(orders) != 0 {
		t.Errorf("left: %v, %v", orders, err)
	}
	want(t, "missed", w.missedFirings(), "")
	g.reconcileAt("13:00")
	w.finishRuns()
	want(t, "history", strings.SplitN(history(t, g, s.ID), "\n", 2)[0], "13:00 finished")
}

// span returns a request for a backfill from a time on, for a duration.
func span(from time.Time, d time.Duration) *baiv1.BackfillScheduleRequest {
	return &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(from), To: timestamppb.New(from.Add(d))}
}

// drainBackfills reconciles until no backfill is left, and finishes the active runs now
// and then. It returns the maximum number of active runs.
func (w *fixture) drainBackfills(g *gateway) (maxActive int) {
	w.t.Helper()
	for i := 0; ; i++ {
		orders, err := w.store.Docs(w.t.Context(), store.KindBackfill, "", 10)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(orders) == 0 {
			return maxActive
		}
		if _, err := g.Reconcile(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		if i%12 != 11 {
			continue
		}
		maxActive = max(maxActive, strings.Count(w.firedRuns(), "goes on"))
		w.finishRuns()
	}
}

func TestABackfillOfADayOfAMinutelyScheduleMakesEachMinutesRunOnce(t *testing.T) {
	const day = 24 * 60
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", descriptor("* * * * *", ""))
	if _, err := g.Pause(t.Context(), "ann", "n", "ann"); err != nil {
		t.Fatal(err)
	}
	from := clock("00:00").AddDate(0, 0, -1)
	for i, tt := range []struct {
		req              *baiv1.BackfillScheduleRequest
		missing, present int
	}{
		{span(from.Add(3*time.Hour), time.Hour), 60, 0},
		{span(from, 24*time.Hour), day - 60, 60},
		{span(from, 24*time.Hour), 0, day},
	} {
		got, err := g.api().BackfillSchedule(t.Context(), tt.req)
		if err != nil || len(got.GetMissing()) != tt.missing || int(got.GetPresent()) != tt.present {
			t.Errorf("time %d: %d missing, %d present, %v, want %d and %d", i, len(got.GetMissing()), got.GetPresent(), err, tt.missing, tt.present)
		}
		if crowd := w.drainBackfills(g); crowd > 100 {
			t.Errorf("%d runs went on at a time", crowd)
		}
		w.finishRuns()
	}
	runs := w.runs()
	if len(runs) != day {
		t.Errorf("%d runs, want %d", len(runs), day)
	}
	for i, r := range runs {
		if at := from.Add(time.Duration(i) * time.Minute); !r.Firing.Equal(at) {
			t.Fatalf("run %d was fired for %s, want %s", i, r.Firing, at)
		}
	}
	if n := w.records(s.ID); n > 200 {
		t.Errorf("%d records", n)
	}
}

func TestABackfillOfAScheduleThatForbidsTwoRunsMakesOneAfterAnother(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put("n", descriptor("0 * * * *", "concurrency = 'forbid'"))
	if _, err := g.Pause(t.Context(), "ann", "n", "ann"); err != nil {
		t.Fatal(err)
	}
	_, err := g.api().BackfillSchedule(t.Context(), &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(clock("07:00"))})
	if err != nil {
		t.Fatal(err)
	}
	for i, fired := range []string{"07:00 goes on", "07:00, 08:00 goes on", "07:00, 08:00, 09:00 goes on", "07:00, 08:00, 09:00"} {
		for range 2 {
			g.reconcileAt(fmt.Sprintf("10:%02d", i))
		}
		want(t, "fired", w.firedRuns(), fired)
		w.finishRuns()
	}
}

func TestABackfillThatCannotBeIsRefused(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	g.put("n", descriptor("* * * * *", ""))
	ten := timestamppb.New(clock("10:00"))
	for name, req := range map[string]*baiv1.BackfillScheduleRequest{
		"no beginning":       {Schedule: "n"},
		"an end before":      {Schedule: "n", From: timestamppb.New(clock("09:00")), To: timestamppb.New(clock("08:00"))},
		"nothing but future": {Schedule: "n", From: ten},
		"too many":           {Schedule: "n", From: timestamppb.New(clock("09:00").AddDate(0, 0, -7))},
	} {
		req.Owner = "ann"
		if _, err := g.api().BackfillSchedule(t.Context(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABackfillIsOneRunForEachTimeWhereverItsGatewayDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		first := w.gateway()
		first.put("n", descriptor("0 * * * *", ""))
		if _, err := first.api().BackfillSchedule(t.Context(), &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(clock("06:30"))}); err != nil {
			t.Fatal(err)
		}
		dying := w.crashingGateway(p)
		_, _ = dying.Reconcile(t.Context()) // the process may crash
		w.setClock("10:20")
		second := w.gateway()
		for range 3 {
			second.reconcileAt("10:20")
		}
		w.relayOutbox(second)
		w.finishRuns()
		want(t, p.String(), w.firedRuns(), "07:00, 08:00, 09:00, 10:00")
	}
}
