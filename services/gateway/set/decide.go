package set

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
)

const (
	defaultParallel = 100 // active runs of a set whose sweep.max_parallel is 0
	maxParallel     = 200 // active runs of a set, so that its document stays small
	maxStarting     = 20  // active runs of a set that are not submitted yet
	maxFailures     = 10  // failures that a set lists
	maxMessage      = 500 // bytes in the message of a failure

	openTime = time.Minute // time for which a finished set stays open; longer than any request takes
)

// State is how far a set has come.
type State string

// States of a set.
const (
	StateRunning   State = "running"   // runs are submitted
	StateStopping  State = "stopping"  // a run failed, and sweep.on_failure is stop: the active runs go on to their ends
	StateCanceling State = "canceling" // a user canceled the set: the active runs are being canceled
	StateFinished  State = "finished"  // all runs that were submitted have ended
)

// ActiveRun is a run of a set that has not ended.
type ActiveRun struct {
	Ordinal  int    `json:"ordinal"`            // place in the order of submission
	Run      string `json:"run,omitempty"`      // empty if the run may not be submitted yet
	Canceled bool   `json:"canceled,omitempty"` // the set has requested the end of the run
}

// Failure is a run of a set that failed or could not be submitted.
type Failure struct {
	Ordinal int    `json:"ordinal"`
	Run     string `json:"run,omitempty"` // empty if the run was refused
	Cell    string `json:"cell"`          // name of the cell
	Message string `json:"message,omitempty"`
}

// Counts are the numbers of runs that have ended, warm-ups included.
type Counts struct {
	Succeeded int                 `json:"succeeded,omitempty"`
	Failed    int                 `json:"failed,omitempty"` // with the runs that were refused
	Canceled  int                 `json:"canceled,omitempty"`
	Classes   map[event.Class]int `json:"classes,omitempty"` // failed runs by the class of the failure
}

// observation is what a pass has found out about the active runs of a set.
type observation struct {
	Submitted map[int]string // runs that were submitted, by ordinal
	Canceled  map[int]bool   // ordinals of the runs that were canceled
	Ended     map[int]ending // runs that have ended or were refused, by ordinal
	Invalid   string         // reason why no more runs can be submitted; empty if they can
}

// ending is the end of a run.
type ending struct {
	Outcome event.Outcome
	Class   event.Class
	Cell    string
	Message string
}

// decision is a set that changes.
type decision struct {
	Set

	changed bool
	failed  bool // a run has failed that had not failed before
}

// decide returns the set after an observation, and reports whether it differs:
//
//   - A run that has ended or was refused is counted once, and is not active any more. The
//     first failures are listed.
//   - If sweep.on_failure is "stop", a failure stops the set: no more runs are submitted.
//   - A running set has as many active runs as sweep.max_parallel allows. A run becomes active
//     before it is submitted, so that a process that crashes overlooks no run, and few are
//     active without being submitted.
//   - The set has finished when it submits no more runs and none is active.
func decide(s Set, seen observation, now time.Time) (next Set, changed bool) {
	d := &decision{Set: s}
	d.Active = make([]ActiveRun, 0, len(s.Active))
	d.Counts.Classes, d.Failures = maps.Clone(s.Counts.Classes), slices.Clone(s.Failures)
	for _, a := range s.Active {
		d.observe(a, seen)
	}
	d.stop(seen)
	d.start()
	if len(d.Active) == 0 && (d.State != StateRunning || d.Next == d.Runs) {
		d.finish(now)
	}
	if d.changed {
		d.Updated = now
	}
	return d.Set, d.changed
}

// observe adds an active run to the set, or counts it if it has ended.
func (d *decision) observe(a ActiveRun, seen observation) {
	if run := seen.Submitted[a.Ordinal]; run != "" && a.Run == "" {
		a.Run, d.changed = run, true
	}
	if seen.Canceled[a.Ordinal] && !a.Canceled {
		a.Canceled, d.changed = true, true
	}
	if end, ended := seen.Ended[a.Ordinal]; ended {
		d.count(a, end)
		return
	}
	d.Active = append(d.Active, a)
}

// count counts a run that has ended.
func (d *decision) count(a ActiveRun, end ending) {
	d.changed = true
	switch end.Outcome {
	case event.Succeeded:
		d.Counts.Succeeded++
		return
	case event.Canceled:
		d.Counts.Canceled++
		return
	case event.Failed:
	}
	d.failed = true
	d.Counts.Failed++
	if d.Counts.Classes == nil {
		d.Counts.Classes = make(map[event.Class]int)
	}
	d.Counts.Classes[end.Class]++
	if len(d.Failures) < maxFailures {
		d.Failures = append(d.Failures, Failure{Ordinal: a.Ordinal, Run: a.Run, Cell: end.Cell, Message: clip(end.Message)})
	}
}

// stop stops a running set if its runs cannot be made, or after a failure if it asks for
// that.
func (d *decision) stop(seen observation) {
	switch {
	case d.State != StateRunning:
		return
	case seen.Invalid != "":
		d.Message = "no more runs can be made: " + clip(seen.Invalid)
	case d.failed && d.OnFailure == descriptors.Stop:
		d.Message = "a run failed, and sweep.on_failure is stop"
	default:
		return
	}
	d.State, d.changed = StateStopping, true
}

// start makes the next runs active.
func (d *decision) start() {
	starting := 0
	for _, a := range d.Active {
		if a.Run == "" {
			starting++
		}
	}
	for d.State == StateRunning && d.Next < d.Runs && len(d.Active) < parallel(d.MaxParallel) && starting < maxStarting {
		d.Active = append(d.Active, ActiveRun{Ordinal: d.Next})
		d.Next, starting, d.changed = d.Next+1, starting+1, true
	}
}

// parallel returns the largest number of active runs.
func parallel(asked int) int { return min(cmp.Or(asked, defaultParallel), maxParallel) }

// finish ends the set.
func (d *decision) finish(now time.Time) {
	switch {
	case d.State == StateCanceling:
		d.Outcome = event.Canceled
	case d.State == StateStopping, d.Counts.Failed > 0:
		d.Outcome = event.Failed
	case d.Counts.Canceled > 0:
		d.Outcome = event.Canceled
	default:
		d.Outcome = event.Succeeded
	}
	d.State, d.Ended, d.changed = StateFinished, now, true
}

// cancel returns the set after a cancel by a user, and reports whether it differs. A set
// that has finished or is being canceled stays as it is.
func (s Set) cancel(by string, now time.Time) (next Set, changed bool) {
	if s.State == StateFinished || s.State == StateCanceling {
		return s, false
	}
	s.State, s.CanceledBy, s.Message, s.Updated = StateCanceling, by, "", now
	return s, true
}

// resume returns the set as it goes on at the next run, and reports whether it differs. A
// running set stays as it is. The error is *StateError for a set that has no more runs to
// submit, or is still being canceled.
func (s Set) resume(now time.Time) (next Set, changed bool, err error) {
	switch {
	case s.State == StateRunning:
		return s, false, nil
	case s.State == StateCanceling:
		return s, false, &StateError{Message: fmt.Sprintf("set %s is being canceled, and %d of its runs have not ended: wait for that, then resume it", s.ID, len(s.Active))}
	case s.Next == s.Runs:
		return s, false, &StateError{Message: fmt.Sprintf("all %d runs of set %s were submitted: it has none to go on with", s.Runs, s.ID)}
	}
	s.State, s.Outcome, s.Message, s.CanceledBy, s.Ended, s.Updated = StateRunning, "", "", "", time.Time{}, now
	return s, true, nil
}

// clip returns the first bytes of a message, without a partial character.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
