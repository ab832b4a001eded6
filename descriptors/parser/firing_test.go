package parser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

func TestAScheduleBeginsAndEndsInItsZoneUnlessItSaysAnother(t *testing.T) {
	tests := map[string]struct{ zone, start, end, wantStart, wantEnd string }{
		"dates":             {"Europe/Berlin", "2026-05-01", "2026-12-01", "2026-04-30T22:00:00Z", "2026-11-30T23:00:00Z"},
		"times of day":      {"America/New_York", "2026-05-01T03:00", "2026-05-01T03:00:01", "2026-05-01T07:00:00Z", "2026-05-01T07:00:01Z"},
		"with a blank":      {"UTC", "2026-05-01 03:00", "2026-05-02 03:00:00", "2026-05-01T03:00:00Z", "2026-05-02T03:00:00Z"},
		"zones of theirs":   {"Asia/Tokyo", "2026-05-01T03:00:00Z", "2026-05-02T03:00-07:00", "2026-05-01T03:00:00Z", "2026-05-02T10:00:00Z"},
		"neither":           {"Asia/Tokyo", "", "", "", ""},
		"only an end":       {"UTC", "", "2026-05-01", "", "2026-05-01T00:00:00Z"},
		"a minute in a gap": {"Europe/Berlin", "2026-03-29T02:30", "2026-03-30", "2026-03-29T01:30:00Z", "2026-03-29T22:00:00Z"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			table := "concurrency = 'forbid'\n" + key("start", tt.start) + key("end", tt.end)
			d := parse(t, minimal(map[string]string{"info": fmt.Sprintf("scheduling = '*/1 * * * *'\ntimezone = %q", tt.zone), "schedule": table}))
			start, end := d.Firing()
			if got, want := instant(start)+" "+instant(end), tt.wantStart+" "+tt.wantEnd; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// key is a key with a value; empty without one.
func key(name, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("%s = %q\n", name, value)
}

func instant(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// Schedules of the original system, whose front end and second check accepted different
// forms. A form that both accepted is a schedule here, and so is one that the second
// accepted, except @reboot, which never fired; a form that the second refused is refused.
func TestTheOriginalFormsOfSchedulesAreTakenOrRefusedAsWritten(t *testing.T) {
	tests := map[string]struct{ form, code string }{
		"the sample":                    {"0 0 * * *", ""},
		"not a schedule":                {"single_run", ""},
		"a range, a step from a number": {"0-5 1/2 * * *", ""},
		"a step":                        {"*/1 * * * *", ""},
		"a list":                        {"1,2 * * * *", ""},
		"a word":                        {"@daily", ""},
		"another":                       {"@hourly", ""},
		"a third":                       {"@yearly", ""},
		"names":                         {"0 0 * JAN MON", ""},
		"day 7 of the week":             {"0 0 * * 7", ""},
		"a start of the machine":        {"@reboot", "BAI0024"},
		"four fields":                   {"0 0 0 0", "BAI0024"},
		"a question mark":               {"* * ? * *", "BAI0024"},
		"a word that is none":           {"single", "BAI0024"},
		"nothing":                       {"", "BAI0024"},
		"minute 60":                     {"60 * * * *", "BAI0024"},
		"day 0 of the month":            {"0 0 0 * *", "BAI0024"},
		"no blanks":                     {"*****", "BAI0024"},
		"six fields":                    {"0 0 0 * * *", "BAI0024"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := minimal(map[string]string{"info": fmt.Sprintf("scheduling = %q", tt.form)})
			d, faults := parser.Parse("f.toml", []byte(text))
			var codes []string
			for _, f := range faults.Errors() {
				codes = append(codes, f.Code)
			}
			if got := strings.Join(codes, " "); got != tt.code {
				t.Errorf("%q, want %q", got, tt.code)
			}
			if d != nil && d.Info.Scheduled() != (tt.form != "single_run") {
				t.Errorf("scheduled: %t", d.Info.Scheduled())
			}
		})
	}
}
