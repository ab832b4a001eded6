package schedule_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
)

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAScheduleFiresAtItsTimesAndItsRunsKnowIt(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("nightly", descriptor("*/10 * * * *", ""))
	if wake := g.reconcileAt("09:59:40"); !wake.Equal(clock("10:00")) {
		t.Errorf("wakes at %s", wake)
	}
	for _, at := range []string{"10:00", "10:00:01", "10:09", "10:10:02", "10:20"} {
		g.reconcileAt(at)
		w.finishRuns()
	}
	want(t, "fired", w.firedRuns(), "10:00, 10:10, 10:20")
	for _, run := range w.runs() {
		if run.Schedule != s.ID || run.Owner != "ann" || run.Labels["task_name"] != "t" || run.Created.Before(*run.Firing) {
			t.Errorf("run %+v", run)
		}
	}
	want(t, "missed", w.missedFirings(), "")
}

func TestTheDescriptorIsPinnedAndAnotherIsANewVersion(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	text := descriptor("*/10 * * * *", "")
	first := g.put("nightly", text)
	again := g.put("nightly", text)
	if again.Version != 1 || again.ID != first.ID {
		t.Errorf("submitted again it is version %d of %s", again.Version, again.ID)
	}
	g.reconcileAt("10:00")
	edited := strings.Replace(text, `"true"`, `"false"`, 1)
	if second := g.put("nightly", edited); second.Version != 2 || second.ID != first.ID || !second.From.Equal(first.From) {
		t.Errorf("edited it is %+v", second)
	}
	g.reconcileAt("10:10")
	byID, _, err := g.submit(submit.Request{Name: strings.ToUpper(first.ID), Descriptor: []byte(strings.Replace(text, `"true"`, `"date"`, 1))})
	if err != nil || byID.Version != 3 || byID.Name != "nightly" {
		t.Errorf("by its ID it is %+v, %v", byID, err)
	}
	g.reconcileAt("10:20")
	var codes []string
	for _, run := range w.runs() {
		_, code, _ := strings.Cut(run.Descriptor, "benchmark_code = ")
		codes = append(codes, strings.SplitN(code, "\n", 2)[0])
	}
	want(t, "what ran", strings.Join(codes, " "), `"true" "false" "date"`)
	other, _, err := g.submit(submit.Request{Owner: "bob", Name: "nightly", Descriptor: []byte(text)})
	if err != nil || other.ID == first.ID {
		t.Errorf("of another owner it is %s, %v", other.ID, err)
	}
	if _, _, err := g.submit(submit.Request{Owner: "bob", Name: first.ID, Descriptor: []byte(text)}); !errors.As(err, new(*submit.InvalidError)) {
		t.Errorf("another owner's ID: %v", err)
	}
}

func TestWithoutANameAScheduleIsWhatItWasFirstMadeOf(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	a, b := g.put("", descriptor("@hourly", "")), g.put("", descriptor("@daily", ""))
	if a.ID == b.ID || g.put("", descriptor("@hourly", "")).ID != a.ID {
		t.Error("other words are the same schedule, or the same words are another")
	}
}

func TestAKeyIsOneRequestHoweverLateItComesAgain(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	old, edited := descriptor("@hourly", ""), descriptor("@daily", "")
	send := func(key, text string) (schedule.Schedule, bool, error) {
		return g.submit(submit.Request{Key: key, Name: "n", Descriptor: []byte(text)})
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
	if _, _, err := send("1", edited); !errors.As(err, new(*submit.NotUniqueError)) {
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

func TestAPausedScheduleFiresNothingAndGoesOnFromWhenItIsResumed(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", `missed = "all"`))
	g.reconcileAt("10:00")
	w.setClock("10:05")
	if _, err := g.Pause(t.Context(), "ann", "n", "bob"); err != nil {
		t.Fatal(err)
	}
	if wake := g.reconcileAt("10:10"); !wake.IsZero() {
		t.Errorf("paused, it wakes at %s", wake)
	}
	g.put("n", strings.Replace(descriptor("*/10 * * * *", `missed = "all"`), `"true"`, `"false"`, 1)) // stays paused
	g.reconcileAt("10:20")
	w.setClock("10:25")
	if s, err := g.Resume(t.Context(), "ann", s.ID); err != nil || s.Paused || s.Version != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	g.reconcileAt("10:26")
	g.reconcileAt("10:30")
	w.finishRuns()
	want(t, "fired", w.firedRuns(), "10:00, 10:30")
	want(t, "missed", w.missedFirings(), "10:00 run "+w.runs()[0].ID+" had not ended when its schedule was to fire again")
}

func TestADescriptorCanPauseAndResumeItsSchedule(t *testing.T) {
	w := newFixture(t)
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
	w := newFixture(t)
	g := w.gateway()
	g.put("n", descriptor("*/10 * * * *", `missed = "all"`))
	g.reconcileAt("10:00")
	w.setClock("10:44")
	g.put("n", descriptor("*/15 * * * *", `missed = "all"`)) // no gateway fired for 44 minutes
	g.reconcileAt("10:45")
	w.finishRuns()
	want(t, "fired", w.firedRuns(), "10:00, 10:45")
}

func TestADeletedScheduleFiresNoMoreAndItsNameCanBeUsedAgain(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put("n", descriptor("*/10 * * * *", `missed = "all"`))
	g.reconcileAt("10:00")
	for _, want := range []bool{true, false} {
		if existed, err := g.Delete(t.Context(), "ann", "n"); err != nil || existed != want {
			t.Errorf("deleted: %t, %v, want %t", existed, err, want)
		}
	}
	g.reconcileAt("10:10")
	w.setClock("10:25")
	if again := g.put("n", descriptor("*/10 * * * *", `missed = "all"`)); again.ID != s.ID || again.Version != 2 || !again.Created.Equal(clock("10:25")) {
		t.Errorf("%+v", again)
	}
	g.reconcileAt("10:30")
	w.finishRuns()
	want(t, "fired", w.firedRuns(), "10:00, 10:30")
	want(t, "history", history(t, g, s.ID), "10:30 finished")
}

func TestSchedulesAreListedInPagesAndByOwner(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	wanted := map[string]bool{}
	for i := range 7 {
		wanted[g.put(fmt.Sprint("n", i), descriptor("@hourly", "")).ID] = true
	}
	if _, _, err := g.submit(submit.Request{Owner: "bob", Name: "b", Descriptor: []byte(descriptor("@hourly", ""))}); err != nil {
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
	got, err := g.api().GetSchedule(t.Context(), &baiv1.GetScheduleRequest{Schedule: "n0", Owner: "ann"})
	if err != nil || len(got.GetSchedule().GetNextFirings()) != 5 || got.GetSchedule().GetDescriptorToml() == "" {
		t.Errorf("one by itself is %v, %v, want it with its descriptor and its next five firings", got, err)
	}
}

// pages returns the pages of a list.
func (g *gateway) pages(req *baiv1.ListSchedulesRequest) iter.Seq[[]*baiv1.Schedule] {
	return func(yield func([]*baiv1.Schedule) bool) {
		for {
			got, err := g.api().ListSchedules(g.w.t.Context(), req)
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
	g := newFixture(t).gateway()
	for name, bad := range map[string]*baiv1.ListSchedulesRequest{"a negative page": {PageSize: -1}, "a token of nobody": {PageToken: "x"}} {
		if _, err := g.api().ListSchedules(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := g.api().GetSchedule(t.Context(), &baiv1.GetScheduleRequest{Schedule: "nothing"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("a schedule that there is not: %v", err)
	}
	_, err = g.api().PauseSchedule(t.Context(), &baiv1.PauseScheduleRequest{})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("no schedule: %v", err)
	}
}

func TestTheCodeOfAScheduleStaysForItAndEachFiringTakesItAlong(t *testing.T) {
	w := newFixture(t)
	kept, gone := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	w.scripts = fakeScripts{kept: {}}
	g := w.gateway()
	req := submit.Request{Name: "n", Descriptor: []byte(descriptor("*/10 * * * *", "")), Script: strings.ToUpper(kept)}
	s, _, err := g.submit(req)
	if err != nil || !w.scripts[kept][s.ID] || s.Script != kept {
		t.Fatalf("%+v, %v, kept for %v", s, err, w.scripts)
	}
	g.reconcileAt("10:00")
	sub, ok := w.published[0].(event.Submitted)
	if !ok || sub.Bundle == nil || sub.Bundle.SHA256 != kept || !w.scripts[kept][sub.Run] {
		t.Errorf("the run takes along %+v", sub.Bundle)
	}
	req.Script = gone
	if _, _, err := g.submit(req); !errors.As(err, new(*submit.InvalidError)) {
		t.Errorf("code that is not kept: %v", err)
	}
	if s, err := g.Find(t.Context(), "ann", "n"); err != nil || s.Version != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
