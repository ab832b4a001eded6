package cron_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tables are those of every machine

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/cron"
)

func parse(t *testing.T, text string) cron.Schedule {
	t.Helper()
	s, err := cron.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func in(t *testing.T, zone, text string) time.Time {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse("2006-01-02T15:04:05-0700", text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04-07:00", text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return at.In(loc)
}

// firings are the times after from at which a schedule fires, up to and with to.
func firings(s cron.Schedule, from, to time.Time) []string {
	var all []string
	for at := s.Next(from); !at.IsZero() && !at.After(to); at = s.Next(at) {
		all = append(all, at.Format("01-02 15:04-07:00"))
	}
	return all
}

// Each change of clocks has a row for each kind of schedule.
func TestOnADayOfChangedClocksEachTimeOfTheDayIsOnceAndARhythmGoesOn(t *testing.T) {
	tests := map[string]struct {
		zone, schedule, from, to string
		want                     string
	}{
		"New York, March: a time that is not there": {
			"America/New_York", "30 2 * * *", "2026-03-07T12:00-05:00", "2026-03-09T12:00-04:00",
			"03-08 03:00-04:00, 03-09 02:30-04:00",
		},
		"New York, March: two times that come to one minute": {
			"America/New_York", "15,45 2 * * *", "2026-03-08T00:00-05:00", "2026-03-09T02:20-04:00",
			"03-08 03:00-04:00, 03-09 02:15-04:00",
		},
		"New York, March: a time that is not there, and the one to which it comes": {
			"America/New_York", "0 2,3 * * *", "2026-03-08T00:00-05:00", "2026-03-09T04:00-04:00",
			"03-08 03:00-04:00, 03-09 02:00-04:00, 03-09 03:00-04:00",
		},
		"New York, March: every half hour": {
			"America/New_York", "*/30 * * * *", "2026-03-08T01:00-05:00", "2026-03-08T04:00-04:00",
			"03-08 01:30-05:00, 03-08 03:00-04:00, 03-08 03:30-04:00, 03-08 04:00-04:00",
		},
		"New York, March: every half hour of an hour that is not there": {
			"America/New_York", "*/30 2 * * *", "2026-03-08T00:00-05:00", "2026-03-09T02:10-04:00",
			"03-09 02:00-04:00",
		},
		"New York, March: a time before the change": {
			"America/New_York", "59 1 * * *", "2026-03-08T00:00-05:00", "2026-03-09T02:00-04:00",
			"03-08 01:59-05:00, 03-09 01:59-04:00",
		},
		"New York, November: a time that is there twice": {
			"America/New_York", "30 1 * * *", "2026-11-01T00:00-04:00", "2026-11-02T12:00-05:00",
			"11-01 01:30-04:00, 11-02 01:30-05:00",
		},
		"New York, November: every half hour": {
			"America/New_York", "*/30 * * * *", "2026-11-01T00:30-04:00", "2026-11-01T02:00-05:00",
			"11-01 01:00-04:00, 11-01 01:30-04:00, 11-01 01:00-05:00, 11-01 01:30-05:00, 11-01 02:00-05:00",
		},
		"New York, November: every hour": {
			"America/New_York", "@hourly", "2026-11-01T00:00-04:00", "2026-11-01T02:00-05:00",
			"11-01 01:00-04:00, 11-01 01:00-05:00, 11-01 02:00-05:00",
		},
		"New York, November: the hour of the change": {
			"America/New_York", "0 2 * * *", "2026-11-01T00:00-04:00", "2026-11-02T12:00-05:00",
			"11-01 02:00-05:00, 11-02 02:00-05:00",
		},

		"Berlin, March: a time that is not there": {
			"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00+01:00", "2026-03-30T12:00+02:00",
			"03-29 03:00+02:00, 03-30 02:30+02:00",
		},
		"Berlin, March: not a day of the schedule": {
			"Europe/Berlin", "30 2 * * mon-fri", "2026-03-28T12:00+01:00", "2026-03-30T12:00+02:00",
			"03-30 02:30+02:00",
		},
		"Berlin, March: every twenty minutes": {
			"Europe/Berlin", "*/20 * * * *", "2026-03-29T01:20+01:00", "2026-03-29T03:20+02:00",
			"03-29 01:40+01:00, 03-29 03:00+02:00, 03-29 03:20+02:00",
		},
		"Berlin, October: a time that is there twice": {
			"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00+02:00", "2026-10-26T12:00+01:00",
			"10-25 02:30+02:00, 10-26 02:30+01:00",
		},
		"Berlin, October: every twenty minutes of the hour that is there twice": {
			"Europe/Berlin", "*/20 2 * * *", "2026-10-25T00:00+02:00", "2026-10-25T12:00+01:00",
			"10-25 02:00+02:00, 10-25 02:20+02:00, 10-25 02:40+02:00, 10-25 02:00+01:00, 10-25 02:20+01:00, 10-25 02:40+01:00",
		},

		"Lord Howe, October: half an hour is not there": {
			"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00+10:30", "2026-10-05T12:00+11:00",
			"10-04 02:30+11:00, 10-05 02:15+11:00",
		},
		"Lord Howe, October: the other half is": {
			"Australia/Lord_Howe", "45 2 * * *", "2026-10-03T12:00+10:30", "2026-10-05T12:00+11:00",
			"10-04 02:45+11:00, 10-05 02:45+11:00",
		},
		"Lord Howe, October: every quarter of an hour": {
			"Australia/Lord_Howe", "*/15 * * * *", "2026-10-04T01:30+10:30", "2026-10-04T03:00+11:00",
			"10-04 01:45+10:30, 10-04 02:30+11:00, 10-04 02:45+11:00, 10-04 03:00+11:00",
		},
		"Lord Howe, April: half an hour is there twice": {
			"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00+11:00", "2026-04-06T12:00+10:30",
			"04-05 01:45+11:00, 04-06 01:45+10:30",
		},
		"Lord Howe, April: every quarter of an hour": {
			"Australia/Lord_Howe", "*/15 * * * *", "2026-04-05T01:15+11:00", "2026-04-05T02:00+10:30",
			"04-05 01:30+11:00, 04-05 01:45+11:00, 04-05 01:30+10:30, 04-05 01:45+10:30, 04-05 02:00+10:30",
		},

		"Santiago, September: midnight is not there": {
			"America/Santiago", "@daily", "2026-09-04T12:00-04:00", "2026-09-07T12:00-03:00",
			"09-05 00:00-04:00, 09-06 01:00-03:00, 09-07 00:00-03:00",
		},
		"Santiago, September: every week": {
			"America/Santiago", "@weekly", "2026-09-04T12:00-04:00", "2026-09-13T12:00-03:00",
			"09-06 01:00-03:00, 09-13 00:00-03:00",
		},
		"Santiago, September: every half hour of Sunday": {
			"America/Santiago", "*/30 * * * sun", "2026-09-05T23:00-04:00", "2026-09-06T02:00-03:00",
			"09-06 01:00-03:00, 09-06 01:30-03:00, 09-06 02:00-03:00",
		},
		"Santiago, April: the last hour of the day is there twice": {
			"America/Santiago", "30 23 * * *", "2026-04-03T12:00-03:00", "2026-04-06T12:00-04:00",
			"04-03 23:30-03:00, 04-04 23:30-03:00, 04-05 23:30-04:00",
		},
		"Santiago, April: every hour": {
			"America/Santiago", "0 * * * *", "2026-04-04T22:00-03:00", "2026-04-05T01:00-04:00",
			"04-04 23:00-03:00, 04-04 23:00-04:00, 04-05 00:00-04:00, 04-05 01:00-04:00",
		},

		"Cairo, April: midnight of a Friday is not there": {
			"Africa/Cairo", "0 0 * * 5", "2026-04-20T12:00+02:00", "2026-05-02T12:00+03:00",
			"04-24 01:00+03:00, 05-01 00:00+03:00",
		},
		"Cairo, April: every month": {
			"Africa/Cairo", "@monthly", "2026-03-31T12:00+02:00", "2026-05-02T12:00+03:00",
			"04-01 00:00+02:00, 05-01 00:00+03:00",
		},
		"Cairo, October: the last hour of a Thursday is there twice": {
			"Africa/Cairo", "59 23 * * thu", "2026-10-28T12:00+03:00", "2026-11-06T12:00+02:00",
			"10-29 23:59+03:00, 11-05 23:59+02:00",
		},
		"Cairo, October: every half hour": {
			"Africa/Cairo", "*/30 * * * *", "2026-10-29T22:30+03:00", "2026-10-30T00:00+02:00",
			"10-29 23:00+03:00, 10-29 23:30+03:00, 10-29 23:00+02:00, 10-29 23:30+02:00, 10-30 00:00+02:00",
		},

		"Apia, 2011: a day that is not there": {
			"Pacific/Apia", "0 3 * * *", "2011-12-29T00:00-10:00", "2012-01-01T12:00+14:00",
			"12-29 03:00-10:00, 12-31 00:00+14:00, 12-31 03:00+14:00, 01-01 03:00+14:00",
		},
		"Kolkata: no clock is ever changed": {
			"Asia/Kolkata", "30 2 * * *", "2026-03-28T12:00+05:30", "2026-03-30T12:00+05:30",
			"03-29 02:30+05:30, 03-30 02:30+05:30",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := firings(parse(t, tt.schedule), in(t, tt.zone, tt.from), in(t, tt.zone, tt.to))
			if diff := cmp.Diff(strings.Split(tt.want, ", "), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The cases that robfig/cron publishes for New York in 2012, which Kubernetes' CronJob
// inherits. Intervals agree with this package. Times of the day do not: robfig leaves out
// a skipped time, and fires twice at a time that occurs twice. This package follows
// cronie and Debian's cron, as published in cron(8): a skipped time fires at once, and no
// time fires twice.
func TestThePublishedCasesOfOtherProgramsAreAnsweredAsSaid(t *testing.T) {
	tests := []struct{ from, schedule, robfig, want string }{
		{"2012-03-11T00:00:00-0500", "30 2 11 mar *", "2013-03-11T02:30:00-0400", "2012-03-11T03:00:00-0400"},
		{"2012-03-11T00:00:00-0500", "0 * * * *", "2012-03-11T01:00:00-0500", "2012-03-11T01:00:00-0500"},
		{"2012-03-11T01:00:00-0500", "0 * * * *", "2012-03-11T03:00:00-0400", "2012-03-11T03:00:00-0400"},
		{"2012-03-11T03:00:00-0400", "0 * * * *", "2012-03-11T04:00:00-0400", "2012-03-11T04:00:00-0400"},
		{"2012-03-11T00:00:00-0500", "0 1 * * *", "2012-03-11T01:00:00-0500", "2012-03-11T01:00:00-0500"},
		{"2012-03-11T01:00:00-0500", "0 1 * * *", "2012-03-12T01:00:00-0400", "2012-03-12T01:00:00-0400"},
		{"2012-03-11T00:00:00-0500", "0 2 * * *", "2012-03-12T02:00:00-0400", "2012-03-11T03:00:00-0400"},
		{"2012-11-04T00:00:00-0400", "30 2 4 nov *", "2012-11-04T02:30:00-0500", "2012-11-04T02:30:00-0500"},
		{"2012-11-04T01:45:00-0400", "30 1 4 nov *", "2012-11-04T01:30:00-0500", "2013-11-04T01:30:00-0500"},
		{"2012-11-04T00:00:00-0400", "0 * * * *", "2012-11-04T01:00:00-0400", "2012-11-04T01:00:00-0400"},
		{"2012-11-04T01:00:00-0400", "0 * * * *", "2012-11-04T01:00:00-0500", "2012-11-04T01:00:00-0500"},
		{"2012-11-04T01:00:00-0500", "0 * * * *", "2012-11-04T02:00:00-0500", "2012-11-04T02:00:00-0500"},
		{"2012-11-04T00:00:00-0400", "0 1 * * *", "2012-11-04T01:00:00-0400", "2012-11-04T01:00:00-0400"},
		{"2012-11-04T01:00:00-0400", "0 1 * * *", "2012-11-04T01:00:00-0500", "2012-11-05T01:00:00-0500"},
		{"2012-11-04T01:00:00-0500", "0 1 * * *", "2012-11-05T01:00:00-0500", "2012-11-05T01:00:00-0500"},
		{"2012-11-04T00:00:00-0400", "0 2 * * *", "2012-11-04T02:00:00-0500", "2012-11-04T02:00:00-0500"},
		{"2012-11-04T02:00:00-0500", "0 2 * * *", "2012-11-05T02:00:00-0500", "2012-11-05T02:00:00-0500"},
		{"2012-11-04T00:00:00-0400", "0 3 * * *", "2012-11-04T03:00:00-0500", "2012-11-04T03:00:00-0500"},
		{"2012-11-04T03:00:00-0500", "0 3 * * *", "2012-11-05T03:00:00-0500", "2012-11-05T03:00:00-0500"},
		{"2012-07-09T23:35:00-0400", "0 0 29 feb *", "2016-02-29T00:00:00-0500", "2016-02-29T00:00:00-0500"},
		{"2012-12-31T23:59:45-0500", "* * * * *", "2013-01-01T00:00:00-0500", "2013-01-01T00:00:00-0500"},
	}
	for _, tt := range tests {
		s := parse(t, tt.schedule)
		got := s.Next(in(t, "America/New_York", tt.from)).Format("2006-01-02T15:04:05-0700")
		if got != tt.want {
			t.Errorf("%s after %s: %s, want %s", tt.schedule, tt.from, got, tt.want)
		}
		if rhythm := strings.Contains(tt.schedule, "* * * *"); rhythm && tt.want != tt.robfig {
			t.Errorf("%s after %s: a rhythm is answered as elsewhere", tt.schedule, tt.from)
		}
	}
}

func TestTheNextTimeIsFarAwayOrNever(t *testing.T) {
	tests := map[string]struct{ schedule, from, want string }{
		"February 29":                {"0 0 29 2 *", "2024-02-29T00:00+00:00", "2028-02-29"},
		"over a year without one":    {"0 0 29 2 *", "2096-02-29T00:00+00:00", "2104-02-29"},
		"a rhythm that is far away":  {"*/10 * 29 2 *", "2097-01-01T00:00+00:00", "2104-02-29"},
		"February 30":                {"0 0 30 2 *", "2026-01-01T00:00+00:00", "0001-01-01"},
		"a rhythm on February 30":    {"* * 30 2 *", "2026-01-01T00:00+00:00", "0001-01-01"},
		"a weekday, or February 30":  {"0 0 30 2 mon", "2026-01-01T00:00+00:00", "2026-02-02"},
		"every 29 February a Sunday": {"0 0 29 2 */7", "2026-01-01T00:00+00:00", "2032-02-29"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, tt.schedule).Next(in(t, "UTC", tt.from)).Format(time.DateOnly); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// Where no clock is changed both ways of looking are that of a clock: a minute
// that matches.
func TestNextIsTheNextMinuteThatMatches(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that can be repeated
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	for range 300 {
		text := strings.Join([]string{
			pick("*", "*/7", "0", "13,14", "5-9", "50/3"), pick("*", "*/5", "0", "3", "22-23", "1,2,4"),
			pick("*", "*", "1", "*/9", "28-31"), pick("*", "*", "2", "jan-mar"), pick("*", "*", "mon", "sat-sun", "*/3"),
		}, " ")
		s := parse(t, text)
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(60*24*3600)) * time.Second)
		got := s.Next(from)
		for at := from.Truncate(time.Minute).Add(time.Minute); at.Before(from.AddDate(0, 0, 60)); at = at.Add(time.Minute) {
			if !s.Matches(at) {
				continue
			}
			if !got.Equal(at) {
				t.Fatalf("%s after %s: %s, want %s", text, from, got, at)
			}
			break
		}
		if !got.IsZero() && !s.Matches(got) {
			t.Fatalf("%s after %s: %s is no such minute", text, from, got)
		}
	}
}

// Whatever the zone and the schedule, time goes forward and a second look
// begins where the first ended.
func FuzzNext(f *testing.F) {
	f.Add("30 2 * * *", "Europe/Berlin", int64(1774738800))
	f.Add("*/15 * * * *", "Australia/Lord_Howe", int64(1775313000))
	f.Add("0 0 29 2 *", "Pacific/Apia", int64(1325000000))
	f.Fuzz(func(t *testing.T, text, zone string, from int64) {
		s, err := cron.Parse(text)
		loc, unknown := time.LoadLocation(zone)
		if err != nil || unknown != nil || from < 0 || from > 4e9 {
			return
		}
		start := time.Unix(from, 0).In(loc)
		next := s.Next(start)
		if next.IsZero() {
			return
		}
		if !next.After(start) || next.Second() != 0 && from > 2e8 {
			t.Errorf("%s after %s: %s", text, start, next)
		}
		if between := s.Next(start.Add(next.Sub(start) / 2)); !between.Equal(next) {
			t.Errorf("%s after %s: %s, and half way there %s", text, start, next, between)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"* * * * *", "0 3 * * mon-fri", "0 0 29 2 *"} {
		b.Run(text, func(b *testing.B) {
			s, err := cron.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for b.Loop() {
				at = s.Next(at)
				if at.Year() > 2060 {
					at = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
				}
			}
		})
	}
}
