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

// End returns when the range ends that now lies in, and false if now lies in none: the first minute after now at which the clocks of the
// zone show a time outside of it. So a range may end twice in the night in which an hour comes twice.
func (r Range) End(now time.Time) (time.Time, bool) {
	if !r.holds(now) {
		return time.Time{}, false
	}
	end := now.Truncate(time.Minute).Add(time.Minute)
	for r.holds(end) {
		end = end.Add(time.Minute)
	}
	return end.In(r.zone), true
}

// holds reports whether the clocks of the zone show a time in the range.
func (r Range) holds(at time.Time) bool {
	if r.zone == nil {
		return false
	}
	local := at.In(r.zone)
	minute := local.Hour()*60 + local.Minute()
	if r.from < r.to {
		return r.from <= minute && minute < r.to
	}
	return r.from <= minute || minute < r.to
}
