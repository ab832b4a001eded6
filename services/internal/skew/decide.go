// Package skew lets runs wait whose descriptor a service cannot read, though the
// gateway accepted it: one of the two is an older release, so that the run's user has
// done nothing wrong. Such a run is put aside, for this service in whatever process and
// release, until one that can read it comes or its time is over.
package skew

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// defaultDeadline is how long a run waits where limits.pending_deadline says nothing: as long as
// for what never begins.
const defaultDeadline = 10 * time.Minute

// deadlineOf is how long a run of a descriptor waits for a newer release.
func deadlineOf(descriptor string) time.Duration {
	return cmp.Or(parser.LimitsOf([]byte(descriptor)).PendingDeadline, defaultDeadline)
}

// Expired reports whether a run that was put aside at a time has waited for long enough.
func Expired(since time.Time, descriptor string, now time.Time) bool {
	return !now.Before(since.Add(deadlineOf(descriptor)))
}

// WaitMessage tells the user that a run waits for a newer release of a service.
func WaitMessage(service, descriptor string, faults parser.Faults) string {
	return fmt.Sprintf("waiting for a newer %s, %s at most; this one cannot read what the gateway accepted: %s", service,
		deadlineOf(descriptor), FaultLines(faults))
}

// TimeoutMessage tells the user that none came.
func TimeoutMessage(service, descriptor string, faults parser.Faults) string {
	return fmt.Sprintf("no newer %s came within %s; this one cannot read what the gateway accepted: %s", service,
		deadlineOf(descriptor), FaultLines(faults))
}

// FaultLines says what is wrong with a descriptor, a line for each of the first faults.
func FaultLines(faults parser.Faults) string {
	const most = 20
	errs := faults.Errors()
	lines := make([]string, 0, most+1)
	for _, f := range errs[:min(len(errs), most)] {
		lines = append(lines, f.String())
	}
	if more := len(errs) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}
