package follow

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// deferredPrefix is the prefix of the keys of deferred logs, of KindLogProgress.
const deferredPrefix = "unread/"

// maxWaitAfterEnd is how long a log waits for a newer release at most once its container has
// ended: a run that has ended waits for its logs, but not for long.
const maxWaitAfterEnd = 10 * time.Second

// deferredLog is a log whose run has a descriptor that this follower could not read, though the gateway accepted it: the log waits for a
// follower that is as new as the gateway.
type deferredLog struct {
	Target target    `json:"target"`
	Since  time.Time `json:"since"`
}

// keepsWaiting reports whether a log waits on for a newer follower. Ended is when a snapshot first showed that its container had ended;
// zero if none did.
func keepsWaiting(u deferredLog, descriptor string, ended, now time.Time) bool {
	return !skew.Expired(u.Since, descriptor, now) && (ended.IsZero() || now.Before(ended.Add(maxWaitAfterEnd)))
}

// deferredStatus is the status that a log waits for a newer follower.
func deferredStatus(h event.Header, descriptor string, faults parser.Faults) event.Status {
	return event.Status{
		Header: h.Cause("status/skew", "waits"), Phase: event.PhaseRunning, Reason: event.VersionSkew,
		Message: "the output is not read yet: " + skew.WaitMessage("follower of logs", descriptor, faults),
	}
}

// unsearchedStatus is the status that a log is shipped without its samples, because no follower could read which samples to find.
func unsearchedStatus(h event.Header, faults parser.Faults) event.Status {
	return event.Status{
		Header: h.Cause("status/skew", "ended"), Phase: event.PhaseRunning, Reason: event.VersionSkew,
		Message: "the output is stored, but no samples are looked for in it: no newer follower of logs came in time; this one cannot read what the gateway accepted: " + skew.FaultLines(faults),
	}
}

// noPatterns is the reason for missing samples of a log.
const noPatterns = "the descriptor could not be read by this release, so that no samples were looked for"
