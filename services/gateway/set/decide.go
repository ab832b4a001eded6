package set

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	maxStarting = 20  // active runs of a set that are not submitted yet
	maxFailures = 10  // failures that a set lists
	maxMessage  = 500 // bytes in the message of a failure

	maxPlanBytes = 128 << 20 // estimated size of the plans that a process keeps in memory

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
	Ordinal    int    `json:"ordinal"`
	Run        string `json:"run,omitempty"`        // empty if the run was refused
	Cell       string `json:"cell"`                 // name of the cell
	Repetition int    `json:"repetition,omitempty"` // number in the cell; 0 in documents of older releases, and if no more runs can be made
	Warmup     bool   `json:"warmup,omitempty"`
	Message    string `json:"message,omitempty"`
}

// Counts are the numbers of runs that have ended, warm-ups included.
type Counts struct {
	Succeeded int                 `json:"succeeded,omitempty"`
	Failed    int                 `json:"failed,omitempty"` // with the runs that were refused
	Canceled  int                 `json:"canceled,omitempty"`
	Classes   map[event.Class]int `json:"classes,omitempty"` // failed runs by the class of the failure
}

// Times are the times from the submission of runs to their ends.
type Times struct {
	Runs    int     `json:"runs"`
	Seconds float64 `json:"seconds"` // sum
}

// observation is what a pass has found out about the active runs of a set.
type observation struct {
	Submitted map[int]string // runs that were submitted, by ordinal
	Withdrawn map[int]bool   // ordinals of the runs that were withdrawn before they were submitted
	Canceled  map[int]bool   // ordinals of the runs that were canceled
	Ended     map[int]ending // runs that have ended or were refused, by ordinal
	Invalid   string         // reason why no more runs can be submitted; empty if they can

	Plan  *sweep.Plan          // nil if Invalid is set
	Cells map[int]cellDecision // open cells whose repetitions are all known, by cell
}

// ending is the end of a run.
type ending struct {
	Outcome event.Outcome
	Class   event.Class
	Cell    string
	Message string

	Repetition int // number in the cell; 0: not known
	Warmup     bool

	Time time.Duration // from the submission to the end; 0: not known
}

// decision is a set that changes.
type decision struct {
	Set

	changed bool
	failed  bool // a run has failed that had not failed before

	ready map[int]bool // open cells whose next repetition is made
}

// decide returns the set after an observation, and reports whether it differs:
//
//   - A run that has ended or was refused is counted once, and is not active any more. The
//     first failures are listed.
//   - If sweep.on_failure is "stop", a failure stops the set: no more runs are submitted.
//   - A running set has as many active runs as sweep.max_parallel allows. A run becomes active
//     before it is submitted, so that a process that crashes overlooks no run, and few are
//     active without being submitted.
//   - With sweep.stop_when, a repetition after the first Min waits for those before it in its
//     cell: the cell is open. Once these are known, the repetition is made, or the cell has
//     enough, and its further ones are skipped. Other cells go on meanwhile.
//   - Active runs that were not submitted before the set was canceled or stopped are
//     withdrawn. They are not counted, and are the first ones that a resumed set makes.
//   - The set has finished when it submits no more runs and none is active.
func decide(s Set, seen observation, now time.Time) (next Set, changed bool) {
	d := &decision{Set: s}
	d.Active = make([]ActiveRun, 0, len(s.Active))
	d.Counts.Classes, d.Failures, d.Withdrawn = maps.Clone(s.Counts.Classes), slices.Clone(s.Failures), slices.Clone(s.Withdrawn)
	for _, a := range s.Active {
		d.observe(a, seen)
	}
	d.stop(seen)
	d.closeCells(seen)
	d.start(seen)
	if len(d.Active) == 0 && (d.State != StateRunning || d.allMade()) {
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
	if seen.Withdrawn[a.Ordinal] {
		d.Withdrawn, d.changed = append(d.Withdrawn, a.Ordinal), true
		return
	}
	d.Active = append(d.Active, a)
}

// count counts a run that has ended.
func (d *decision) count(a ActiveRun, end ending) {
	d.changed = true
	if end.Time > 0 {
		d.Times.Runs, d.Times.Seconds = d.Times.Runs+1, d.Times.Seconds+end.Time.Seconds()
	}
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
	if a.Run == "" {
		d.Refused = withBit(d.Refused, a.Ordinal)
	}
	if len(d.Failures) < maxFailures {
		d.Failures = append(d.Failures, Failure{
			Ordinal: a.Ordinal, Run: a.Run, Cell: end.Cell, Repetition: end.Repetition, Warmup: end.Warmup, Message: clip(end.Message),
		})
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
func (d *decision) start(seen observation) {
	starting := 0
	for _, a := range d.Active {
		if a.Run == "" {
			starting++
		}
	}
	for d.State == StateRunning && len(d.Active) < d.Parallel() && starting < maxStarting {
		ordinal, found := d.next(seen)
		if !found {
			return
		}
		d.Active = append(d.Active, ActiveRun{Ordinal: ordinal})
		starting, d.changed = starting+1, true
	}
}

// next returns the ordinal of the next run to be made active, if there is one: one that was
// withdrawn, or of an open cell, else in the order of the sweep.
func (d *decision) next(seen observation) (ordinal int, found bool) {
	if len(d.Withdrawn) > 0 {
		ordinal, d.Withdrawn = d.Withdrawn[0], d.Withdrawn[1:]
		return ordinal, true
	}
	if d.StopWhen != nil {
		if ordinal, found = d.nextOfOpen(seen.Plan); found {
			return ordinal, true
		}
		if !d.skipWaiting(seen.Plan) {
			return 0, false
		}
	}
	if d.Next == d.Runs {
		return 0, false
	}
	d.Next++
	return d.Next - 1, true
}

// Parallel returns the largest number of active runs. It is bounded, so that the document of the set stays small.
func (s Set) Parallel() int {
	return min(cmp.Or(s.MaxParallel, descriptors.DefaultActiveRuns), descriptors.MaxActiveRuns)
}

// bytes estimates the memory that a request takes with its plan: a value in a list of a sweep takes many times its text.
func (l loaded) bytes() int {
	size := 32<<10 + 80*len(l.request.Descriptor) + 8*len(l.selected)
	if l.plan != nil {
		size += 16*l.plan.Cells() + 4*l.plan.Runs()
	}
	return size
}

// isIdle reports whether a pass has nothing to do for a set as long as none of its active runs has ended: all of them are submitted, none
// is still to be canceled, no further one can start, and no cell waits for values.
func (s Set) isIdle() bool {
	for _, a := range s.Active {
		if a.Run == "" || s.State == StateCanceling && !a.Canceled {
			return false
		}
	}
	switch s.State {
	case StateRunning:
		return len(s.Active) > 0 && len(s.Open) == 0 && (s.allMade() || len(s.Active) >= s.Parallel())
	case StateStopping, StateCanceling:
		return len(s.Active) > 0
	case StateFinished:
	}
	return false
}

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

// allMade reports whether all runs were made active or skipped.
func (s Set) allMade() bool { return s.Next == s.Runs && len(s.Open) == 0 && len(s.Withdrawn) == 0 }

// Submitted returns the number of runs that were submitted, with those that were refused.
func (s Set) Submitted() int {
	return s.Counts.Succeeded + s.Counts.Failed + s.Counts.Canceled + len(s.ActiveRuns())
}

// ActiveRuns returns the IDs of the runs that were submitted and have not ended.
func (s Set) ActiveRuns() (ids []string) {
	for _, a := range s.Active {
		if a.Run != "" {
			ids = append(ids, a.Run)
		}
	}
	return ids
}

// maxEstimate is the longest time that an estimate looks ahead.
const maxEstimate = 100 * 365 * 24 * time.Hour

// EstimatedEnd returns the time at which the set will finish, if that is known: a run has
// ended, and the set has not, nor was it canceled. It is
//
//	time of the last change + mean time of a run · runs that have not ended / active runs
//
// The time of a run is that from its submission to its end. It includes the wait for a slot,
// so that as many runs end per mean time as are active (Little's law). With sweep.stop_when,
// cells that are open have all repetitions; a set that is stopping has its active runs only.
func (s Set) EstimatedEnd() (at time.Time, known bool) {
	active, left := len(s.Active), len(s.Active)
	if s.State == StateRunning {
		left = s.Runs - s.Skipped - s.Counts.Succeeded - s.Counts.Failed - s.Counts.Canceled
	} else if s.State != StateStopping {
		return time.Time{}, false
	}
	if s.Times.Runs == 0 || left <= 0 {
		return time.Time{}, false
	}
	seconds := s.Times.Seconds / float64(s.Times.Runs) * float64(left) / float64(max(1, active))
	if seconds > maxEstimate.Seconds() {
		return time.Time{}, false
	}
	return s.Updated.Add(time.Duration(seconds * float64(time.Second))), true
}

// timeOf returns the time from the submission of a run to its end; 0 if that is not known.
func timeOf(r store.Run) time.Duration {
	if r.Ended == nil || r.Created.IsZero() {
		return 0
	}
	return r.Ended.Sub(r.Created)
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
	case s.allMade():
		return s, false, &StateError{Message: fmt.Sprintf("all %d runs of set %s were submitted: it has none to go on with", s.Runs, s.ID)}
	}
	s.State, s.Outcome, s.Message, s.CanceledBy, s.Ended, s.Updated = StateRunning, "", "", "", time.Time{}, now
	s.Resumes++
	return s, true, nil
}

// rerun returns a new set of the runs of a set. One of those that did not succeed has no
// rule to stop: it has no other repetitions to judge by.
func (s Set) rerun(req Rerun, id string, now time.Time) Set {
	next := Set{
		ID: id, Namespace: s.Namespace, Owner: req.Owner, Key: req.Key, Digest: rerunDigest(s.ID, req.Failed), RerunOf: s.ID,
		SetRetention: store.SetRetention{Script: s.Script}, Labels: s.Labels, Notify: s.Notify, File: s.File, Description: s.Description,
		Entries: s.Entries, Cells: s.Cells, Runs: s.Runs, Repetitions: s.Repetitions, Warmup: s.Warmup, Order: s.Order,
		MaxParallel: s.MaxParallel, OnFailure: s.OnFailure,
		StopWhen: s.StopWhen, State: StateRunning, Created: now, Updated: now,
	}
	if req.Failed {
		next.StopWhen = nil
	}
	return next
}

// endOf returns the end of a finished set, for notices.
func endOf(s Set) notice.End {
	message := s.Message
	if message == "" && len(s.Failures) > 0 {
		message = "the first failure is in cell " + s.Failures[0].Cell + ": " + s.Failures[0].Message
	}
	return notice.End{
		ID: s.ID, Name: s.Name, Namespace: s.Namespace, Task: s.Labels[store.LabelTask], Owner: s.Owner, Labels: s.Labels,
		Outcome: s.Outcome, Message: message,
		Submitted: s.Created, Ended: s.Updated, Set: true, Resumes: s.Resumes,
		Runs: notice.Counts{Succeeded: s.Counts.Succeeded, Failed: s.Counts.Failed, Canceled: s.Counts.Canceled},
	}
}

// clip returns the first bytes of a message, without a partial character.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
