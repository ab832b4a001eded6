package fetcher

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// unreadableRun is a run whose descriptor the gateway accepted and a fetcher could not
// read. It waits for a fetcher of the gateway's release.
type unreadableRun struct {
	Submitted event.Submitted `json:"submitted"`
	Since     time.Time       `json:"since"`
}

// versionSkewFailed returns the end of a run that waited in vain for a newer fetcher.
// Its class is platform.
func versionSkewFailed(u unreadableRun, faults parser.Faults) event.Finished {
	return failed(u.Submitted, dataset.Failure{
		Reason: event.VersionSkew, Class: event.ClassPlatform,
		Message: skew.TimeoutMessage("fetcher", u.Submitted.Descriptor, faults),
	})
}

// versionSkewStatus returns the status of a run that waits for a newer fetcher.
func versionSkewStatus(u unreadableRun, faults parser.Faults) event.Status {
	return status(u.Submitted, event.VersionSkew, skew.WaitMessage("fetcher", u.Submitted.Descriptor, faults), event.Progress{})
}
