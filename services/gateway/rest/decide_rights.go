package rest

import (
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// objectDenyReason says why a run's token does not open an object, empty where it does.
// It opens those that the run was told of with its data, until the run ends. Soon
// says that the answer may be another in a moment: the record of the run is behind
// its pods.
func objectDenyReason(run store.Run, key string) (reason string, retry bool) {
	if run.Phase == event.PhaseFinished {
		return fmt.Sprintf("run %s ended at %s: its token opens no objects any more", run.ID, endTime(run)), false
	}
	if slices.ContainsFunc(run.Data, func(d event.Data) bool { return d.Object != "" && d.Object == key }) {
		return "", false
	}
	if run.Phase == "" || run.Phase == event.PhaseSubmitted || run.Phase == event.PhaseFetching {
		return fmt.Sprintf("the objects of run %s are not recorded yet: try again", run.ID), true
	}
	return fmt.Sprintf("object %.100q is not one that run %s needs", key, run.ID), false
}

// uploadDenyReason says why a run's token brings no more files, empty where it does. It
// does until all that the run wrote is stored: a pod sends its files before it says
// that its last line has come. Where a pod never says so, a day after the end of the
// run is the bound.
func uploadDenyReason(run store.Run, streams []store.Stream, now time.Time) string {
	if run.Phase != event.PhaseFinished {
		return ""
	}
	if store.Complete(run, streams).Complete {
		return fmt.Sprintf("run %s ended at %s, and all that it wrote is stored: it takes no more files", run.ID, endTime(run))
	}
	if now.Sub(endOf(run)) > store.DataTimeout {
		return fmt.Sprintf("run %s ended at %s, more than %d hours ago: it takes no more files", run.ID, endTime(run), int(store.DataTimeout.Hours()))
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
