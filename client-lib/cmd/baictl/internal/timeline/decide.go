// Package timeline tells why a run took the time and the end that it did: what
// happened, in order, and how long each phase took.
package timeline

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A Step is one thing that happened.
type Step struct {
	Change *baiv1.Change
	Since  time.Duration // the submission
	After  time.Duration // the step before it; 0 for the first
	More   int           // reports of progress between it and the step before it, which are left out
}

// A Stay is the time that a run spent in one phase without leaving it.
type Stay struct {
	Phase   baiv1.Phase
	Attempt int32
	From    time.Duration // since the submission
	Took    time.Duration
	Open    bool // it goes on
	Waiting bool // for something that was not the run's own work
}

// A Story is what happened to a run.
type Story struct {
	Steps  []Step
	Stays  []Stay
	Total  time.Duration // from the submission to the end, or to now
	Waited time.Duration // of it
	Ended  bool
}

// Tell makes a story of a run's changes, in order of their revisions. Clocks of
// different machines may disagree: no time is negative.
func Tell(run *baiv1.Run, changes []*baiv1.Change, now time.Time) Story {
	s := Story{Ended: run.GetPhase() == baiv1.Phase_PHASE_FINISHED}
	t := teller{begin: begin(run, changes), story: &s}
	for i, c := range changes {
		var next *baiv1.Change
		if i+1 < len(changes) {
			next = changes[i+1]
		}
		t.step(c, next)
	}
	t.end(now)
	for _, stay := range s.Stays {
		if stay.Waiting {
			s.Waited += stay.Took
		}
	}
	return s
}

func begin(run *baiv1.Run, changes []*baiv1.Change) time.Time {
	if run.GetCreateTime() != nil || len(changes) == 0 {
		return at(run.GetCreateTime())
	}
	return at(changes[0].GetTime())
}

func at(t *timestamppb.Timestamp) time.Time { return t.AsTime() }

type teller struct {
	begin time.Time
	story *Story
	last  *baiv1.Change // that became a step or was left out
	since time.Duration // of last
	shown time.Duration // of the last step
	more  int
}

// step takes a change into account that next follows.
func (t *teller) step(c, next *baiv1.Change) {
	since := max(at(c.GetTime()).Sub(t.begin), t.since)
	t.stay(c, since)
	if t.last != nil && next != nil && isProgress(t.last, c) && isProgress(c, next) {
		t.more++
	} else {
		step := Step{Change: c, Since: since, More: t.more}
		if t.last != nil {
			step.After = since - t.shown
		}
		t.story.Steps = append(t.story.Steps, step)
		t.more, t.shown = 0, since
	}
	t.last, t.since = c, since
}

// isProgress says whether a change says no more than how far the last one came.
func isProgress(last, c *baiv1.Change) bool {
	return c.GetProgress() != nil && last.GetProgress() != nil && same(last, c) && last.GetReason() == c.GetReason()
}

func same(a, b *baiv1.Change) bool {
	return a.GetPhase() == b.GetPhase() && a.GetAttempt() == b.GetAttempt()
}

// stay ends the stay that c ends, and begins the one that c begins.
func (t *teller) stay(c *baiv1.Change, since time.Duration) {
	if t.last != nil && same(t.last, c) {
		return
	}
	t.leave(since)
	if c.GetPhase() == baiv1.Phase_PHASE_FINISHED {
		return
	}
	t.story.Stays = append(t.story.Stays, Stay{Phase: c.GetPhase(), Attempt: c.GetAttempt(), From: since, Open: true, Waiting: isWaiting(c.GetPhase())})
}

func (t *teller) leave(since time.Duration) {
	if n := len(t.story.Stays); n > 0 && t.story.Stays[n-1].Open {
		stay := &t.story.Stays[n-1]
		stay.Took, stay.Open = since-stay.From, false
	}
}

// end says how things stand now.
func (t *teller) end(now time.Time) {
	if t.story.Ended {
		t.story.Total = t.since
		t.leave(t.since)
		return
	}
	t.story.Total = max(now.Sub(t.begin), t.since)
	if n := len(t.story.Stays); n > 0 {
		stay := &t.story.Stays[n-1]
		stay.Took = t.story.Total - stay.From
	}
}

// isWaiting says whether a phase is spent waiting for somebody else: the
// platform, a slot, the cluster.
func isWaiting(p baiv1.Phase) bool {
	switch p {
	case baiv1.Phase_PHASE_SUBMITTED, baiv1.Phase_PHASE_QUEUED, baiv1.Phase_PHASE_PENDING:
		return true
	case baiv1.Phase_PHASE_UNSPECIFIED, baiv1.Phase_PHASE_FETCHING, baiv1.Phase_PHASE_LAUNCHING,
		baiv1.Phase_PHASE_RUNNING, baiv1.Phase_PHASE_CANCELING, baiv1.Phase_PHASE_FINISHED:
	}
	return false
}
