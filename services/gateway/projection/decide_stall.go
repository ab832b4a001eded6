package projection

import (
	"fmt"
	"strconv"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// stallState is the state of a run that a reconciler keeps between two passes. It uses
// the reconciler's own clock, and time without passes does not count, so a platform
// that was off for a night gives up no run in the morning.
type stallState struct {
	Revision int64     // revision of the run
	Since    time.Time // time at which this revision was first seen, or at which the last remedy was applied
	Tries    int       // number of remedies applied at this revision
}

// action is a remedy for a stalled run.
type action string

// Remedies.
const (
	Wait        action = ""
	Resubmit    action = "resubmit"     // publish the submission again
	CancelAgain action = "cancel again" // publish the cancel command again
	GiveUp      action = "give up"      // publish that the run failed because of the platform
)

// decideStall returns the remedy for a run now, and the state to keep once the remedy
// is applied; marked reports whether the run is marked as canceled, and last is the
// state of the previous pass.
//
//   - Marked run: the command is published again each time that CancelAgain passes
//     without a change, until the run has finished.
//   - Run before its launch: its submission is published again after NoProgress without
//     a change. All services consume it and do the work that they have not done. After
//     NoProgress again, the run is given up. A run that waits for its data is not
//     stalled, since the fetcher reports the reason more often than that.
//   - Queued run: it is never given up, since it may wait as long as other runs run.
//     Only its submission is published again.
//   - Launched run: the watcher is responsible.
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
	case marked || rank(run.Phase, run.Reason) >= phaseRank(event.PhasePending) || stalledFor < s.NoProgress:
		return Wait, last
	case last.Tries == 0 || run.Phase == event.PhaseQueued:
		return Resubmit, next
	}
	return GiveUp, next
}

// noProgress returns the event that gives a run up. Every process derives the same
// event.
func noProgress(run store.Run, s Settings) event.Finished {
	id := event.Derive("no-progress", run.ID, strconv.Itoa(run.Attempt), string(run.Phase))
	h := event.NewHeader(id, run.ID, run.Namespace, run.Owner, run.Created)
	h.Lineage, h.Attempt = run.Lineage, run.Attempt
	return event.Finished{
		Header: h, Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.NoProgress,
		Message: fmt.Sprintf("the run made no progress for %s in phase %s, also after a new start: submit it again, and look into the logs of the services", s.NoProgress, run.Phase),
	}
}
