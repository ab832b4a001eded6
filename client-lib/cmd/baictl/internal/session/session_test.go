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
		got, err := session.Instant(&cobra.Command{}, "since", text, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"-1h", "-3d", "3", "d", "3d4h", "yesterday", "2026-13-01", "99999999999999d", "1e9d", " 1h"} {
		if got, err := session.Instant(&cobra.Command{}, "since", text, now); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
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
