package collect

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// diskState is the state of the disk, and whether the user was last told that it is full.
type diskState struct {
	Free  int64     // bytes
	Since time.Time // when the disk was first seen in another state than reported; zero while the report is right
	Full  bool      // the last report was that the disk is full
}

// diskSteady is how long the disk must be in another state before that is reported.
const diskSteady = 2 * time.Second

// next returns the state after so many bytes were found free, and a status for the user if the state has changed.
func (s diskState) next(free, floor int64, now time.Time) (diskState, *event.Status) {
	s.Free = free
	other := !s.Full && free < floor || s.Full && free >= floor+floor/4
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

// reasonDiskFull is the reason for lines and samples that are not shipped because of a full disk.
const reasonDiskFull = "the platform's disk was full when the run had to end"
