package follow

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// deferredPrefix are the keys of logs whose run's descriptor could not be read, of
// KindFollowed.
const deferredPrefix = "unread/"

// maxWaitAfterEnd is how long a log waits for a newer release at most once its container has
// ended: a run that has ended waits for its logs, but not for long.
const maxWaitAfterEnd = 10 * time.Second

// deferredLog is a log whose run has a descriptor that a follower could not read, though the
// gateway accepted it: it waits for one that is as new as the gateway.
type deferredLog struct {
	Target target    `json:"target"`
	Since  time.Time `json:"since"`
}

// keepsWaiting reports whether a log waits on for a newer follower. Ended is when its container
// was seen to have ended; zero where it was not.
func keepsWaiting(u deferredLog, descriptor string, ended, now time.Time) bool {
	return !skew.Expired(u.Since, descriptor, now) && (ended.IsZero() || now.Before(ended.Add(maxWaitAfterEnd)))
}

// deferredStatus tells that a log waits for a newer follower.
func deferredStatus(h event.Header, descriptor string, faults descriptors.Faults) event.Status {
	return event.Status{
		Header: h.Cause("status/skew", "waits"), Phase: event.PhaseRunning, Reason: event.VersionSkew,
		Message: "the output is not read yet: " + skew.WaitMessage("follower of logs", descriptor, faults),
	}
}

// unsearchedStatus tells that a log is shipped though nobody could read which samples are to be
// found in it.
func unsearchedStatus(h event.Header, faults descriptors.Faults) event.Status {
	return event.Status{
		Header: h.Cause("status/skew", "ended"), Phase: event.PhaseRunning, Reason: event.VersionSkew,
		Message: "the output is stored, but no samples are looked for in it: no newer follower of logs came in time; this one cannot read what the gateway accepted: " + skew.FaultLines(faults),
	}
}

// noPatterns is why samples of a log may be missing.
const noPatterns = "the descriptor could not be read by this release, so that no samples were looked for"
