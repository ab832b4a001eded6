package analyst_test

import (
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/cron"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// hours lets the clock strike every hour for a number of hours.
func (w *fixture) hours(n int) {
	w.t.Helper()
	for range n {
		w.now = w.now.Add(time.Hour)
		w.tick()
	}
}

// wantGap reports anything but one gap that is over, with one notice of its beginning and one of its end.
func (w *fixture) wantGap() {
	w.t.Helper()
	if got := w.incidents(); len(got) != 1 || !strings.HasPrefix(got[0], "missing rate resolved") {
		w.t.Errorf("incidents %q, want one that is resolved", got)
	}
	want(w.t, "notices", []string{"ops firing waiting", "ops resolved waiting"}, w.deliveries())
}

func TestNightsWithoutARunAreOneNoticeAndTheNextValueEndsThem(t *testing.T) {
	w := newFixture(t).listen()
	w.schedule(false)
	w.run(descriptor(nightly), 120, fired)
	w.hours(23)
	want(t, "before the next night", nil, w.deliveries())
	w.hours(49)
	want(t, "after three nights", []string{"ops firing waiting"}, w.deliveries())
	w.runs = 4
	w.run(descriptor(nightly), 120, fired)
	w.wantGap()
}

func TestNightsWithoutTheMetricAreOneNoticeAndTheNextValueEndsThem(t *testing.T) {
	w := newFixture(t).listen()
	w.schedule(false)
	for _, rate := range []float64{120, -1, -1, -1} {
		w.run(descriptor(nightly), rate, fired)
		w.hours(20)
	}
	want(t, "after three nights", []string{"ops firing waiting"}, w.deliveries())
	w.run(descriptor(nightly), 120, fired)
	w.wantGap()
}

func TestNightsOfAPausedScheduleAreNotMissing(t *testing.T) {
	w := newFixture(t).listen()
	w.schedule(true)
	w.run(descriptor(nightly), 120, fired)
	w.hours(100)
	want(t, "incidents", nil, w.incidents())
	want(t, "notices", nil, w.deliveries())
}

func TestNightsWithThePlatformOffAreOneNoticeOnceItIsBack(t *testing.T) {
	w := newFixture(t).listen()
	w.schedule(false)
	w.run(descriptor(nightly), 120, fired)
	w.now = begin.Add(5*day + time.Hour)
	w.hours(3)
	want(t, "once it is back", []string{"ops firing waiting"}, w.deliveries())
	w.runs = 6
	w.run(descriptor(nightly), 120, fired)
	w.wantGap()
}

// fire runs the task at a firing of its schedule.
func (w *fixture) fire(at time.Time) {
	w.t.Helper()
	ended := at.Add(10 * time.Minute)
	ev := w.put(descriptor(nightly), 120, func(r *store.Run) {
		r.Created, r.Started, r.Ended, r.Schedule, r.Firing = at, &at, &ended, "nightly", &at
	})
	w.now = ended.Add(time.Minute)
	w.bus.PublishAndWait(ev)
}

func TestTheNightsInWhichClocksChangeAreNotMissing(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	nightly, err := cron.Parse("30 2 * * *")
	if err != nil {
		t.Fatal(err)
	}
	for name, sunday := range map[string]time.Time{
		"they go forward, and 2:30 is skipped":  time.Date(2026, 3, 29, 0, 0, 0, 0, zone),
		"they go back, and 2:30 is there twice": time.Date(2026, 10, 25, 0, 0, 0, 0, zone),
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).listen()
			from := sunday.AddDate(0, 0, -2)
			s := schedule.Schedule{ID: "nightly", From: from, Updated: from, Rules: schedule.Rules{Cron: "30 2 * * *", Zone: "Europe/Berlin"}}
			if err := store.Create(t.Context(), w.store, store.KindSchedule, "nightly", s); err != nil {
				t.Fatal(err)
			}
			w.nights(nightly, from, 5)
			want(t, "incidents", nil, w.incidents())
			w.hours(2)
			if got := w.incidents(); len(got) != 1 {
				t.Errorf("incidents %q after a night without a run, want one", got)
			}
		})
	}
}

// nights runs the task at a number of firings of its schedule, while the clock strikes every hour, until the next firing.
func (w *fixture) nights(s cron.Schedule, from time.Time, n int) {
	w.t.Helper()
	at := s.Next(from)
	for range n {
		w.fire(at)
		for at = s.Next(at); w.now.Add(time.Hour).Before(at); {
			w.hours(1)
		}
	}
}
