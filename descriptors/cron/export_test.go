package cron

import "time"

// Matches reports whether the minute of t, in the zone of t, is one of s.
func (s Schedule) Matches(t time.Time) bool {
	return s.onDay(t) && s.minute&(1<<t.Minute()) != 0 && s.hour&(1<<t.Hour()) != 0
}
