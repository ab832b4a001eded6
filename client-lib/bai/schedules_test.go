package bai_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// clientWithSchedules is a client of a platform with three schedules.
func clientWithSchedules(t *testing.T) *bai.Client {
	t.Helper()
	p := baitest.Start(t)
	for i, id := range []string{"a", "b", "c"} {
		p.AddSchedule(&baiv1.Schedule{
			Id: id, Name: "n" + id, Owner: []string{"ann", "ann", "bob"}[i], Version: 1, Scheduling: "0 * * * *", Timezone: "UTC", Concurrency: "forbid",
		})
	}
	c, err := bai.Settings{Owner: "ann", RetryTimeout: 10 * time.Second, Pause: time.Millisecond}.Dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSchedulesAreListedPageByPage(t *testing.T) {
	c := clientWithSchedules(t)
	for owner, want := range map[string][]string{"": {"a", "b", "c"}, "ann": {"a", "b"}, "eve": nil} {
		var got []string
		for s, err := range c.Schedules(t.Context(), owner, "") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.GetId())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %q (-want +got):\n%s", owner, diff)
		}
	}
}

func TestAScheduleIsPausedResumedAndDeletedByItsName(t *testing.T) {
	c := clientWithSchedules(t)
	if s, err := c.PauseSchedule(t.Context(), "na"); err != nil || !s.GetPaused() || len(s.GetNextFirings()) != 0 {
		t.Errorf("paused: %v, %v", s, err)
	}
	if s, err := c.ResumeSchedule(t.Context(), "a"); err != nil || s.GetPaused() || len(s.GetNextFirings()) == 0 {
		t.Errorf("resumed: %v, %v", s, err)
	}
	for i, want := range []bool{true, false} {
		if existed, err := c.DeleteSchedule(t.Context(), "na"); err != nil || existed != want {
			t.Errorf("deleted, time %d: %t, %v", i, existed, err)
		}
	}
	_, err := c.Schedule(t.Context(), "na")
	if e, ok := errors.AsType[*bai.NotFoundError](err); !ok || e.What != "schedule" {
		t.Errorf("a schedule that is deleted: %v", err)
	}
}

func TestATriggerIsARunThatIsListedAsOneOfItsSchedule(t *testing.T) {
	c := clientWithSchedules(t)
	run, err := c.TriggerSchedule(t.Context(), "na", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r, err := range c.List(t.Context(), bai.Filter{Schedule: "a"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.GetId())
	}
	if diff := cmp.Diff([]string{run}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = c.TriggerSchedule(t.Context(), "na", "")
	if _, ok := errors.AsType[*bai.InvalidError](err); !ok {
		t.Errorf("beside a run that goes on: %v", err)
	}
}

func TestABackfillSaysWhichFiringsAreMissing(t *testing.T) {
	c := clientWithSchedules(t)
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got, err := c.BackfillSchedule(t.Context(), "na", from, from.Add(3*time.Hour))
	if diff := cmp.Diff(bai.Backfilled{Missing: []time.Time{from.Add(time.Hour), from.Add(2 * time.Hour)}, Present: 1}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = c.BackfillSchedule(t.Context(), "na", from, from)
	if e, ok := errors.AsType[*bai.InvalidError](err); !ok || len(e.Faults) != 1 {
		t.Errorf("nothing: %v", err)
	}
}

func TestADescriptorWithAScheduleIsSubmittedAsOne(t *testing.T) {
	c := clientWithSchedules(t)
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\nscheduling = \"@daily\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n")
	for i := range 2 {
		got, err := c.Submit(t.Context(), bai.Submission{Descriptor: text, Name: "new"})
		if err != nil || got.ScheduleID == "" || got.RunID != "" || got.Repeated != (i == 1) {
			t.Errorf("time %d: %+v, %v", i, got, err)
		}
	}
}

func TestAPlatformThatIsTooOldHasNoSchedules(t *testing.T) {
	p := baitest.StartOld(t)
	c, err := bai.Dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, err := range c.Schedules(t.Context(), "", "") {
		if _, ok := errors.AsType[*bai.UnsupportedError](err); !ok {
			t.Errorf("listed: %v", err)
		}
	}
	for _, err := range c.List(t.Context(), bai.Filter{Schedule: "a"}) {
		if _, ok := errors.AsType[*bai.UnsupportedError](err); !ok {
			t.Errorf("runs of one: %v", err)
		}
	}
}

func TestADeletedScheduleCancelsItsRunsPageByPage(t *testing.T) {
	p := baitest.Start(t)
	p.AddSchedule(&baiv1.Schedule{Id: "a", Name: "na", Owner: "ann", Scheduling: "0 * * * *", Timezone: "UTC"})
	p.AddSet(&baiv1.Set{Id: "s", Owner: "ann", ScheduleId: "a", State: baiv1.SetState_SET_STATE_RUNNING})
	p.AddSet(&baiv1.Set{Id: "other", Owner: "ann", State: baiv1.SetState_SET_STATE_RUNNING})
	c, err := bai.Settings{Owner: "ann", RetryTimeout: 10 * time.Second, Pause: time.Millisecond}.Dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for range 3 {
		if fired, err := c.FireSchedule(t.Context(), "na", "k"); err != nil || fired.RunID == "" || fired.SetID != "" || fired.Key != "k" {
			t.Fatal(fired, err)
		}
	}
	var sets []string
	for s, err := range c.SetsOfSchedule(t.Context(), "a", "", "") {
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, s.GetId())
	}
	if diff := cmp.Diff([]string{"s"}, sets); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	for i, want := range []bai.ScheduleDeletion{{Existed: true, Runs: 3, Sets: 1}, {}} {
		if got, err := c.DeleteScheduleAndRuns(t.Context(), "na"); err != nil || got != want {
			t.Errorf("time %d: %+v, %v, want %+v", i, got, err, want)
		}
	}
}

func TestAnOlderPlatformIsNotAskedToCancelTheRunsOfASchedule(t *testing.T) {
	p := baitest.Start(t)
	p.SetRevision(7)
	p.AddSchedule(&baiv1.Schedule{Id: "a", Name: "na", Owner: "ann", Scheduling: "0 * * * *", Timezone: "UTC"})
	c, err := bai.Settings{Owner: "ann"}.Dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.DeleteScheduleAndRuns(t.Context(), "na"); !isUnsupported(err) {
		t.Errorf("canceling: %v", err)
	}
	for _, err := range c.SetsOfSchedule(t.Context(), "a", "", "") {
		if !isUnsupported(err) {
			t.Errorf("sets: %v", err)
		}
	}
	if _, err := c.Schedule(t.Context(), "na"); err != nil {
		t.Errorf("it is not deleted: %v", err)
	}
}

func isUnsupported(err error) bool {
	_, ok := errors.AsType[*bai.UnsupportedError](err)
	return ok
}
