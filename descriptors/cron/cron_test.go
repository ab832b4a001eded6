package cron_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/cron"
)

func TestASchedulesMinutesAreThoseThatItsFieldsSay(t *testing.T) {
	at := func(s string) time.Time {
		when, err := time.Parse("Mon 2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	tests := map[string]struct {
		schedule string
		yes, no  string
	}{
		"every minute":                         {"* * * * *", "Mon 2026-03-02 13:37", ""},
		"a minute and an hour":                 {"30 4 * * *", "Mon 2026-03-02 04:30", "Mon 2026-03-02 04:31"},
		"a list":                               {"0,15 * * * *", "Mon 2026-03-02 04:15", "Mon 2026-03-02 04:30"},
		"a range":                              {"0-5 * * * *", "Mon 2026-03-02 04:05", "Mon 2026-03-02 04:06"},
		"a step":                               {"*/20 * * * *", "Mon 2026-03-02 04:40", "Mon 2026-03-02 04:30"},
		"a step in a range":                    {"10-30/10 * * * *", "Mon 2026-03-02 04:30", "Mon 2026-03-02 04:40"},
		"a step from a number on":              {"50/5 * * * *", "Mon 2026-03-02 04:55", "Mon 2026-03-02 04:45"},
		"the name of a month":                  {"0 0 1 JAN *", "Thu 2026-01-01 00:00", "Sun 2026-02-01 00:00"},
		"a range of names":                     {"0 0 * * mon-fri", "Fri 2026-03-06 00:00", "Sat 2026-03-07 00:00"},
		"a week that ends on Sunday":           {"0 0 * * fri-sun", "Sun 2026-03-08 00:00", "Mon 2026-03-02 00:00"},
		"Sunday is 7":                          {"0 0 * * 7", "Sun 2026-03-08 00:00", "Mon 2026-03-09 00:00"},
		"Sunday is 0":                          {"0 0 * * 0", "Sun 2026-03-08 00:00", "Sat 2026-03-07 00:00"},
		"one of two days":                      {"0 0 13 * 5", "Mon 2026-04-13 00:00", "Tue 2026-04-14 00:00"},
		"the other of two days":                {"0 0 13 * 5", "Fri 2026-04-17 00:00", "Thu 2026-04-16 00:00"},
		"a step in days and a weekday is both": {"0 0 */2 * 5", "Fri 2026-04-03 00:00", "Fri 2026-04-10 00:00"},
		"hourly":                               {"@hourly", "Mon 2026-03-02 04:00", "Mon 2026-03-02 04:01"},
		"daily":                                {"@daily", "Mon 2026-03-02 00:00", "Mon 2026-03-02 01:00"},
		"weekly":                               {"@weekly", "Sun 2026-03-08 00:00", "Mon 2026-03-09 00:00"},
		"monthly":                              {"@monthly", "Sun 2026-03-01 00:00", "Mon 2026-03-02 00:00"},
		"yearly":                               {"@yearly", "Thu 2026-01-01 00:00", "Sun 2026-02-01 00:00"},
		"more blanks":                          {"  0\t4  *  * * ", "Mon 2026-03-02 04:00", "Mon 2026-03-02 05:00"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := cron.Parse(tt.schedule)
			if err != nil {
				t.Fatal(err)
			}
			if !s.Matches(at(tt.yes)) {
				t.Errorf("not at %s", tt.yes)
			}
			if tt.no != "" && s.Matches(at(tt.no)) {
				t.Errorf("at %s", tt.no)
			}
		})
	}
}

func TestWhatIsNoScheduleIsSaidWithItsPlace(t *testing.T) {
	tests := map[string]struct{ schedule, want string }{
		"nothing":                   {"", `0: an empty schedule`},
		"a word":                    {"single", `6: 1 of five fields`},
		"four fields":               {"0 0 0 0", `7: 4 of five fields`},
		"six fields":                {"0 0 0 * * *", `10: six fields; there are no seconds and no years`},
		"seven fields":              {"0 0 0 * * * *", `10: 7 fields`},
		"a question mark":           {"* * ? * *", `4: "?" is no day of month`},
		"minute 60":                 {"60 * * * *", `0: "60" is no minute`},
		"hour 24":                   {"0 24 * * *", `2: "24" is no hour`},
		"day 0":                     {"0 0 0 * *", `4: "0" is no day of month`},
		"month 13":                  {"0 0 1 13 *", `6: "13" is no month`},
		"weekday 8":                 {"0 0 * * 8", `8: "8" is no day of week`},
		"a name in the wrong field": {"0 0 mon * *", `4: "mon" is no day of month`},
		"a step of 0":               {"*/0 * * * *", `2: "0" is no step for the minute`},
		"a step without a number":   {"*/ * * * *", `2: "" is no step for the minute`},
		"a step past the end":       {"0 */48 * * *", `4: "48" is no step for the hour`},
		"a range backwards":         {"0 22-6 * * *", `2: the range "22-6" runs backwards`},
		"a sign":                    {"-5 * * * *", `0: "" is no minute`},
		"an empty item":             {"1,,2 * * * *", `2: "" is no minute`},
		"the second item":           {"1,99 * * * *", `2: "99" is no minute`},
		"the last day":              {"0 0 L * *", `4: "L" is no day of month`},
		"reboot":                    {"@reboot", `0: @reboot is no schedule here`},
		"every":                     {"@every 5m", `0: @every 5m is no schedule here`},
		"a zone":                    {"CRON_TZ=UTC 0 0 * * *", `0: CRON_TZ=UTC is no part of a schedule`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := cron.Parse(tt.schedule)
			e, ok := errors.AsType[*cron.Error](err)
			if !ok {
				t.Fatalf("no such error: %v", err)
			}
			if diff := cmp.Diff(tt.want, fmt.Sprintf("%d: %s", e.Offset, e.Message)); diff != "" {
				t.Error(diff)
			}
			if e.Remedy == "" {
				t.Error("no remedy")
			}
		})
	}
}

// TestTheRemedyOfARangeIsASchedule has all ranges of days of the week, and all steps from one on.
func TestTheRemedyOfARangeIsASchedule(t *testing.T) {
	for from := range 8 {
		for to := range 8 {
			wantUsableRemedy(t, fmt.Sprintf("%d-%d", from, to))
			wantUsableRemedy(t, fmt.Sprintf("%d/%d", from, max(to, 1)))
			wantUsableRemedy(t, fmt.Sprintf("%d-%d/2", from, to))
		}
	}
}

// wantUsableRemedy checks that some days of the week, or else the remedy for them, are a schedule.
func wantUsableRemedy(t *testing.T, days string) {
	t.Helper()
	_, err := cron.Parse("0 0 * * " + days)
	e, ok := errors.AsType[*cron.Error](err)
	if !ok {
		return
	}
	remedy, found := strings.CutPrefix(e.Remedy, "write ")
	if _, err := cron.Parse("0 0 * * " + remedy); err != nil || !found {
		t.Errorf("%s: the remedy %q: %v", days, e.Remedy, err)
	}
}

func TestARangeThatBeginsAtSevenBeginsOnSunday(t *testing.T) {
	for days, same := range map[string]string{"7-2": "0-2", "7/1": "*", "7-7": "0", "7/3": "0,3,6", "7": "sun"} {
		got, err := cron.Parse("0 0 * * " + days)
		want, wantErr := cron.Parse("0 0 * * " + same)
		for day := range 14 {
			at := time.Date(2026, 3, 1+day, 0, 0, 0, 0, time.UTC)
			if err != nil || wantErr != nil || got.Matches(at) != want.Matches(at) {
				t.Errorf("%s on %s: %v (%v), want that of %s", days, at.Weekday(), got.Matches(at), err, same)
			}
		}
	}
}

func TestADateThatDoesNotExistNeverFires(t *testing.T) {
	tests := map[string]struct {
		schedule string
		want     bool
	}{
		"February 30":                   {"0 0 30 2 *", true},
		"the 31st of four short months": {"0 0 31 2,4,6,9 *", true},
		"February 29":                   {"0 0 29 2 *", false},
		"February 30 or a Monday":       {"0 0 30 2 1", false},
		"February 28 or 30":             {"0 0 28,30 2 *", false},
		"February 30 in some month":     {"0 0 30 2,3 *", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := cron.Parse(tt.schedule)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Never(); got != tt.want {
				t.Errorf("want %v, got %v", tt.want, got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/5 0-12/3 1,15 jan-mar mon", "@daily", "0 0 ? * *", "a b c d e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := cron.Parse(text)
		if e, ok := errors.AsType[*cron.Error](err); ok && (e.Offset < 0 || e.Offset > len(text)) {
			t.Errorf("%q: the fault is at %d", text, e.Offset)
		}
		if err == nil && s == (cron.Schedule{}) {
			t.Errorf("%q: a schedule that is none", text)
		}
	})
}
