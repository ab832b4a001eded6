package executor

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// kindUnread are the documents of attempts whose descriptor an executor could not
// read, though the gateway accepted it: run and attempt → Unread.
const kindUnread store.Kind = "unread"

// Unread is an attempt that waits for an executor that is as new as the gateway which
// accepted its descriptor.
type Unread struct {
	Run   event.Fetched `json:"run"`
	Since time.Time     `json:"since"`
}

// Reread decides about an attempt that was put aside: it is received now, or ends
// because its time is over, or waits on, which is false.
func Reread(u Unread, f Facts, s Settings, now time.Time) (Reception, bool) {
	r := Receive(u.Run, f, s)
	if !r.Aside {
		return r, true
	}
	if !skew.Late(u.Since, u.Run.Descriptor, now) {
		return Reception{}, false
	}
	_, faults := parse(u.Run, s)
	return Reception{Never: &event.Finished{
		Header: u.Run.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.VersionSkew,
		Message: skew.Ended("executor", u.Run.Descriptor, faults),
	}}, true
}

// awaitsNewer tells that an attempt waits for a newer executor.
func awaitsNewer(u Unread, s Settings) event.Status {
	_, faults := parse(u.Run, s)
	return event.Status{
		Header: u.Run.Cause("status/queued", string(event.VersionSkew)), Phase: event.PhaseQueued, Reason: event.VersionSkew,
		Message: skew.Waits("executor", u.Run.Descriptor, faults),
	}
}
