package hours

import (
	"strings"
	"testing"
	"time"
)

func TestWhenARangeEnds(t *testing.T) {
	for name, tt := range map[string]struct{ text, zone, now, want string }{
		"outside of a range of the day":                      {"09:00-17:00", "", "2026-03-01T08:59:59Z", ""},
		"in a range of the day":                              {"09:00-17:00", "", "2026-03-01T09:00:00Z", "2026-03-01T17:00:00Z"},
		"at the end of a range":                              {"09:00-17:00", "", "2026-03-01T17:00:00Z", ""},
		"before midnight in a range of the night":            {"22:00-07:00", "", "2026-02-28T23:00:00Z", "2026-03-01T07:00:00Z"},
		"after midnight in a range of the night":             {"22:00-07:00", "", "2026-03-01T06:00:00Z", "2026-03-01T07:00:00Z"},
		"outside of a range of the night":                    {"22:00-07:00", "", "2026-03-01T12:00:00Z", ""},
		"a range is by the clock of its time zone":           {"22:00-07:00", "Europe/Berlin", "2026-01-10T21:30:00Z", "2026-01-11T06:00:00Z"},
		"an hour is missing in the night":                    {"22:00-07:00", "Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"},
		"an hour comes twice in the night":                   {"22:00-07:00", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T06:00:00Z"},
		"the hour that comes twice, the first time":          {"22:00-01:30", "America/New_York", "2026-11-01T05:10:00Z", "2026-11-01T05:30:00Z"},
		"the hour that comes twice, after the end":           {"22:00-01:30", "America/New_York", "2026-11-01T05:40:00Z", ""},
		"the hour that comes twice, the second time":         {"22:00-01:30", "America/New_York", "2026-11-01T06:10:00Z", "2026-11-01T06:30:00Z"},
		"the second time east of Greenwich":                  {"22:00-02:30", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z"},
		"an end that does not come is that of the gap":       {"22:00-02:30", "America/New_York", "2026-03-08T06:40:00Z", "2026-03-08T07:00:00Z"},
		"an end that does not come, east of Greenwich":       {"22:00-02:30", "Europe/Berlin", "2026-03-29T00:40:00Z", "2026-03-29T01:00:00Z"},
		"a range ends at its minute, whatever the second is": {"09:00-17:00", "", "2026-03-01T16:59:59Z", "2026-03-01T17:00:00Z"},
		"an empty range":                                     {"", "", "2026-03-01T12:00:00Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Parse(tt.text, tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			now, err := time.Parse(time.RFC3339, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if end, in := r.End(now); in {
				got = end.UTC().Format(time.RFC3339)
			}
			if got != tt.want {
				t.Errorf("ends at %q, want %q", got, tt.want)
			}
		})
	}
}

func TestARangeThatIsNoneIsSaid(t *testing.T) {
	for _, tt := range [][2]string{{"22-07", ""}, {"22:00", ""}, {"22:00-22:00", ""}, {"22:00-25:00", ""}, {"22:00-07:00", "Mars/Olympus"}} {
		if _, err := Parse(tt[0], tt[1]); err == nil || !strings.Contains(err.Error(), "\"") {
			t.Errorf("Parse(%q, %q): %v", tt[0], tt[1], err)
		}
	}
}

func FuzzARangeEndsLaterThanNowAndWithinADay(f *testing.F) {
	f.Add("22:00-07:00", int64(1772366400))
	f.Add("09:00-17:00", int64(0))
	f.Add("22:00-01:30", int64(1793513400))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		for zone, longest := range map[string]time.Duration{"UTC": 24 * time.Hour, "America/New_York": 49 * time.Hour, "Australia/Lord_Howe": 49 * time.Hour} {
			r, err := Parse(text, zone)
			if err != nil {
				return
			}
			now := time.Unix(seconds%(1<<33), 0)
			if end, in := r.End(now); in && (!end.After(now) || end.Sub(now) > longest) {
				t.Errorf("%q in %s at %s ends at %s", text, zone, now, end)
			}
		}
	})
}
