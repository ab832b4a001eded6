package printer

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones of schedules are known on every machine

	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// TimeIn is a time in a zone of the IANA database, RFC 3339; in UTC where that zone
// is not known, and empty for none.
func TimeIn(t *timestamppb.Timestamp, zone string) string {
	if t == nil {
		return ""
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc = time.UTC
	}
	return t.AsTime().In(loc).Format(time.RFC3339)
}

// Title is the name of a schedule, or its ID without one.
func Title(s *baiv1.Schedule) string {
	if s.GetName() != "" {
		return s.GetName()
	}
	return s.GetId()
}

// NextFiring says when a schedule fires next.
func NextFiring(s *baiv1.Schedule) string {
	var times []string
	for _, at := range s.GetNextFirings() {
		times = append(times, TimeIn(at, s.GetTimezone()))
	}
	switch {
	case s.GetPaused():
		return "is paused"
	case len(times) == 0:
		return "never fires again"
	}
	return "fires next at " + strings.Join(times, ", ")
}

// Schedule is a schedule on one line.
func Schedule(s *baiv1.Schedule) string {
	return Clean(fmt.Sprintf("schedule %s, version %d, %s", Title(s), s.GetVersion(), NextFiring(s)))
}
