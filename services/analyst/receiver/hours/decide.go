// Package hours has ranges of the hours of a day.
package hours

import (
	"fmt"
	"strings"
	"time"
)

// Range is a part of each day, such as 22:00 to 07:00, in a time zone. The zero value is empty.
type Range struct {
	from, to int // minutes after midnight
	zone     *time.Location
}

// Parse reads a range such as "22:00-07:00". The zone is a name such as Europe/Berlin; empty means UTC. An empty text is the empty range.
func Parse(text, zone string) (Range, error) {
	if text == "" {
		return Range{}, nil
	}
	at, err := time.LoadLocation(zone)
	if err != nil {
		return Range{}, fmt.Errorf("time zone %q: not known: use a name such as Europe/Berlin", zone)
	}
	first, second, _ := strings.Cut(text, "-")
	from, errFrom := time.Parse("15:04", strings.TrimSpace(first))
	to, errTo := time.Parse("15:04", strings.TrimSpace(second))
	if errFrom != nil || errTo != nil || from.Equal(to) {
		return Range{}, fmt.Errorf("%q: want two different times such as 22:00-07:00", text)
	}
	return Range{from: from.Hour()*60 + from.Minute(), to: to.Hour()*60 + to.Minute(), zone: at}, nil
}

// End returns when the range ends that now lies in, and false if now lies in none. Where clocks change meanwhile, it ends by the new time.
func (r Range) End(now time.Time) (time.Time, bool) {
	if r.zone == nil {
		return time.Time{}, false
	}
	local := now.In(r.zone)
	minute := local.Hour()*60 + local.Minute()
	day := local.Day()
	switch {
	case r.from < r.to:
		if minute < r.from || minute >= r.to {
			return time.Time{}, false
		}
	case minute >= r.from:
		day++
	case minute >= r.to:
		return time.Time{}, false
	}
	return time.Date(local.Year(), local.Month(), day, r.to/60, r.to%60, 0, 0, r.zone), true
}
