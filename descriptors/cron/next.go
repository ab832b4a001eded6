package cron

import (
	"math/bits"
	"slices"
	"time"
)

// mostYears is how far Next looks: from one February 29 that is a Monday to the
// next it is 40 years, where a century without one lies between.
const mostYears = 41

// Next returns the first time after t at which s fires, in the zone of t; the
// zero time where it never does.
//
// On a day on which clocks change, some times are skipped, and some occur twice. The kind
// of the schedule decides:
//
//   - Times of the day: neither minute nor hour begins with *. Each of them fires once a
//     day: a skipped one at the first minute after the gap, and one that occurs twice at
//     its first occurrence. Several that fall on one minute fire once.
//   - Intervals: minute or hour begins with *. They follow real time: skipped times do
//     not fire, and times that occur twice fire twice.
//
// So a schedule for every night fires every night, and one for every ten minutes
// every ten minutes.
func (s Schedule) Next(t time.Time) time.Time {
	if s.everyInterval {
		return s.nextInterval(t)
	}
	return s.nextTimeOfDay(t)
}

// nextTimeOfDay goes from day to day. It begins a day early: a skipped time may fire in
// the next day.
func (s Schedule) nextTimeOfDay(t time.Time) time.Time {
	year, month, day := t.AddDate(0, 0, -1).Date()
	for range mostYears * 366 {
		d := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
		year, month, day = d.AddDate(0, 0, 1).Date()
		if !s.onDay(d) {
			continue
		}
		if found := s.firstOn(d, t); !found.IsZero() {
			return found
		}
	}
	return time.Time{}
}

// firstOn returns the first firing of the day d after t, zero without one. The zone of d
// does not matter.
func (s Schedule) firstOn(d, t time.Time) time.Time {
	var first time.Time
	before, after := offsetAt(t.Location(), d.Add(-26*time.Hour)), offsetAt(t.Location(), d.Add(50*time.Hour))
	for hours := s.hour; hours != 0; hours &= hours - 1 {
		for minutes := s.minute; minutes != 0; minutes &= minutes - 1 {
			wall := d.Add(time.Duration(bits.TrailingZeros64(hours))*time.Hour + time.Duration(bits.TrailingZeros64(minutes))*time.Minute)
			at := wall.Add(-before)
			if before != after {
				at = instant(wall, t.Location())
			}
			if !at.After(t) || !first.IsZero() && !at.Before(first) {
				continue
			}
			first = at
			if before == after { // no clock change: later matches are later times
				return first.In(t.Location())
			}
		}
	}
	if first.IsZero() {
		return first
	}
	return first.In(t.Location())
}

// nextInterval goes from minute to minute, and skips hours and days that cannot match.
func (s Schedule) nextInterval(t time.Time) time.Time {
	end := t.AddDate(mostYears, 0, 0)
	for t = t.Truncate(time.Minute).Add(time.Minute); t.Before(end); {
		switch {
		case !s.onDay(t):
			t = nextDay(t)
		case s.hour&(1<<t.Hour()) == 0:
			t = stride(t, time.Duration(60-t.Minute())*time.Minute)
		case s.minute&(1<<t.Minute()) == 0:
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// nextDay returns the first minute after t that is of another day.
func nextDay(t time.Time) time.Time {
	return stride(t, time.Duration(23-t.Hour())*time.Hour+time.Duration(60-t.Minute())*time.Minute)
}

// stride returns t later by d, or when clocks are changed where that is before.
func stride(t time.Time, d time.Duration) time.Time {
	if _, end := t.ZoneBounds(); !end.IsZero() && end.Before(t.Add(d)) {
		return end.In(t.Location())
	}
	return t.Add(d)
}

// onDay reports whether the day of t is one of s.
func (s Schedule) onDay(t time.Time) bool {
	day, weekday := s.day&(1<<t.Day()) != 0, s.weekday&(1<<int(t.Weekday())) != 0
	if s.anyDay || s.anyWeekday {
		return day && weekday && s.month&(1<<int(t.Month())) != 0
	}
	return (day || weekday) && s.month&(1<<int(t.Month())) != 0
}

// instant returns when the clocks of a zone show wall, which is given as a time
// in UTC: the first time where they do twice, and where they never do, when they
// first show more.
func instant(wall time.Time, zone *time.Location) time.Time {
	offsets := []time.Duration{offsetAt(zone, wall.Add(-26*time.Hour)), offsetAt(zone, wall.Add(26*time.Hour))}
	slices.Sort(offsets)
	earliest, latest := wall.Add(-offsets[1]), wall.Add(-offsets[0])
	for _, at := range []time.Time{earliest, latest} {
		if offsetAt(zone, at) == wall.Sub(at) {
			return at
		}
	}
	if _, change := earliest.In(zone).ZoneBounds(); !change.IsZero() && !change.After(latest) {
		return change.UTC()
	}
	return latest
}

// offsetAt is by how much the clocks of a zone are ahead of UTC.
func offsetAt(zone *time.Location, at time.Time) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
