package rest

import (
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// objectDenyReason returns the reason why a run's token may not read an object, or "".
// The token may read the objects of the run's fetched data, until the run has finished;
// retry reports that a later try may succeed, since the projection of the run lags
// behind its pods. Events of other topics may already have moved the run's phase on.
func objectDenyReason(run store.Run, key string) (reason string, retry bool) {
	switch {
	case run.Phase == event.PhaseFinished:
		return fmt.Sprintf("run %s ended at %s: its token opens no objects any more", run.ID, endTime(run)), false
	case !slices.ContainsFunc(run.Data, func(d event.Data) bool { return d.Object != "" }):
		return fmt.Sprintf("the objects of run %s are not recorded yet: try again", run.ID), true
	case slices.ContainsFunc(run.Data, func(d event.Data) bool { return d.Object != "" && d.Object == key }):
		return "", false
	}
	return fmt.Sprintf("object %.100q is not one that run %s needs", key, run.ID), false
}

// uploadDenyReason returns the reason why a run's token may not store more files, or
// "". Uploads are allowed until all output of the run is stored, since a pod sends its
// files before the end of its output. If a pod never sends that end, uploads are
// refused store.DataTimeout after the run's end.
func uploadDenyReason(run store.Run, streams []store.Stream, now time.Time) string {
	if run.Phase != event.PhaseFinished {
		return ""
	}
	if store.Complete(run, streams).Complete {
		return fmt.Sprintf("run %s ended at %s, and all that it wrote is stored: it takes no more files", run.ID, endTime(run))
	}
	if now.Sub(endOf(run)) > store.DataTimeout {
		return fmt.Sprintf("run %s ended at %s, more than %d hours ago: it takes no more files", run.ID, endTime(run),
			int(store.DataTimeout.Hours()))
	}
	return ""
}

func endTime(run store.Run) string { return endOf(run).UTC().Format(time.RFC3339) }

func endOf(run store.Run) time.Time {
	if run.Ended != nil {
		return *run.Ended
	}
	return run.Updated
}
