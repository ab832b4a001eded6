package executor

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/plan"
)

// decideDeferred decides about a deferred attempt: it is handled now, or it ends
// because it has waited too long. It reports false while the attempt has to wait.
func decideDeferred(u launch.DeferredAttempt, f launch.Facts, p plan.Planner, now time.Time) (decision, bool) {
	r := decide(u.Run, f, p)
	if r.Unreadable == nil {
		return r, true
	}
	if !skew.Expired(u.Since, u.Run.Descriptor, now) {
		return decision{}, false
	}
	return decision{PreventLaunch: &event.Finished{
		Header: u.Run.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.VersionSkew,
		Message: skew.TimeoutMessage("executor", u.Run.Descriptor, r.Unreadable),
	}}, true
}

// versionSkewStatus returns the status of an attempt that waits for a newer executor.
func versionSkewStatus(u launch.DeferredAttempt, faults parser.Faults) event.Status {
	return event.Status{
		Header: u.Run.Cause("status/queued", string(event.VersionSkew)), Phase: event.PhaseQueued, Reason: event.VersionSkew,
		Message: skew.WaitMessage("executor", u.Run.Descriptor, faults),
	}
}
