package schedule

import (
	"testing"
	"time"
	_ "time/tzdata" // gives every machine the zones of the tables

	"github.com/google/go-cmp/cmp"
)

// change is a change of clocks, as the time zone database (and the laws that it quotes)
// publish it: its time, and the offset from UTC after it.
type change struct {
	at     string
	offset time.Duration
	// daily are the firings, in UTC, of a schedule at the time of day that the change
	// affects: on the day before, that day, and the day after.
	daily [3]string
	// hours is the number of firings of "every hour" on that day.
	hours int
}

// zones returns five zones, with the two changes of each in 2026. One change skips an
// hour and one repeats it, at midnight and at other times, by an hour and by half an
// hour, in both hemispheres.
func zones() map[string]map[string]change {
	return map[string]map[string]change{
		"America/New_York": {
			"30 2 * * *": {"2026-03-08T07:00:00Z", -4 * time.Hour, [3]string{"2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}, 23},
			"30 1 * * *": {"2026-11-01T06:00:00Z", -5 * time.Hour, [3]string{"2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}, 25},
		},
		"Europe/Berlin": {
			"15 2 * * *": {"2026-03-29T01:00:00Z", 2 * time.Hour, [3]string{"2026-03-28T01:15:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:15:00Z"}, 23},
			"45 2 * * *": {"2026-10-25T01:00:00Z", 1 * time.Hour, [3]string{"2026-10-24T00:45:00Z", "2026-10-25T00:45:00Z", "2026-10-26T01:45:00Z"}, 25},
		},
		"Australia/Lord_Howe": {
			"45 1 * * *": {"2026-04-04T15:00:00Z", 10*time.Hour + 30*time.Minute, [3]string{"2026-04-03T14:45:00Z", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}, 24},
			"15 2 * * *": {"2026-10-03T15:30:00Z", 11 * time.Hour, [3]string{"2026-10-02T15:45:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}, 23},
		},
		"America/Santiago": {
			"30 23 * * *": {"2026-04-05T03:00:00Z", -4 * time.Hour, [3]string{"2026-04-04T02:30:00Z", "2026-04-05T02:30:00Z", "2026-04-06T03:30:00Z"}, 25},
			"0 0 * * *":   {"2026-09-06T04:00:00Z", -3 * time.Hour, [3]string{"2026-09-05T04:00:00Z", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"}, 23},
		},
		"Africa/Cairo": {
			"0 0 * * *":   {"2026-04-23T22:00:00Z", 3 * time.Hour, [3]string{"2026-04-22T22:00:00Z", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}, 23},
			"30 23 * * *": {"2026-10-29T21:00:00Z", 2 * time.Hour, [3]string{"2026-10-28T20:30:00Z", "2026-10-29T20:30:00Z", "2026-10-30T21:30:00Z"}, 25},
		},
	}
}

func utc(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestOverEachChangeOfClocksInFiveZonesADayHasOneFiringAndARhythmGoesOn(t *testing.T) {
	n := 0
	for zone, changes := range zones() {
		for cron, c := range changes {
			n++
			t.Run(zone+" "+cron, func(t *testing.T) { c.check(t, zone, cron) })
		}
	}
	if n != 10 {
		t.Errorf("%d changes, want two of five zones", n)
	}
}

// check checks that a zone has the change, and that schedules handle it as expected.
func (c change) check(t *testing.T, zone, cron string) {
	t.Helper()
	where, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at := utc(t, c.at)
	_, before := at.Add(-time.Second).In(where).Zone()
	_, after := at.In(where).Zone()
	if time.Duration(after)*time.Second != c.offset || before == after {
		t.Fatalf("at %s clocks go from %d to %d s off UTC, want to %s", c.at, before, after, c.offset)
	}
	var got [3]string
	for i, at := range timesIn(t, cron, zone).Next(utc(t, c.daily[0]).Add(-time.Second), 3) {
		got[i] = at.Format(time.RFC3339)
	}
	if diff := cmp.Diff(c.daily, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	year, month, day := utc(t, c.daily[1]).In(where).Date()
	midnight, next := time.Date(year, month, day, 0, 0, 0, 0, where), time.Date(year, month, day+1, 0, 0, 0, 0, where)
	if midnight.Day() != day { // midnight does not exist on that day
		midnight = at
	}
	if all, _ := timesIn(t, "@hourly", zone).Between(midnight, next, 100); len(all) != c.hours {
		t.Errorf("%d firings of every hour that day, want %d", len(all), c.hours)
	}
}

func timesIn(t *testing.T, cron, zone string) firingTimes {
	t.Helper()
	all, err := Rules{Cron: cron, Zone: zone}.times()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
