package collect

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// diskState is what was seen of the disk, and said of it.
type diskState struct {
	Free  int64     // bytes
	Since time.Time // when it was first seen otherwise than was said; zero where it is as was said
	Full  bool      // that it is full was said last
}

// Bounds of what is said of the disk. The wrapper writes until the floor is reached,
// and the collector gives back some: at the floor the disk counts as full.
const (
	diskSteady = 2 * time.Second // how long it must be otherwise before that is said
	diskSlack  = 1 << 20         // bytes above the floor at which it is full
)

// next returns the state once so many bytes are free, and what is to be said.
func (s diskState) next(free, floor int64, now time.Time) (diskState, *event.Status) {
	s.Free = free
	other := !s.Full && free < floor+diskSlack || s.Full && free >= floor+floor/4
	switch {
	case !other:
		s.Since = time.Time{}
		return s, nil
	case s.Since.IsZero():
		s.Since = now
		return s, nil
	case now.Sub(s.Since) < diskSteady:
		return s, nil
	}
	s.Full, s.Since = !s.Full, time.Time{}
	if s.Full {
		return s, &event.Status{Phase: event.PhaseRunning, Reason: event.NoSpace, Message: pod.WaitingMessage(free, floor)}
	}
	return s, &event.Status{Phase: event.PhaseRunning, Message: pod.ResumedMessage(free)}
}

// reasonDiskFull is why what is there is not shipped.
const reasonDiskFull = "the platform's disk was full when the run had to end"
