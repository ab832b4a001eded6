package main_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

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

// sweptText is a descriptor with a sweep.
const sweptText = `spec_version = "1.0"
[info]
description = "x"
scheduling = "@daily"
[hardware]
cpus = 1
[env]
docker_image = "alpine:3"
[sweep.product]
"hardware.cpus" = [1, 2]
`

// expectOutput checks that a command succeeded and printed a text.
func expectOutput(t *testing.T, got result, text string) {
	t.Helper()
	if got.code != 0 || !strings.Contains(got.out, text) {
		t.Errorf("want exit 0 and %q on standard output\n%s", text, got)
	}
}

func TestAFiringOfADescriptorWithASweepIsShownAsASet(t *testing.T) {
	p := newFixture(t, newYear)
	const id, made = "7zzz000000000000000000grid", "6sss0000000000000000000009"
	p.AddSchedule(&baiv1.Schedule{
		Id: id, Name: "grid", Owner: "ann", Scheduling: "0 * * * *", Timezone: "UTC", DescriptorToml: sweptText,
		Firings: []*baiv1.Firing{{Time: timestamppb.New(newYear), SetId: made, Phase: baiv1.Phase_PHASE_RUNNING}},
	})
	expectOutput(t, runPiped(t, p.Addr(), "schedule", "get", "grid"), made+"  running")
	got := runPiped(t, p.Addr(), "schedule", "trigger", "grid")
	set := strings.TrimSpace(got.out)
	expectOutput(t, runPiped(t, p.Addr(), "set", "get", set), "schedule     "+id+"\nfiring       202")
	expectOutput(t, runPiped(t, p.Addr(), "schedule", "trigger", "grid", "--idempotency-key", "k", "-o", "json"), `"setId": "6sss`)
	if got := runPiped(t, p.Addr(), "set", "list", "--schedule", "grid", "-o", "name"); got.code != 0 || len(strings.Fields(got.out)) != 2 || !strings.Contains(got.out, set) {
		t.Errorf("its sets: %s", got)
	}
	expectOutput(t, runPiped(t, p.Addr(), "schedule", "delete", "grid", "--cancel-runs"), "schedule grid deleted, 0 runs and 2 sets canceled")
	expectOutput(t, runPiped(t, p.Addr(), "set", "get", set), "canceling")
}
