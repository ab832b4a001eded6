package session

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// ParseTime reads a time: RFC 3339, an age, or a date, also with a time of the day, as
// clocks in a zone show it. It is the first instant at which they show it or, if they are
// put forward past it, the instant of the change. It is the zero time for an empty text.
func ParseTime(cmd *cobra.Command, flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, ok := shownTime(text, zone); ok {
		return t, nil
	}
	if ago, ok := span(text); ok {
		return now.Add(-ago), nil
	}
	return time.Time{}, UsageErrorf(cmd, "--%s %q: want how long ago, as 90s, 2h or 3d, or a time, as 2026-01-31 or 2026-01-31T15:04:05Z",
		flag, text)
}

// ParseEnd reads a time as ParseTime does, but for spans, which are from now on.
func ParseEnd(cmd *cobra.Command, flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, ok := shownTime(text, zone); ok {
		return t, nil
	}
	if from, ok := span(text); ok && from > 0 {
		return now.Add(from), nil
	}
	return time.Time{}, UsageErrorf(cmd, "--%s %q: want for how long, as 2h or 14d, or a time, as 2026-01-31 or 2026-01-31T15:04:05Z", flag,
		text)
}

// shownTime reads a time of RFC 3339, or one as clocks in a zone show it.
func shownTime(text string, zone *time.Location) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, true
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if shown, err := time.Parse(layout, text); err == nil {
			return first(shown, zone), true
		}
	}
	return time.Time{}, false
}

// first returns the first instant at which clocks in a zone show the time that clocks in
// UTC show at another instant, or the first after it.
func first(shown time.Time, zone *time.Location) time.Time {
	t := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), shown.Nanosecond(), zone)
	since, until := t.ZoneBounds()
	_, offset := t.Zone()
	switch wall := t.Add(time.Duration(offset) * time.Second); {
	case wall.After(shown): // no clock ever shows it, and t is past the change
		return since
	case wall.Before(shown):
		return until
	case since.IsZero():
		return t
	}
	_, before := since.Add(-1).Zone()
	if again := t.Add(time.Duration(offset-before) * time.Second); again.Before(since) {
		return again // it is shown twice
	}
	return t
}

// span reads a span of time: 90s, 1h30m or 3d.
func span(text string) (time.Duration, bool) {
	var days int
	if n, err := fmt.Sscanf(text, "%dd", &days); err == nil && n == 1 && days >= 0 && days < 100*365 && fmt.Sprintf("%dd", days) == text {
		return time.Duration(days) * 24 * time.Hour, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}
