package executor

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan"
)

// kindDeferred are the documents of attempts whose descriptor an executor could not
// read, though the gateway accepted it: run and attempt → Unread.
const kindDeferred store.Kind = "unread"

// DeferredAttempt is an attempt that waits for an executor that is as new as the gateway which
// accepted its descriptor.
type DeferredAttempt struct {
	Run   event.Fetched `json:"run"`
	Since time.Time     `json:"since"`
}

// DecideDeferred decides about an attempt that was put aside: it is received now, or ends
// because its time is over, or waits on, which is false.
func DecideDeferred(u DeferredAttempt, f Facts, p plan.Planner, now time.Time) (Decision, bool) {
	r := Decide(u.Run, f, p)
	if r.Unreadable == nil {
		return r, true
	}
	if !skew.Expired(u.Since, u.Run.Descriptor, now) {
		return Decision{}, false
	}
	return Decision{PreventLaunch: &event.Finished{
		Header: u.Run.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.VersionSkew,
		Message: skew.TimeoutMessage("executor", u.Run.Descriptor, r.Unreadable),
	}}, true
}

// versionSkewStatus tells that an attempt waits for a newer executor.
func versionSkewStatus(u DeferredAttempt, faults descriptors.Faults) event.Status {
	return event.Status{
		Header: u.Run.Cause("status/queued", string(event.VersionSkew)), Phase: event.PhaseQueued, Reason: event.VersionSkew,
		Message: skew.WaitMessage("executor", u.Run.Descriptor, faults),
	}
}
