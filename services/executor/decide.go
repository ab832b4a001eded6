package executor

import (
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// decision is what has to be done about an attempt that could be launched.
type decision struct {
	Enqueue       *slots.QueuedRun // put this into the queue, then publish that
	PreventLaunch *event.Finished  // prevent a launch of the attempt, then publish this
	Publish       []event.Event    // publish this
	// Unreadable are the faults for which this executor cannot read the descriptor. The
	// gateway accepted it, so the attempt is put aside for an executor as new as that.
	Unreadable descriptors.Faults
}

// decide decides about an attempt whose data are there: it waits for a slot,
// or its run ends at once, or there is nothing left to do.
func decide(run event.Fetched, f launch.Facts, p plan.Planner) decision {
	switch {
	case f.RunFinished:
		return decision{}
	case f.Plan != nil:
		return decision{Publish: f.Plan.FinalEvents()}
	case f.Canceled:
		return decision{PreventLaunch: launch.CanceledEvent(run.Header)}
	}
	d, faults := p.Parse(run)
	if faults.Err() != nil {
		return decision{Unreadable: faults}
	}
	w, err := p.Objects(transpile.Input{Run: run, Descriptor: d})
	if err != nil {
		return decision{Publish: []event.Event{launch.RefusedEvent(run.Header, err)}}
	}
	return decision{Enqueue: &slots.QueuedRun{Run: run, Pods: w.Pods}}
}

// noProgressEvent is the end of a run that the platform has lost documents of.
func noProgressEvent(h event.Header, message string) event.Finished {
	return event.Finished{
		Header: h.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassPlatform,
		Reason: event.NoProgress, Message: message,
	}
}

// queuedStatus tells the user that a run waits.
func queuedStatus(h event.Header) event.Status {
	return event.Status{Header: h.Cause("status/queued", ""), Phase: event.PhaseQueued, Message: "waiting for a free slot"}
}

// priority returns the priority of a run with such labels: the highest that settings
// give one of them.
func (s Settings) priority(labels map[string]string) int {
	priority, found := 0, false
	for label, p := range s.Priorities {
		name, value, _ := strings.Cut(label, "=")
		if have, ok := labels[name]; ok && have == value && (!found || p > priority) {
			priority, found = p, true
		}
	}
	return priority
}
