package fetcher

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// UnreadableRun is a run whose descriptor a fetcher could not read, though the gateway
// accepted it: it waits for a fetcher that is as new as the gateway.
type UnreadableRun struct {
	Submitted event.Submitted `json:"submitted"`
	Since     time.Time       `json:"since"`
}

// VersionSkewFailed ends a run for which no newer fetcher came. Its user has done nothing wrong.
func VersionSkewFailed(u UnreadableRun, faults descriptors.Faults) event.Finished {
	return Failed(u.Submitted, Failure{event.VersionSkew, event.ClassPlatform, skew.TimeoutMessage("fetcher", u.Submitted.Descriptor, faults)})
}

// VersionSkewStatus tells that a run waits for a newer fetcher.
func VersionSkewStatus(u UnreadableRun, faults descriptors.Faults) event.Status {
	return status(u.Submitted, event.VersionSkew, skew.WaitMessage("fetcher", u.Submitted.Descriptor, faults), event.Progress{})
}
