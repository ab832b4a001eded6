package verdict

import (
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// OnDefaultEngine reports whether an attempt was launched on the default engine, which launches call by its kind.
func OnDefaultEngine(l event.Launched) bool {
	return l.Cluster == "" || l.Cluster == "local" || l.Cluster == "kubernetes"
}

// OutageStatus returns the status of a launched attempt whose engine has not answered since a time. The run stays in its phase, for its
// pods may go on. It is false for a run that has ended, or has another attempt.
func OutageStatus(l event.Launched, run store.Run, since time.Time, failure error) (event.Status, bool) {
	if run.Phase == event.PhaseFinished || run.Attempt > l.Attempt {
		return event.Status{}, false
	}
	phase, reason := run.Phase, run.Reason
	if run.Attempt < l.Attempt || phase == "" {
		phase, reason = event.PhasePending, ""
	}
	return event.Status{
		Header: l.Cause("status/outage", formatTime(since)), Phase: phase, Reason: reason,
		Message: fmt.Sprintf("engine %s does not answer since %s, and the pods may go on there: %v", l.Cluster,
			since.UTC().Format(time.RFC3339), failure),
	}, true
}

// AfterOutage returns the status that follows an outage, with an ID of its own: the same status may have been published before the outage.
func AfterOutage(events []event.Event, since time.Time) []event.Event {
	if since.IsZero() || len(events) == 0 {
		return events
	}
	if s, ok := events[0].(event.Status); ok {
		s.Header = s.Cause("status/answered", formatTime(since))
		return append([]event.Event{s}, events[1:]...)
	}
	return events
}
