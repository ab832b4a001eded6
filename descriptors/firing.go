package descriptors

import (
	"fmt"
	"time"
	_ "time/tzdata" // the zones of Info.Timezone load on every machine

	"github.com/benchmark-ai/bai/descriptors/internal/types"
)

// Zone is the zone in which the schedule is read. It fails only for a name that
// package parser refuses.
func (i Info) Zone() (*time.Location, error) {
	zone, err := time.LoadLocation(i.Timezone)
	if err != nil {
		return nil, fmt.Errorf("read time zone %q: %w", i.Timezone, err)
	}
	return zone, nil
}

// Firing are the first time at which a schedule may fire and the time from which
// on it does not, zero where the descriptor does not say it.
func (d *Descriptor) Firing() (start, end time.Time) {
	zone, err := d.Info.Zone()
	if err != nil {
		zone = time.UTC
	}
	start, _ = types.ParseTimestamp(d.Schedule.Start, zone) // zero where there is none
	end, _ = types.ParseTimestamp(d.Schedule.End, zone)
	return start, end
}
