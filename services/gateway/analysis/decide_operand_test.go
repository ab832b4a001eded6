package analysis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// describeOperand describes what an operand names.
func describeOperand(text string, now time.Time) string {
	o, err := parseOperand("old", text, now)
	switch {
	case err != nil:
		return err.Error()
	case o.tasks != nil && o.tasks.until.IsZero():
		return fmt.Sprintf("task %s from %s", o.tasks.task, o.tasks.since.Format(time.RFC3339))
	case o.tasks != nil:
		return fmt.Sprintf("task %s from %s to %s", o.tasks.task, o.tasks.since.Format(time.RFC3339), o.tasks.until.Format(time.RFC3339))
	case o.baseline != "":
		return "baseline " + o.baseline
	}
	return "reference " + o.ref
}

func TestOperandsNameOneSide(t *testing.T) {
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)
	const ranges = ": write TASK@-14d, or TASK@2026-03-01..2026-03-08"
	for text, want := range map[string]string{
		"nightly-41":                      "reference nightly-41",
		"01K8H4FZQH3V7X9Y2M5N8P0R4T":      "reference 01K8H4FZQH3V7X9Y2M5N8P0R4T",
		"baseline:main":                   "baseline main",
		"rates@-14d":                      "task rates from 2026-03-01T12:00:00Z",
		"rates@-90m":                      "task rates from 2026-03-15T10:30:00Z",
		"rates@-14d..-7d":                 "task rates from 2026-03-01T12:00:00Z to 2026-03-08T12:00:00Z",
		"rates@2026-03-01..2026-03-08":    "task rates from 2026-03-01T00:00:00Z to 2026-03-08T00:00:00Z",
		"rates@2026-03-01T10:00:00+02:00": "task rates from 2026-03-01T10:00:00+02:00",
		"a@b@-1d":                         "task a@b from 2026-03-14T12:00:00Z",
		"":                                "old has 0 bytes: give a run, a set, baseline:NAME, task:TASK or TASK@RANGE",
		strings.Repeat("x", 513):          "old has 513 bytes: give a run, a set, baseline:NAME, task:TASK or TASK@RANGE",
		"baseline:":                       `old "" is not the name of a baseline: take at most 63 of a-z, 0-9, "-" and "."`,
		"baseline:a/b":                    `old "a/b" is not the name of a baseline: take at most 63 of a-z, 0-9, "-" and "."`,
		"rates@":                          `old "rates@": "" is neither a date nor a time` + ranges,
		"@-1d":                            `old "@-1d" has no task before the @` + ranges,
		"rates@-7d..-14d":                 `old "rates@-7d..-14d": -7d is not before -14d` + ranges,
		"rates@-7d..-7d":                  `old "rates@-7d..-7d": -7d is not before -7d` + ranges,
		"rates@--7d":                      `old "rates@--7d": "--7d" is not a time before now` + ranges,
		"rates@-99999999d":                `old "rates@-99999999d": "-99999999d" is not a time before now` + ranges,
		"rates@-7x":                       `old "rates@-7x": "-7x" is not a time before now` + ranges,
		"rates@2026-13-01":                `old "rates@2026-13-01": "2026-13-01" is neither a date nor a time` + ranges,
		"rates@2026-03-01..":              `old "rates@2026-03-01..": "" is neither a date nor a time` + ranges,
	} {
		if diff := cmp.Diff(want, describeOperand(text, now)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
