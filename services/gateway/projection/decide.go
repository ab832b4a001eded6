package projection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Limits for the history of one run.
const (
	unthrottledChanges = 50              // number of changes that are recorded without throttling
	maxChanges         = 10_000          // number of changes after which a status is recorded only if the run advances
	minChangeInterval  = time.Second     // minimum time between two throttled changes
	maxChangeInterval  = 5 * time.Minute // maximum of that time, for a run that is hours old
	maxText            = 4 << 10         // bytes in a message
	maxReason          = 128             // bytes in a reason
)

// fact is the part of an event that concerns the progress of its run.
type fact struct {
	at       time.Time   // time at which the event was published
	attempt  int         // attempt that the event is about
	phase    event.Phase // phase that the event leads to; empty for none
	outcome  event.Outcome
	class    event.Class
	reason   event.Reason
	message  string
	progress *event.Progress
	reported bool // a service reported this to the user, so it also updates the message of the current phase
}

// Apply returns the state of a run after ev, and the change, given the state before;
// nil is no state. It reports false if the change is not to be recorded, because very
// many changes have already been recorded since the run last made progress.
//
// Topics have no order among each other, so events may arrive in any order. Within an
// attempt the phase never goes back, except between pending and a wait in a queue of the
// cluster, of which the watcher's statuses tell in their order; and an event of an earlier attempt never changes
// the phase. The first terminal event wins. A later event becomes a late change, which
// only adds details: the submission, the fetched data, and the collectors of an earlier
// attempt. A canceled run stays in the phase canceling until its end, in every attempt.
// Apply does not check whether ev was applied before; the store does, which knows every
// ID. An event that was not recorded once is never recorded.
func Apply(before *store.Run, ev event.Event) (store.Run, store.Change, bool) {
	h := ev.Head()
	run := initialRun(before, h)
	f := factOf(ev, run.Attempt)
	late := run.Phase == event.PhaseFinished
	advancing := !late && advances(run, f)
	if _, status := ev.(event.Status); status && before != nil && !advancing && throttled(run, f.at) {
		return run, store.Change{}, false
	}
	addDetails(&run, ev, late)
	end, finished := ev.(event.Finished)
	switch {
	case late:
	case finished:
		finishRun(&run, end, f)
	case advancing:
		enterPhase(&run, f)
	case f.reported && f.attempt == run.Attempt && f.phase == run.Phase && rank(f.phase, f.reason) == rank(run.Phase, run.Reason):
		setMessage(&run, f)
	}
	run.Revision++
	run.Phase = cmp.Or(run.Phase, event.PhaseSubmitted)
	if f.at.After(run.Updated) {
		run.Updated = f.at
	}
	return run, store.Change{
		Run: run.ID, Revision: run.Revision, Event: h.ID, Topic: ev.Topic(), Time: f.at, Attempt: f.attempt, Phase: run.Phase,
		Outcome: f.outcome, Class: f.class, Reason: f.reason, Message: f.message, Progress: f.progress, Late: late,
	}, true
}

// initialRun returns the run before the event with that header. If there is no state
// yet, the run has no phase.
func initialRun(before *store.Run, h event.Header) store.Run {
	if before != nil {
		return *before
	}
	return store.Run{
		ID: h.Run, Namespace: h.Namespace, Owner: h.Owner, Lineage: h.Lineage,
		Attempt: h.Attempt, Created: h.Time,
	}
}

// fetchedMessage returns the message for fetched data: the number of data sets, and
// whether code was sent along.
func fetchedMessage(data []event.Data) string {
	const code = "the code that was sent along is stored"
	sets := len(data)
	sent := pod.CodeOf(data) != nil
	if sent {
		sets--
	}
	switch {
	case sets == 0 && sent:
		return code
	case sets == 0:
		return "no data sets to fetch"
	case sent:
		return fetched(sets) + "; " + code
	}
	return fetched(sets)
}

func fetched(sets int) string {
	if sets == 1 {
		return "fetched 1 data set"
	}
	return fmt.Sprintf("fetched %d data sets", sets)
}

// factOf returns the fact of an event; attempt is the run's attempt, which is used for
// events about the run as a whole.
func factOf(ev event.Event, attempt int) fact {
	h := ev.Head()
	f := fact{at: h.Time, attempt: h.Attempt}
	if !h.PublishedAt.IsZero() {
		f.at = h.PublishedAt.UTC()
	}
	switch ev := ev.(type) {
	case event.Submitted:
		f.phase, f.message = event.PhaseSubmitted, "submitted by "+ev.Owner
	case event.Fetched:
		f.phase, f.message = event.PhaseQueued, fetchedMessage(ev.Data)
	case event.Launched:
		f.phase, f.message = event.PhasePending, fmt.Sprintf("created job %s", ev.Job)
	case event.Retried:
		f.phase, f.class, f.reason, f.message = event.PhaseQueued, ev.Class, ev.Reason, ev.Message
		f.reported = true
	case event.Status:
		f.phase, f.reason, f.message, f.progress, f.reported = ev.Phase, ev.Reason, ev.Message, ev.Progress, true
	case event.Command:
		f.attempt, f.phase, f.message = attempt, event.PhaseCanceling, "canceled by "+ev.By
	case event.Finished:
		f.phase, f.outcome, f.class, f.reason, f.message = event.PhaseFinished, ev.Outcome, ev.Class, ev.Reason, ev.Message
	}
	f.message, f.reason = clip(f.message, maxText), event.Reason(clip(string(f.reason), maxReason))
	if _, status := ev.(event.Status); status && f.phase == event.PhaseFinished {
		f.phase = "" // only a Finished event ends a run
	}
	return f
}

// advances reports whether a fact moves an unfinished run to a later phase or attempt.
func advances(run store.Run, f fact) bool {
	switch {
	case f.phase == event.PhaseFinished:
		return true
	case phaseRank(f.phase) < 0:
		return false
	case f.attempt != run.Attempt:
		return f.attempt > run.Attempt
	}
	now, next := rank(run.Phase, run.Reason), rank(f.phase, f.reason)
	return next > now || next == now && f.phase != run.Phase && f.reported
}

// throttled reports whether a run has too many changes to record another change at that
// time that makes no progress. The minimum time between changes grows with the run's
// age, so the number of recorded changes grows with the logarithm of the age.
func throttled(run store.Run, at time.Time) bool {
	if run.Revision < unthrottledChanges {
		return false
	}
	pause := min(max(at.Sub(run.Created)/100, minChangeInterval), maxChangeInterval)
	return run.Revision >= maxChanges || at.Before(run.Updated.Add(pause))
}

// addDetails adds the details of an event that do not depend on the order of events.
func addDetails(run *store.Run, ev event.Event, late bool) {
	switch ev := ev.(type) {
	case event.Submitted:
		run.Namespace, run.Owner, run.Lineage, run.Created = ev.Namespace, ev.Owner, ev.Lineage, ev.Time
		run.Name, run.File, run.Descriptor, run.Labels = ev.Name, ev.File, ev.Descriptor, maps.Clone(ev.Labels)
		run.Overrides, run.Origination, run.Use = slices.Clone(ev.Overrides), ev.Provenance, ev.Use
		if ev.Bundle != nil && run.Data == nil {
			run.Data = []event.Data{pod.Code(*ev.Bundle)} // until Fetched lists all data
		}
	case event.Fetched:
		run.Data = slices.Clone(ev.Data)
	case event.Retried:
		run.Collectors = union(run.Collectors, ev.Collectors)
		addMachines(run, ev.Attempt-1, ev.Machines)
	case event.Finished:
		if !late {
			addMachines(run, ev.Attempt, ev.Machines)
			run.Collectors = union(run.Collectors, ev.Collectors)
			run.Images = maps.Clone(ev.Images)
		}
	}
}

// addMachines adds the machines that an attempt used, if they are known. A run is a value: the
// map of the run before stays as it is.
func addMachines(run *store.Run, attempt int, uses []event.MachineUse) {
	if uses == nil {
		return
	}
	all := make(map[int][]event.MachineUse, len(run.Machines)+1)
	maps.Copy(all, run.Machines)
	all[attempt] = slices.Clone(uses)
	run.Machines = all
}

// enterPhase moves a run to the phase or attempt of a fact.
func enterPhase(run *store.Run, f fact) {
	if f.attempt > run.Attempt {
		run.Attempt, run.Started = f.attempt, nil
	}
	if run.Phase == event.PhaseCanceling {
		return
	}
	run.Phase, run.Progress = f.phase, nil
	setMessage(run, f)
	if f.phase == event.PhaseRunning {
		run.Started = &f.at
	}
}

// setMessage updates the message and progress of the run's current phase.
func setMessage(run *store.Run, f fact) {
	run.Reason, run.Message = f.reason, f.message
	if f.progress != nil {
		run.Progress = f.progress
	}
}

// finishRun sets the end of a run.
func finishRun(run *store.Run, end event.Finished, f fact) {
	run.Phase, run.Outcome, run.Class, run.Reason, run.Message = event.PhaseFinished, f.outcome, f.class, f.reason, f.message
	run.Attempt, run.Progress, run.ExitCode = max(run.Attempt, f.attempt), nil, end.ExitCode
	if end.Started != nil {
		run.Started = end.Started
	}
	run.Ended = end.Ended
	if run.Ended == nil {
		run.Ended = &f.at
	}
}

// rank returns how far a run is in a phase with a reason. A run that waits in a queue of
// the cluster is as far as a pending one, since its objects exist.
func rank(p event.Phase, r event.Reason) int {
	if p == event.PhaseQueued && r.QueuedInCluster() {
		p = event.PhasePending
	}
	return phaseRank(p)
}

func phaseRank(p event.Phase) int { return slices.Index(event.Phases(), p) }

// union returns a with the elements of b that it lacks appended. It does not change a.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// clip returns the first n bytes of s at most, without a partial character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// WithSubmission returns the state of a run whose submission is stored and not
// projected yet; before is the projected state; nil means none. The result has the
// revision of before.
func WithSubmission(before *store.Run, sub event.Submitted) store.Run {
	run, _, _ := Apply(before, sub)
	run.Revision = 0
	if before != nil {
		run.Revision = before.Revision
	}
	return run
}
