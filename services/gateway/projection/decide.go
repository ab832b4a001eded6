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

// Bounds of what is kept of one run.
const (
	unthrottledChanges = 50              // changes that are recorded whatever they say
	maxChanges         = 10_000          // changes beyond which only those are that bring the run forward
	minChangeInterval  = time.Second     // between two changes that do not, where they are many
	maxChangeInterval  = 5 * time.Minute // the same, of a run that has gone on for hours
	maxText            = 4 << 10         // bytes of a message
	maxReason          = 128             // bytes of a reason
)

// fact is what an event says about how far its run has come.
type fact struct {
	at       time.Time   // when it was said
	attempt  int         // that it is about
	phase    event.Phase // that it leads to; empty for none
	outcome  event.Outcome
	class    event.Class
	reason   event.Reason
	message  string
	progress *event.Progress
	reported bool // by a service for the user, so that it also says something of a phase that was reached before
}

// Apply returns what is known of a run once ev has happened, and the change
// that this is, given what was known before; nil is nothing. It reports false
// for what is not worth a change: one of very many that bring a run no further.
//
// Topics have no order among each other, so any event may come first. Within an
// attempt a phase never goes back, and no attempt follows from an earlier one's
// events. The first terminal fact wins: what comes later is a late change, and
// adds only what was known when it was said (what was submitted, what was
// fetched, whose data are awaited). A run that is canceled stays so until its
// end, whatever its attempt. Whether ev was recorded before is for the store to
// say, which knows every ID; what was once not worth a change never will be.
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
	case f.reported && f.attempt == run.Attempt && f.phase == run.Phase:
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

// initialRun returns the run as it was before an event that is about it: without a
// phase if nothing was known.
func initialRun(before *store.Run, h event.Header) store.Run {
	if before != nil {
		return *before
	}
	return store.Run{
		ID: h.Run, Namespace: h.Namespace, Owner: h.Owner, Lineage: h.Lineage,
		Attempt: h.Attempt, Created: h.Time,
	}
}

// fetchedMessage says how many data sets have been fetched, and whether code was sent along.
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

// factOf returns what ev says. Attempt is the run's, for what is about the run
// and not about one attempt.
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
		f.phase = "" // only bai.finished ends a run
	}
	return f
}

// advances reports whether a fact brings a run that is not over to a phase where
// it has not been in this attempt.
func advances(run store.Run, f fact) bool {
	switch {
	case f.phase == event.PhaseFinished:
		return true
	case phaseRank(f.phase) < 0:
		return false
	case f.attempt != run.Attempt:
		return f.attempt > run.Attempt
	}
	return phaseRank(f.phase) > phaseRank(run.Phase)
}

// throttled reports whether a run has had so many changes that one at that time,
// which brings it no further, is not worth keeping. The pause grows with the
// run's age, so that what is kept of a flood grows with its logarithm.
func throttled(run store.Run, at time.Time) bool {
	if run.Revision < unthrottledChanges {
		return false
	}
	pause := min(max(at.Sub(run.Created)/100, minChangeInterval), maxChangeInterval)
	return run.Revision >= maxChanges || at.Before(run.Updated.Add(pause))
}

// addDetails adds what is true of a run whenever it is heard.
func addDetails(run *store.Run, ev event.Event, late bool) {
	switch ev := ev.(type) {
	case event.Submitted:
		run.Namespace, run.Owner, run.Lineage, run.Created = ev.Namespace, ev.Owner, ev.Lineage, ev.Time
		run.Name, run.File, run.Descriptor, run.Labels = ev.Name, ev.File, ev.Descriptor, maps.Clone(ev.Labels)
		run.Overrides, run.Origination, run.Use = slices.Clone(ev.Overrides), ev.Provenance, ev.Use
		if ev.Bundle != nil && run.Data == nil {
			run.Data = []event.Data{pod.Code(*ev.Bundle)} // until all data are there
		}
	case event.Fetched:
		run.Data = slices.Clone(ev.Data)
	case event.Retried:
		run.Collectors = union(run.Collectors, ev.Collectors)
	case event.Finished:
		if !late {
			run.Collectors = union(run.Collectors, ev.Collectors)
			run.Images = maps.Clone(ev.Images)
		}
	}
}

// enterPhase brings a run to the phase, or to the attempt, that a fact is the first
// to be about.
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

// setMessage keeps what a fact says of the phase that its run is in.
func setMessage(run *store.Run, f fact) {
	run.Reason, run.Message = f.reason, f.message
	if f.progress != nil {
		run.Progress = f.progress
	}
}

// finishRun ends a run.
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

func phaseRank(p event.Phase) int { return slices.Index(event.Phases(), p) }

// union returns a and what of b it lacks, in that order; a is not changed.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// clip returns the beginning of s, up to n bytes of whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// WithSubmission returns what is known of a run whose submission is remembered but not
// recorded yet, given what is recorded of it; nil is nothing. Its revision is
// that of what is recorded.
func WithSubmission(before *store.Run, sub event.Submitted) store.Run {
	run, _, _ := Apply(before, sub)
	run.Revision = 0
	if before != nil {
		run.Revision = before.Revision
	}
	return run
}
