package main_test

import (
	"fmt"
	"strings"
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Days are those of the schedule, wherever baictl runs: here, in UTC.
func TestDatesOfABackfillAreThoseOfTheSchedulesZone(t *testing.T) {
	p := newFixture(t, newYear)
	for name, zone := range map[string]string{"tokyo": "Asia/Tokyo", "berlin": "Europe/Berlin"} {
		p.AddSchedule(&baiv1.Schedule{Id: fmt.Sprintf("7zzz%022s", name), Name: name, Owner: "ann", Scheduling: "0 * * * *", Timezone: zone})
	}
	for title, tt := range map[string]struct {
		schedule, from, to string
		firings            int
		second, last       string // the first has its run
	}{
		"a day":              {"tokyo", "2025-12-24", "2025-12-25", 24, "2025-12-24T01:00:00+09:00", "2025-12-24T23:00:00+09:00"},
		"an hour":            {"tokyo", "2025-12-24T10:00", "2025-12-24T12:00", 2, "2025-12-24T11:00:00+09:00", "2025-12-24T11:00:00+09:00"},
		"times with offsets": {"tokyo", "2025-12-24T00:00:00Z", "2025-12-24T03:00:00Z", 3, "2025-12-24T10:00:00+09:00", "2025-12-24T11:00:00+09:00"},
		"a day of which clocks leave an hour out": {"berlin", "2025-03-30", "2025-03-31", 23, "2025-03-30T01:00:00+01:00", "2025-03-30T23:00:00+02:00"},
		"a day that has an hour twice":            {"berlin", "2025-10-26", "2025-10-27", 25, "2025-10-26T01:00:00+02:00", "2025-10-26T23:00:00+01:00"},
	} {
		t.Run(title, func(t *testing.T) {
			got := runPiped(t, p.Addr(), "schedule", "backfill", tt.schedule, "--from", tt.from, "--to", tt.to)
			times := strings.Fields(got.out)
			if got.code != 0 || len(times) != tt.firings-1 || times[0] != tt.second || times[len(times)-1] != tt.last {
				t.Errorf("%d times of %d: %s", len(times), tt.firings-1, got)
			}
		})
	}
}
