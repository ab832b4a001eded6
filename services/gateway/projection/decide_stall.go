package projection

import (
	"fmt"
	"strconv"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// stallState is what a reconciler remembers of a run from one look to the next. Its
// clock is its own: time in which nobody looked does not count, so a platform
// that was off for a night ends nothing in the morning.
type stallState struct {
	Revision int64     // of the run
	Since    time.Time // when it was first seen at that revision, or something was last done about it
	Tries    int       // how often something was done about it at that revision
}

// action is the remedy for a run that stands still.
type action string

// Remedies.
const (
	Wait        action = ""
	Resubmit    action = "resubmit"     // say again that it was submitted
	CancelAgain action = "cancel again" // say again that it is to end
	GiveUp      action = "give up"      // say that it has ended, by the platform's fault
)

// decideStall says what is to be done now about a run, given whether it is marked as
// canceled and what was seen of it at the last look, and what is to be
// remembered once that is done.
//
//   - A marked run: the command is said again after each CancelAgain without a
//     change, until the run is over.
//   - A run before its launch: after NoProgress without a change it is said
//     again that it was submitted. All services hear that and do what they have
//     not done. After as long again the run is given up. Who only waits for its
//     data does not stand still: the fetcher says what it waits for more often
//     than that.
//   - A run that waits in the queue is never given up: it may wait for as long as
//     others run. It is only said again that it was submitted.
//   - From its launch on a run is the watcher's.
func decideStall(run store.Run, marked bool, last stallState, now time.Time, s Settings) (action, stallState) {
	if run.Phase == event.PhaseFinished {
		return Wait, stallState{}
	}
	if last.Revision != run.Revision || last.Since.IsZero() {
		return Wait, stallState{Revision: run.Revision, Since: now}
	}
	stalledFor := now.Sub(last.Since)
	next := stallState{Revision: run.Revision, Since: now, Tries: last.Tries + 1}
	switch {
	case marked && stalledFor >= s.CancelAgain:
		return CancelAgain, next
	case marked || phaseRank(run.Phase) >= phaseRank(event.PhasePending) || stalledFor < s.NoProgress:
		return Wait, last
	case last.Tries == 0 || run.Phase == event.PhaseQueued:
		return Resubmit, next
	}
	return GiveUp, next
}

// noProgress returns the fact that the platform gave a run up. It is the same
// whoever says it.
func noProgress(run store.Run, s Settings) event.Finished {
	id := event.Derive("no-progress", run.ID, strconv.Itoa(run.Attempt), string(run.Phase))
	h := event.NewHeader(id, run.ID, run.Namespace, run.Owner, run.Created)
	h.Lineage, h.Attempt = run.Lineage, run.Attempt
	return event.Finished{
		Header: h, Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.NoProgress,
		Message: fmt.Sprintf("the run made no progress for %s in phase %s, also after a new start: submit it again, and look into the logs of the services", s.NoProgress, run.Phase),
	}
}
