// Package timeline explains a run's end and duration: its steps, in order, and the time
// spent in each phase.
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

// A PhaseSpan is the time that a run spent in one phase without leaving it.
type PhaseSpan struct {
	Phase   baiv1.Phase
	Attempt int32
	From    time.Duration // since the submission
	Took    time.Duration
	Open    bool // it goes on
	Waiting bool // for something that was not the run's own work
}

// A History is the sequence of a run's steps and phases.
type History struct {
	Steps  []Step
	Phases []PhaseSpan
	Total  time.Duration // from the submission to the end, or to now
	Waited time.Duration // of it
	Ended  bool
}

// Build makes a history of a run's changes, in order of their revisions. Clocks of
// different machines may disagree: no time is negative.
func Build(run *baiv1.Run, changes []*baiv1.Change, now time.Time) History {
	s := History{Ended: run.GetPhase() == baiv1.Phase_PHASE_FINISHED}
	t := builder{begin: begin(run, changes), history: &s}
	for i, c := range changes {
		var next *baiv1.Change
		if i+1 < len(changes) {
			next = changes[i+1]
		}
		t.step(c, next)
	}
	t.end(now)
	for _, span := range s.Phases {
		if span.Waiting {
			s.Waited += span.Took
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

type builder struct {
	begin   time.Time
	history *History
	last    *baiv1.Change // that became a step or was left out
	since   time.Duration // of last
	shown   time.Duration // of the last step
	more    int
}

// step takes a change into account that next follows.
func (t *builder) step(c, next *baiv1.Change) {
	since := max(at(c.GetTime()).Sub(t.begin), t.since)
	t.enterPhase(c, since)
	if t.last != nil && next != nil && isProgress(t.last, c) && isProgress(c, next) {
		t.more++
	} else {
		step := Step{Change: c, Since: since, More: t.more}
		if t.last != nil {
			step.After = since - t.shown
		}
		t.history.Steps = append(t.history.Steps, step)
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

// enterPhase ends the span that c ends, and begins the one that c begins.
func (t *builder) enterPhase(c *baiv1.Change, since time.Duration) {
	if t.last != nil && same(t.last, c) {
		return
	}
	t.leavePhase(since)
	if c.GetPhase() == baiv1.Phase_PHASE_FINISHED {
		return
	}
	t.history.Phases = append(t.history.Phases, PhaseSpan{
		Phase: c.GetPhase(), Attempt: c.GetAttempt(), From: since, Open: true,
		Waiting: isWaiting(c.GetPhase()),
	})
}

func (t *builder) leavePhase(since time.Duration) {
	if n := len(t.history.Phases); n > 0 && t.history.Phases[n-1].Open {
		span := &t.history.Phases[n-1]
		span.Took, span.Open = since-span.From, false
	}
}

// end says how things stand now.
func (t *builder) end(now time.Time) {
	if t.history.Ended {
		t.history.Total = t.since
		t.leavePhase(t.since)
		return
	}
	t.history.Total = max(now.Sub(t.begin), t.since)
	if n := len(t.history.Phases); n > 0 {
		span := &t.history.Phases[n-1]
		span.Took = t.history.Total - span.From
	}
}

// isWaiting reports whether a phase waits for the platform, a slot or the cluster.
func isWaiting(p baiv1.Phase) bool {
	switch p {
	case baiv1.Phase_PHASE_SUBMITTED, baiv1.Phase_PHASE_QUEUED, baiv1.Phase_PHASE_PENDING:
		return true
	case baiv1.Phase_PHASE_UNSPECIFIED, baiv1.Phase_PHASE_FETCHING, baiv1.Phase_PHASE_LAUNCHING,
		baiv1.Phase_PHASE_RUNNING, baiv1.Phase_PHASE_CANCELING, baiv1.Phase_PHASE_FINISHED:
	}
	return false
}
