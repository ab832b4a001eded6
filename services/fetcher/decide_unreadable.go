package fetcher

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// unreadableRun is a run whose descriptor a fetcher could not read, though the gateway
// accepted it. It waits for a fetcher that is as new as the gateway.
type unreadableRun struct {
	Submitted event.Submitted `json:"submitted"`
	Since     time.Time       `json:"since"`
}

// versionSkewFailed ends a run for which no newer fetcher came. Its user has done nothing wrong.
func versionSkewFailed(u unreadableRun, faults descriptors.Faults) event.Finished {
	return failed(u.Submitted, dataset.Failure{
		Reason: event.VersionSkew, Class: event.ClassPlatform,
		Message: skew.TimeoutMessage("fetcher", u.Submitted.Descriptor, faults),
	})
}

// versionSkewStatus reports that a run waits for a newer fetcher.
func versionSkewStatus(u unreadableRun, faults descriptors.Faults) event.Status {
	return status(u.Submitted, event.VersionSkew, skew.WaitMessage("fetcher", u.Submitted.Descriptor, faults), event.Progress{})
}
