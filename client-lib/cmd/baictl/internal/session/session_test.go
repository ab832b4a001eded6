package session_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

func TestATimeIsHowLongAgoOrWhen(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                          {},
		"90s":                       now.Add(-90 * time.Second),
		"1h30m":                     now.Add(-90 * time.Minute),
		"3d":                        now.AddDate(0, 0, -3),
		"0s":                        now,
		"2026-01-31T10:00:00Z":      time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC),
		"2026-01-31T10:00:00+02:00": time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC),
		"2026-01-31":                time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"2026-01-31 10:11:12":       time.Date(2026, 1, 31, 10, 11, 12, 0, time.Local),
		"2026-01-31T10:11":          time.Date(2026, 1, 31, 10, 11, 0, 0, time.Local),
	} {
		got, err := session.ParseTime(&cobra.Command{}, "since", text, now, time.Local)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"-1h", "-3d", "3", "d", "3d4h", "yesterday", "2026-13-01", "99999999999999d", "1e9d", " 1h"} {
		if got, err := session.ParseTime(&cobra.Command{}, "since", text, now, time.Local); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

func TestAnEndIsHowLongFromNowOrWhen(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                     {},
		"1h30m":                now.Add(90 * time.Minute),
		"14d":                  now.AddDate(0, 0, 14),
		"2026-04-01T10:00:00Z": time.Date(2026, 4, 1, 10, 0, 0, 0, time.UTC),
		"2026-04-01":           time.Date(2026, 4, 1, 0, 0, 0, 0, time.Local),
	} {
		got, err := session.ParseEnd(&cobra.Command{}, "until", text, now, time.Local)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"0s", "0d", "-1h", "3", "tomorrow"} {
		if got, err := session.ParseEnd(&cobra.Command{}, "until", text, now, time.Local); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

func TestATimeWithoutAnOffsetIsThatOfClocksInAZone(t *testing.T) {
	for name, tt := range map[string]struct{ zone, text, want string }{
		"a date":                                 {"Asia/Tokyo", "2026-01-31", "2026-01-30T15:00:00Z"},
		"a time":                                 {"Asia/Tokyo", "2026-01-31T10:11", "2026-01-31T01:11:00Z"},
		"a time with an offset":                  {"Asia/Tokyo", "2026-01-31T10:11:12+02:00", "2026-01-31T08:11:12Z"},
		"in UTC":                                 {"UTC", "2026-01-31 10:11:12", "2026-01-31T10:11:12Z"},
		"the day when clocks are put forward":    {"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z"},
		"the day after":                          {"Europe/Berlin", "2026-03-30", "2026-03-29T22:00:00Z"},
		"before they are":                        {"Europe/Berlin", "2026-03-29 01:59:59", "2026-03-29T00:59:59Z"},
		"a time that is left out":                {"Europe/Berlin", "2026-03-29 02:30:00", "2026-03-29T01:00:00Z"},
		"after they are":                         {"Europe/Berlin", "2026-03-29 03:00:00", "2026-03-29T01:00:00Z"},
		"the day when clocks are put back":       {"Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z"},
		"the day after that":                     {"Europe/Berlin", "2026-10-26", "2026-10-25T23:00:00Z"},
		"a time that is there twice":             {"Europe/Berlin", "2026-10-25 02:30:00", "2026-10-25T00:30:00Z"},
		"the same, by its offset":                {"Europe/Berlin", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z"},
		"when it is over":                        {"Europe/Berlin", "2026-10-25 03:00:00", "2026-10-25T02:00:00Z"},
		"twice, where clocks go back at one":     {"America/Havana", "2026-11-01 00:30:00", "2026-11-01T04:30:00Z"},
		"a day that begins an hour late":         {"America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z"},
		"a day whose first hour is there before": {"America/Santiago", "2026-04-05", "2026-04-05T04:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			got, err := session.ParseTime(&cobra.Command{}, "from", tt.text, time.Now(), zone)
			if err != nil || got.UTC().Format(time.RFC3339) != tt.want {
				t.Errorf("%s: %s, %v, want %s", tt.text, got.UTC().Format(time.RFC3339), err, tt.want)
			}
		})
	}
}

func TestObjectsAreJoinedInOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		a    string
		more []session.Entry
		want string
	}{
		"two":              {`{"z":1}`, []session.Entry{{Name: "a", Value: "<&>"}, {Name: "b", Value: nil}}, `{"z":1,"a":"<&>","b":null}`},
		"nothing before":   {`{}`, []session.Entry{{Name: "a", Value: 1.5}}, `{"a":1.5}`},
		"nothing after":    {`{"z":[]}`, nil, `{"z":[]}`},
		"nothing anywhere": {`{}`, nil, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := session.Merge(json.RawMessage(tt.a), tt.more...)
			if diff := cmp.Diff(tt.want, string(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
