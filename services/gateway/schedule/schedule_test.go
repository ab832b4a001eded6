package schedule_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAScheduleFiresAtItsTimesAndItsRunsKnowIt(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	s := g.put("nightly", descriptor("*/10 * * * *", ""))
	if wake := g.look("09:59:40"); !wake.Equal(clock("10:00")) {
		t.Errorf("wakes at %s", wake)
	}
	for _, at := range []string{"10:00", "10:00:01", "10:09", "10:10:02", "10:20"} {
		g.look(at)
		w.finish()
	}
	want(t, "fired", w.fired(), "10:00, 10:10, 10:20")
	for _, run := range w.runs() {
		if run.Schedule != s.ID || run.Owner != "ann" || run.Labels["task_name"] != "t" || run.Created.Before(*run.Firing) {
			t.Errorf("run %+v", run)
		}
	}
	want(t, "missed", w.missed(), "")
}

func TestTheDescriptorIsPinnedAndAnotherIsANewVersion(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	text := descriptor("*/10 * * * *", "")
	first := g.put("nightly", text)
	again := g.put("nightly", text)
	if again.Version != 1 || again.ID != first.ID {
		t.Errorf("submitted again it is version %d of %s", again.Version, again.ID)
	}
	g.look("10:00")
	edited := strings.Replace(text, `"true"`, `"false"`, 1)
	if second := g.put("nightly", edited); second.Version != 2 || second.ID != first.ID || !second.From.Equal(first.From) {
		t.Errorf("edited it is %+v", second)
	}
	g.look("10:10")
	byID, _, err := g.submit(intake.Request{Name: strings.ToUpper(first.ID), Descriptor: []byte(strings.Replace(text, `"true"`, `"date"`, 1))})
	if err != nil || byID.Version != 3 || byID.Name != "nightly" {
		t.Errorf("by its ID it is %+v, %v", byID, err)
	}
	g.look("10:20")
	var codes []string
	for _, run := range w.runs() {
		_, code, _ := strings.Cut(run.Descriptor, "benchmark_code = ")
		codes = append(codes, strings.SplitN(code, "\n", 2)[0])
	}
	want(t, "what ran", strings.Join(codes, " "), `"true" "false" "date"`)
	other, _, err := g.submit(intake.Request{Owner: "bob", Name: "nightly", Descriptor: []byte(text)})
	if err != nil || other.ID == first.ID {
		t.Errorf("of another owner it is %s, %v", other.ID, err)
	}
	if _, _, err := g.submit(intake.Request{Owner: "bob", Name: first.ID, Descriptor: []byte(text)}); !errors.As(err, new(*intake.InvalidError)) {
		t.Errorf("another owner's ID: %v", err)
	}
}

func TestWithoutANameAScheduleIsWhatItWasFirstMadeOf(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	a, b := g.put("", descriptor("@hourly", "")), g.put("", descriptor("@daily", ""))
	if a.ID == b.ID || g.put("", descriptor("@hourly", "")).ID != a.ID {
		t.Error("other words are the same schedule, or the same words are another")
	}
}

func TestAKeyIsOneRequestHoweverLateItComesAgain(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	old, edited := descriptor("@hourly", ""), descriptor("@daily", "")
	send := func(key, text string) (schedule.Schedule, bool, error) {
		return g.submit(intake.Request{Key: key, Name: "n", Descriptor: []byte(text)})
	}
	for i, step := range []struct {
		key, text string
		repeated  bool
		version   int
	}{{"1", old, false, 1}, {"1", old, true, 1}, {"2", edited, false, 2}, {"1", old, true, 2}, {"3", old, false, 3}, {"4", old, true, 3}} {
		s, repeated, err := send(step.key, step.text)
		if err != nil || repeated != step.repeated || s.Version != step.version {
			t.Errorf("step %d: version %d, repeated %t, %v, want %d, %t", i, s.Version, repeated, err, step.version, step.repeated)
		}
	}
	if _, _, err := send("1", edited); !errors.As(err, new(*intake.TakenError)) {
		t.Errorf("another descriptor under a key: %v", err)
	}
	if _, err := g.Delete(t.Context(), "ann", "n"); err != nil {
		t.Fatal(err)
	}
	if _, repeated, err := send("3", old); err != nil || !repeated {
		t.Errorf("a key of what was deleted: %t, %v", repeated, err)
	}
	if _, err := g.Find(t.Context(), "ann", "n"); !errors.As(err, new(*schedule.MissingError)) {
		t.Errorf("it came back: %v", err)
	}
}

func TestAnIntervalThatNobodyWasThereForIsMadeUpForAsAsked(t *testing.T) {
	for missed, fired := range map[string]string{
		"skip": "10:00, 10:40", "latest": "10:00, 10:40", "all": "10:00, 10:10, 10:20, 10:30, 10:40",
	} {
		t.Run(missed, func(t *testing.T) {
			w := newWorld(t)
			g := w.gateway()
			g.put("n", descriptor("*/10 * * * *", fmt.Sprintf("missed = %q", missed)))
			g.look("10:00")
			w.finish()
			g.look("10:40:05")
			w.finish()
			want(t, "fired", w.fired(), fired)
			if missed == "all" {
				want(t, "missed", w.missed(), "")
			} else if !strings.HasPrefix(w.missed(), "10:10 3 firings, the first for 2026-05-04T10:10:00Z: the platform was away") {
				t.Errorf("said %q", w.missed())
			}
		})
	}
}

func TestForbidMakesNoRunBesideAnother(t *testing.T) {
	for name, blind := range map[string]bool{"which is known": false, "which was just submitted": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.blind = blind
			g := w.gateway()
			s := g.put("n", descriptor("*/10 * * * *", `concurrency = "forbid"`))
			g.look("10:00")
			g.look("10:10")
			if got := strings.Count(w.missed(), "\n") + 1; got != 2 || !strings.Contains(w.missed(), "had not ended") || !strings.Contains(w.missed(), "concurrency is forbid") {
				t.Errorf("said %q", w.missed())
			}
			if blind {
				return
			}
			w.finish()
			g.look("10:20")
			want(t, "fired", w.fired(), "10:00, 10:20 goes on")
			want(t, "history", history(t, g, s.ID), "10:20 submitted\n10:10 Overlap missed\n10:00 finished missed")
		})
	}
}

// history is what a schedule tells of its firings.
func history(t *testing.T, g *gateway, id string) string {
	t.Helper()
	got, err := g.api.GetSchedule(t.Context(), &baiv1.GetScheduleRequest{Schedule: id})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, f := range got.GetSchedule().GetFirings() {
		word := f.GetTime().AsTime().Format("15:04")
		if f.GetCount() > 1 {
			word += fmt.Sprintf("-%s (%d)", f.GetLastTime().AsTime().Format("15:04"), f.GetCount())
		}
		if f.GetRunId() != "" {
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
	w := newWorld(t)
	g := w.gateway()
	g.put("n", descriptor("*/10 * * * *", `concurrency = "replace"`))
	for _, at := range []string{"10:00", "10:10", "10:20"} {
		g.look(at)
	}
	want(t, "fired", w.fired(), "10:00 canceled, 10:10 canceled, 10:20 goes on")
}

func TestAPausedScheduleFiresNothingAndGoesOnFromWhenItIsResumed(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", `missed = "all"`))
	g.look("10:00")
	w.at("10:05")
	if _, err := g.Pause(t.Context(), "ann", "n", "bob"); err != nil {
		t.Fatal(err)
	}
	if wake := g.look("10:10"); !wake.IsZero() {
		t.Errorf("paused, it wakes at %s", wake)
	}
	g.put("n", strings.Replace(descriptor("*/10 * * * *", `missed = "all"`), `"true"`, `"false"`, 1)) // stays paused
	g.look("10:20")
	w.at("10:25")
	if s, err := g.Resume(t.Context(), "ann", s.ID); err != nil || s.Paused || s.Version != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	g.look("10:26")
	g.look("10:30")
	w.finish()
	want(t, "fired", w.fired(), "10:00, 10:30")
	want(t, "missed", w.missed(), "10:00 run "+w.runs()[0].ID+" had not ended when its schedule was to fire again")
}

func TestADescriptorCanPauseAndResumeItsSchedule(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	for i, step := range []struct {
		table  string
		paused bool
	}{{"suspend = true", true}, {"", true}, {"suspend = false", false}, {"history = 3", false}, {"suspend = true\nhistory = 4", true}} {
		if s := g.put("n", descriptor("@hourly", step.table)); s.Paused != step.paused {
			t.Errorf("step %d: paused %t", i, s.Paused)
		}
	}
}

func TestOtherTimesHoldFromWhenTheyAreGiven(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	g.put("n", descriptor("*/10 * * * *", `missed = "all"`))
	g.look("10:00")
	w.at("10:44")
	g.put("n", descriptor("*/15 * * * *", `missed = "all"`)) // while nobody fired for 44 minutes
	g.look("10:45")
	w.finish()
	want(t, "fired", w.fired(), "10:00, 10:45")
}

func TestADeletedScheduleFiresNoMoreAndItsNameCanBeUsedAgain(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", `missed = "all"`))
	g.look("10:00")
	for _, want := range []bool{true, false} {
		if existed, err := g.Delete(t.Context(), "ann", "n"); err != nil || existed != want {
			t.Errorf("deleted: %t, %v, want %t", existed, err, want)
		}
	}
	g.look("10:10")
	w.at("10:25")
	if again := g.put("n", descriptor("*/10 * * * *", `missed = "all"`)); again.ID != s.ID || again.Version != 2 || !again.Created.Equal(clock("10:25")) {
		t.Errorf("%+v", again)
	}
	g.look("10:30")
	w.finish()
	want(t, "fired", w.fired(), "10:00, 10:30")
	want(t, "history", history(t, g, s.ID), "10:30 finished")
}

func TestATriggerFiresBesideTheTimesOnceForEachKey(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	w.at("10:00:30")
	s := g.put("n", descriptor("@hourly", `concurrency = "forbid"`))
	w.at("10:07")
	first, repeated, err := g.Trigger(t.Context(), "ann", "n", "k")
	if err != nil || repeated {
		t.Fatalf("%t, %v", repeated, err)
	}
	again, repeated, err := g.Trigger(t.Context(), "ann", s.ID, "k")
	if err != nil || !repeated || again != first {
		t.Errorf("%s, %t, %v, want %s again", again, repeated, err, first)
	}
	_, err = g.api.TriggerSchedule(t.Context(), &baiv1.TriggerScheduleRequest{Schedule: "n", Owner: "ann"})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), first) {
		t.Errorf("while it goes on: %v", err)
	}
	g.look("11:00")
	want(t, "while the triggered run goes on", w.fired(), "10:07 goes on")
	w.finish()
	g.look("12:00")
	w.finish()
	want(t, "fired", w.fired(), "10:07, 12:00")
	want(t, "history", history(t, g, s.ID), "12:00 finished\n11:00 Overlap missed\n10:07 finished")
}

func TestABackfillMakesExactlyTheRunsThatAreMissing(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	w.at("10:30")
	s := g.put("n", descriptor("0 * * * *", ""))
	for _, at := range []string{"11:00", "12:00"} {
		g.look(at)
		w.finish()
	}
	day := &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(clock("00:00")), To: timestamppb.New(clock("00:00").AddDate(0, 0, 1))}
	w.at("12:30")
	for i, tt := range []struct{ missing, present int }{{11, 2}, {0, 13}, {0, 13}} {
		got, err := g.api.BackfillSchedule(t.Context(), day)
		if err != nil || len(got.GetMissing()) != tt.missing || int(got.GetPresent()) != tt.present {
			t.Errorf("time %d: %v, %v, want %+v", i, got, err, tt)
		}
		for range 5 {
			g.look("12:30")
		}
		w.finish()
		want(t, "fired", w.fired(), "00:00, 01:00, 02:00, 03:00, 04:00, 05:00, 06:00, 07:00, 08:00, 09:00, 10:00, 11:00, 12:00")
	}
	if orders, err := w.store.Docs(t.Context(), store.KindBackfill, "", 10); err != nil || len(orders) != 0 {
		t.Errorf("left: %v, %v", orders, err)
	}
	want(t, "missed", w.missed(), "")
	g.look("13:00")
	w.finish()
	want(t, "history", strings.SplitN(history(t, g, s.ID), "\n", 2)[0], "13:00 finished")
}

func TestABackfillOfAScheduleThatForbidsTwoRunsMakesOneAfterAnother(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	g.put("n", descriptor("0 * * * *", "concurrency = 'forbid'"))
	if _, err := g.Pause(t.Context(), "ann", "n", "ann"); err != nil {
		t.Fatal(err)
	}
	_, err := g.api.BackfillSchedule(t.Context(), &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(clock("07:00"))})
	if err != nil {
		t.Fatal(err)
	}
	for i, fired := range []string{"07:00 goes on", "07:00, 08:00 goes on", "07:00, 08:00, 09:00 goes on", "07:00, 08:00, 09:00"} {
		for range 2 {
			g.look(fmt.Sprintf("10:%02d", i))
		}
		want(t, "fired", w.fired(), fired)
		w.finish()
	}
}

func TestABackfillThatCannotBeIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	g.put("n", descriptor("* * * * *", ""))
	ten := timestamppb.New(clock("10:00"))
	for name, req := range map[string]*baiv1.BackfillScheduleRequest{
		"no beginning":       {Schedule: "n"},
		"an end before":      {Schedule: "n", From: timestamppb.New(clock("09:00")), To: timestamppb.New(clock("08:00"))},
		"nothing but future": {Schedule: "n", From: ten},
		"too many":           {Schedule: "n", From: timestamppb.New(clock("09:00").AddDate(0, 0, -3))},
	} {
		req.Owner = "ann"
		if _, err := g.api.BackfillSchedule(t.Context(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneGatewayFiresAtATimeAndAnotherFollowsWhenItIsGone(t *testing.T) {
	w := newWorld(t)
	a, b := w.gateway(), w.gateway()
	a.put("n", descriptor("* * * * *", ""))
	a.look("10:00")
	w.at("10:00:05")
	if _, err := b.Look(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("while another fires: %v", err)
	}
	b.look("10:01") // a is gone
	b.look("10:02")
	if _, err := a.Look(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a gateway that comes back: %v", err)
	}
	w.finish()
	want(t, "fired", w.fired(), "10:00, 10:01, 10:02")
	want(t, "of runs that went on", fmt.Sprint(strings.Count(w.missed(), "had not ended")), "2")
}

// A gateway dies before or after each of its effects, and another follows.
func TestAFiringIsOneRunWhereverItsGatewayDies(t *testing.T) {
	for _, concurrency := range []string{"allow", "forbid", "replace"} {
		for effects := range 24 {
			for _, after := range []bool{false, true} {
				w := newWorld(t)
				first := w.gateway()
				first.put("n", descriptor("*/10 * * * *", fmt.Sprintf("concurrency = %q", concurrency)))
				dying := w.mortal(&end{left: effects, after: after})
				w.at("10:00")
				_, _ = dying.Look(t.Context()) // it may die
				w.at("10:00:20")
				second := w.gateway()
				_, _ = second.Look(t.Context()) // the lease may be held
				second.look("10:00:40")
				w.sweep(second)
				w.finish()
				second.look("10:10")
				w.sweep(second)
				w.finish()
				want(t, fmt.Sprintf("%s, dead at effect %d (%t)", concurrency, effects, after), w.fired(), "10:00, 10:10")
			}
		}
	}
}

// sweep publishes what was only remembered.
func (w *world) sweep(g *gateway) {
	w.t.Helper()
	now := w.clock()
	w.set(now.Add(10 * time.Second))
	if err := g.intake.Sweep(w.t.Context()); err != nil {
		w.t.Error(err)
	}
	w.set(now)
}

func TestABackfillIsOneRunForEachTimeWhereverItsGatewayDies(t *testing.T) {
	for effects := range 30 {
		w := newWorld(t)
		first := w.gateway()
		first.put("n", descriptor("0 * * * *", ""))
		if _, err := first.api.BackfillSchedule(t.Context(), &baiv1.BackfillScheduleRequest{Schedule: "n", Owner: "ann", From: timestamppb.New(clock("06:30"))}); err != nil {
			t.Fatal(err)
		}
		dying := w.mortal(&end{left: effects, after: effects%2 == 0})
		_, _ = dying.Look(t.Context()) // it may die
		w.at("10:20")
		second := w.gateway()
		for range 3 {
			second.look("10:20")
		}
		w.sweep(second)
		w.finish()
		want(t, fmt.Sprintf("dead at effect %d", effects), w.fired(), "07:00, 08:00, 09:00, 10:00")
	}
}

// All of them may fire at once: whatever the leases say, it is one run each.
func TestAFiringIsOneRunHoweverManyClocksFire(t *testing.T) {
	w := newWorld(t)
	first := w.gateway()
	first.put("n", descriptor("* * * * *", `missed = "all"`))
	w.at("10:08:30")
	var wg sync.WaitGroup
	for i := range 4 {
		g := w.deluded(fmt.Sprint(i))
		wg.Go(func() {
			for range 3 {
				if _, err := g.Look(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	w.finish()
	want(t, "fired", w.fired(), "10:00, 10:01, 10:02, 10:03, 10:04, 10:05, 10:06, 10:07, 10:08")
}

func TestADescriptorThatCannotBeRunAnyMoreIsMissedAndTheScheduleGoesOn(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", ""))
	docs, err := w.store.Docs(t.Context(), store.KindEdition, "", 10)
	if err != nil || len(docs) != 1 {
		t.Fatal(docs, err)
	}
	d := docs[0]
	d.Value = []byte(strings.Replace(string(d.Value), "cpus = 1", "cpus = 0", 1)) // as if rules were stricter now
	if _, err := w.store.ReplaceDoc(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	g.look("10:00")
	g.look("10:10")
	want(t, "history", history(t, g, s.ID), "10:10 Refused missed\n10:00 Refused missed")
	want(t, "said", fmt.Sprint(strings.Count(w.missed(), "hardware.cpus")), "2")
}

func TestHistoryIsAsLongAsAsked(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	s := g.put("n", descriptor("* * * * *", "history = 3"))
	for i := range 10 {
		g.look(fmt.Sprintf("10:%02d", i))
		w.finish()
	}
	want(t, "history", history(t, g, s.ID), "10:09 finished\n10:08 finished\n10:07 finished")
	l, _, err := store.Get[schedule.Ledger](t.Context(), w.store, store.KindFirings, s.ID)
	if err != nil || len(l.Records) > 4 {
		t.Errorf("%d records, %v", len(l.Records), err)
	}
}

func TestWhatIsSaidOfAMissedFiringIsOneEventHoweverOften(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", `missed = "skip"`))
	g.look("10:05")
	var got []event.Status
	for _, ev := range w.said {
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

func TestSchedulesAreListedInPagesAndByOwner(t *testing.T) {
	w := newWorld(t)
	g := w.gateway()
	wanted := map[string]bool{}
	for i := range 7 {
		wanted[g.put(fmt.Sprint("n", i), descriptor("@hourly", "")).ID] = true
	}
	if _, _, err := g.submit(intake.Request{Owner: "bob", Name: "b", Descriptor: []byte(descriptor("@hourly", ""))}); err != nil {
		t.Fatal(err)
	}
	pages := 0
	for page := range g.pages(&baiv1.ListSchedulesRequest{Owner: "ann", PageSize: 3}) {
		pages++
		for _, s := range page {
			if !wanted[s.GetId()] || len(s.GetNextFirings()) != 1 || s.GetDescriptorToml() != "" {
				t.Errorf("%v", s)
			}
			delete(wanted, s.GetId())
		}
	}
	if len(wanted) != 0 || pages != 3 {
		t.Errorf("%d are missing after %d pages", len(wanted), pages)
	}
}

// pages are those of a list.
func (g *gateway) pages(req *baiv1.ListSchedulesRequest) iter.Seq[[]*baiv1.Schedule] {
	return func(yield func([]*baiv1.Schedule) bool) {
		for {
			got, err := g.api.ListSchedules(g.w.t.Context(), req)
			if err != nil {
				g.w.t.Fatal(err)
			}
			if req.PageToken = got.GetNextPageToken(); !yield(got.GetSchedules()) || req.GetPageToken() == "" {
				return
			}
		}
	}
}

func TestWhatNamesNoScheduleOrPageIsRefused(t *testing.T) {
	g := newWorld(t).gateway()
	for name, bad := range map[string]*baiv1.ListSchedulesRequest{"a negative page": {PageSize: -1}, "a token of nobody": {PageToken: "x"}} {
		if _, err := g.api.ListSchedules(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := g.api.GetSchedule(t.Context(), &baiv1.GetScheduleRequest{Schedule: "nothing"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("a schedule that there is not: %v", err)
	}
	_, err = g.api.PauseSchedule(t.Context(), &baiv1.PauseScheduleRequest{})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("no schedule: %v", err)
	}
}

func TestTheCodeOfAScheduleStaysForItAndEachFiringTakesItAlong(t *testing.T) {
	w := newWorld(t)
	kept, gone := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	w.scripts = wardrobe{kept: {}}
	g := w.gateway()
	req := intake.Request{Name: "n", Descriptor: []byte(descriptor("*/10 * * * *", "")), Script: strings.ToUpper(kept)}
	s, _, err := g.submit(req)
	if err != nil || !w.scripts[kept][s.ID] || s.Script != kept {
		t.Fatalf("%+v, %v, kept for %v", s, err, w.scripts)
	}
	g.look("10:00")
	sub, ok := w.said[0].(event.Submitted)
	if !ok || sub.Script == nil || sub.Script.SHA256 != kept || !w.scripts[kept][sub.Run] {
		t.Errorf("the run takes along %+v", sub.Script)
	}
	req.Script = gone
	if _, _, err := g.submit(req); !errors.As(err, new(*intake.InvalidError)) {
		t.Errorf("code that is not kept: %v", err)
	}
	if s, err := g.Find(t.Context(), "ann", "n"); err != nil || s.Version != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
