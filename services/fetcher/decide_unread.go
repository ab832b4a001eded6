package fetcher

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// Unread is a run whose descriptor a fetcher could not read, though the gateway
// accepted it: it waits for a fetcher that is as new as the gateway.
type Unread struct {
	Submitted event.Submitted `json:"submitted"`
	Since     time.Time       `json:"since"`
}

// Skewed ends a run for which no newer fetcher came. Its user has done nothing wrong.
func Skewed(u Unread, faults descriptors.Faults) event.Finished {
	return Failed(u.Submitted, Failure{event.VersionSkew, event.ClassPlatform, skew.Ended("fetcher", u.Submitted.Descriptor, faults)})
}

// AwaitsNewer tells that a run waits for a newer fetcher.
func AwaitsNewer(u Unread, faults descriptors.Faults) event.Status {
	return status(u.Submitted, event.VersionSkew, skew.Waits("fetcher", u.Submitted.Descriptor, faults), event.Progress{})
}
