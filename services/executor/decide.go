package executor

import (
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// decision has the work to do for an attempt whose data are fetched. At most one field
// is set.
type decision struct {
	Enqueue       *slots.QueuedRun // put this run into the queue, then publish its status
	PreventLaunch *event.Finished  // store a plan that prevents the launch, then publish this event
	Publish       []event.Event    // publish these events
	// Unreadable are the faults because of which this executor cannot read the
	// descriptor. The gateway accepted the descriptor, so the attempt is deferred until
	// an executor of the gateway's release handles it.
	Unreadable parser.Faults
}

// decide decides about an attempt whose data are fetched: it waits for a slot, or its
// run ends at once, or nothing is left to do.
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
	engine := p.EngineOf(d)
	return decision{Enqueue: &slots.QueuedRun{Run: run, Pods: w.Pods, Pool: poolOf(run.Run, w, p.On(engine).Local()), Engine: engine}}
}

// poolOf returns the labels of nodes that all pods of a workload ask for. On one machine
// runs wait for GPUs and ports, which few others could take: each has a pool of its own.
func poolOf(run string, w transpile.Workload, local bool) slots.Pool {
	if local {
		return slots.Pool{cluster.LabelRun: run}
	}
	var pool slots.Pool
	for _, o := range w.Objects {
		job, ok := o.(*batchv1.Job)
		switch {
		case !ok:
		case pool == nil:
			pool = maps.Clone(slots.Pool(job.Spec.Template.Spec.NodeSelector))
		default:
			maps.DeleteFunc(pool, func(name, value string) bool { return job.Spec.Template.Spec.NodeSelector[name] != value })
		}
	}
	return pool
}

// noProgressEvent returns the end of a run whose documents the platform has lost.
func noProgressEvent(h event.Header, message string) event.Finished {
	return event.Finished{
		Header: h.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassPlatform,
		Reason: event.NoProgress, Message: message,
	}
}

// queuedStatus returns the status of a run that waits for a slot.
func queuedStatus(h event.Header) event.Status {
	return event.Status{Header: h.Cause("status/queued", ""), Phase: event.PhaseQueued, Message: "waiting for a free slot"}
}

// priority returns the priority of a run with these labels: the highest priority that
// the settings give to one of the labels, or 0.
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
