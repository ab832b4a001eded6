package follow

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
)

// unreadLogs are the keys of logs whose run's descriptor could not be read, of
// KindFollowed.
const unreadLogs = "unread/"

// endedWait is how long a log waits for a newer release at most once its container has
// ended: a run that has ended waits for its logs, but not for long.
const endedWait = 10 * time.Second

// Unread is a log whose run has a descriptor that a follower could not read, though the
// gateway accepted it: it waits for one that is as new as the gateway.
type Unread struct {
	Target Target    `json:"target"`
	Since  time.Time `json:"since"`
}

// Waits reports whether a log waits on for a newer follower. Ended is when its container
// was seen to have ended; zero where it was not.
func Waits(u Unread, descriptor string, ended, now time.Time) bool {
	return !skew.Late(u.Since, descriptor, now) && (ended.IsZero() || now.Before(ended.Add(endedWait)))
}

// awaitsNewer tells that a log waits for a newer follower.
func awaitsNewer(h event.Header, descriptor string, faults descriptors.Faults) event.Status {
	return event.Status{
		Header: h.Cause("status/skew", "waits"), Phase: event.PhaseRunning, Reason: event.VersionSkew,
		Message: "the output is not read yet: " + skew.Waits("follower of logs", descriptor, faults),
	}
}

// unsearched tells that a log is shipped though nobody could read which samples are to be
// found in it.
func unsearched(h event.Header, faults descriptors.Faults) event.Status {
	return event.Status{
		Header: h.Cause("status/skew", "ended"), Phase: event.PhaseRunning, Reason: event.VersionSkew,
		Message: "the output is stored, but no samples are looked for in it: no newer follower of logs came in time; this one cannot read what the gateway accepted: " + skew.Lines(faults),
	}
}

// noPatterns is why samples of a log may be missing.
const noPatterns = "the descriptor could not be read by this release, so that no samples were looked for"
