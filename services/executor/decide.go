package executor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Facts are what is known of one attempt of a run before it is decided about.
type Facts struct {
	RunFinished bool  // the run has ended
	Canceled    bool  // the run has a cancel mark
	Plan        *Plan // nil where there is none yet
	// Images are answers of registries, for the plan that is to be made.
	Images []cluster.Image
}

// Decision is what has to be done about an attempt that could be launched.
type Decision struct {
	Enqueue       *QueuedRun      // put this into the queue, then say so
	PreventLaunch *event.Finished // see to it that the attempt is never launched, then say this
	Publish       []event.Event   // say this
	// Unreadable are the faults for which this executor cannot read the descriptor. The
	// gateway accepted it, so the attempt is put aside for an executor as new as that.
	Unreadable descriptors.Faults
}

// Decide decides about an attempt whose data are there: it waits for a slot,
// or its run ends at once, or there is nothing left to do.
func Decide(run event.Fetched, f Facts, p plan.Planner) Decision {
	switch {
	case f.RunFinished:
		return Decision{}
	case f.Plan != nil:
		return Decision{Publish: f.Plan.finalEvents()}
	case f.Canceled:
		return Decision{PreventLaunch: canceledEvent(run.Header)}
	}
	d, faults := p.Parse(run)
	if faults.Err() != nil {
		return Decision{Unreadable: faults}
	}
	w, err := p.Objects(transpile.Input{Run: run, Descriptor: d})
	if err != nil {
		return Decision{Publish: []event.Event{refusedEvent(run.Header, err)}}
	}
	return Decision{Enqueue: &QueuedRun{Run: run, Pods: w.Pods}}
}

// MakePlan returns the plan for an attempt that has a slot and the descriptor d: its
// objects, or that it is never launched, and why.
func MakePlan(run event.Fetched, d *descriptors.Descriptor, f Facts, p plan.Planner) Plan {
	if f.RunFinished {
		return Plan{NoLaunch: true, Run: run}
	}
	if f.Canceled {
		return Plan{NoLaunch: true, FinalEvent: canceledEvent(run.Header), Run: run}
	}
	w, err := p.Objects(transpile.Input{Run: run, Descriptor: d, Images: f.Images})
	if err != nil {
		last := refusedEvent(run.Header, err)
		return Plan{NoLaunch: true, FinalEvent: &last, Run: run}
	}
	doc := newPlan(run, w)
	doc.Images = f.Images
	return doc
}

// refusedEvent is the end of a run that cannot be launched: as the user wrote it, or
// where it is the platform that lacks what every run needs.
func refusedEvent(h event.Header, err error) event.Finished {
	f := event.Finished{Header: h.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassUser, Reason: event.LaunchRefused, Message: err.Error()}
	if descriptor, ok := errors.AsType[*transpile.RefusedError](err); ok {
		f.Reason, f.Message = descriptor.Reason, descriptor.Message
	}
	if object, ok := errors.AsType[*cluster.RefusedError](err); ok {
		f.Message, f.Class = object.Error(), cmp.Or(object.Class, f.Class)
		if object.Reason != "" {
			f.Reason = event.Reason(object.Reason)
		}
	}
	return f
}

// canceledEvent is the end of a run of which nothing was launched.
func canceledEvent(h event.Header) *event.Finished {
	return &event.Finished{Header: h.Cause("finished", ""), Outcome: event.Canceled, Reason: event.CanceledByUser, Message: "canceled before it was launched"}
}

// noProgressEvent is the end of a run of which the platform has forgotten what it needs.
func noProgressEvent(h event.Header, message string) event.Finished {
	return event.Finished{Header: h.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.NoProgress, Message: message}
}

// Admit returns who of the queue is given a slot now, in the queue's order:
// as many as there are free slots, and nobody before somebody who waits for one.
// Who waits for others of the same user or label to end is passed over. While a
// gang holds a slot and is not placed yet no other gang is admitted, so that two
// never hold half of what each needs.
//
// Those who are in the ledger already are passed over.
func Admit(l SlotTable, queue []Item, r Quota) []Allocation {
	var admitted []Allocation
	t, gang := r.usage(l.Allocations), slices.ContainsFunc(l.Allocations, Allocation.unscheduled)
	for _, p := range queue {
		if l.holds(p.attemptKey()) {
			continue
		}
		e := r.newAllocation(p)
		if t.full() {
			break
		}
		if t.exceededLimit(e) != "" {
			continue
		}
		if gang && e.unscheduled() {
			break
		}
		gang = gang || e.unscheduled()
		t.add(e)
		admitted = append(admitted, e)
	}
	return admitted
}

// Transition is what became of a holder of a slot, in the order in which it can.
type Transition int

// News of a holder of a slot.
const (
	Launched    Transition = iota + 1 // its objects are there, and it was said
	Scheduled                         // all of its pods have a node
	Terminating                       // its run or attempt is over, its objects have to go
	Released                          // its objects are gone: the slot is free
)

// Apply returns the ledger with the news of its holders, and whether that
// changed it. News of who holds no slot change nothing.
func Apply(l SlotTable, transitions map[AttemptKey]Transition) (SlotTable, bool) {
	next, changed := SlotTable{Fence: l.Fence}, false
	for _, e := range l.Allocations {
		before, transition := e, transitions[e.AttemptKey]
		if transition == Released {
			changed = true
			continue
		}
		e.Launched = e.Launched || transition == Launched || transition == Scheduled
		e.Scheduled = e.Scheduled || transition == Scheduled
		e.Terminating = e.Terminating || transition == Terminating
		changed = changed || e != before
		next.Allocations = append(next.Allocations, e)
	}
	return next, changed
}

// Task is what somebody has to do for a holder of a slot.
type Task int

// Tasks.
const (
	NoTask          Task = iota
	Launch               // create its objects and say so
	Release              // delete its objects, and when they are gone free the slot
	CheckScheduling      // see whether its pods have their nodes
)

// nextTask returns what a holder of a slot needs, given only the ledger.
func (e Allocation) nextTask() Task {
	switch {
	case e.Terminating:
		return Release
	case !e.Launched:
		return Launch
	case e.unscheduled():
		return CheckScheduling
	}
	return NoTask
}

// allScheduled reports whether every pod of a gang has a node.
func allScheduled(seen cluster.Snapshot, pods int) bool {
	n := 0
	for _, p := range seen.Pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	return n >= pods
}

// queuedStatus tells the user that a run waits.
func queuedStatus(h event.Header) event.Status {
	return event.Status{Header: h.Cause("status/queued", ""), Phase: event.PhaseQueued, Message: "waiting for a free slot"}
}

// QueuePositions returns what to tell those at the head of the queue about their
// place in it, and which limit of their own bars them, given what they were told
// last, which is brought up to date. A place is a fact of its time.
func QueuePositions(queue []Item, blocked, lastReported map[AttemptKey]string, now time.Time) []event.Event {
	var events []event.Event
	current := make(map[AttemptKey]string, len(queue))
	for i, p := range queue {
		h := p.attemptKey()
		msg := fmt.Sprintf("waiting for a free slot, number %d in the queue", i+1)
		if why := blocked[h]; why != "" {
			msg += "; " + why
		}
		current[h] = msg
		if lastReported[h] == msg {
			continue
		}
		events = append(events, event.Status{
			Header: p.Run.Cause("status/queued", fmt.Sprintf("%d at %d", i+1, now.UnixMilli())), Phase: event.PhaseQueued, Message: msg,
		})
	}
	maps.DeleteFunc(lastReported, func(h AttemptKey, _ string) bool { return current[h] == "" })
	maps.Copy(lastReported, current)
	return events
}

// launchingStatus tells the user that a run has its slot.
func launchingStatus(p Plan, d *descriptors.Descriptor, s Settings) event.Status {
	run := p.Run
	h, msg := run.Header, "creating its objects"
	for _, i := range p.Images {
		msg += "; " + entrypointMessage(i)
	}
	if s.Engine != plan.EngineKubernetes {
		msg = "starting the command with this machine's own programs (no image)"
		if ignored := ignoredKeys(d, s.NoLimitsReason); len(ignored) > 0 {
			msg += "; without effect on this machine: " + strings.Join(ignored, ", ")
		}
	}
	return event.Status{Header: h.Cause("status/launching", ""), Phase: event.PhaseLaunching, Message: msg}
}

// entrypointMessage says whether the program of an image that runs by itself is known.
func entrypointMessage(i cluster.Image) string {
	if i.UnreadReason == "" {
		return fmt.Sprintf("image %s runs its entrypoint, as its registry gives it for %s", i.Name, i.Digest)
	}
	return fmt.Sprintf("the entrypoint of image %s is not known, so that the output is read from the container's log: %s", i.Name, i.UnreadReason)
}

// ignoredKeys returns the keys of a descriptor that the local cluster accepts and
// does not carry out. Where noLimits is not empty, it is why that enforces no limits.
func ignoredKeys(d *descriptors.Descriptor, noLimits string) []string {
	ignored := ignoredHardwareKeys("hardware", d.Hardware, noLimits)
	if d.Env.Privileged {
		ignored = append(ignored, "env.privileged")
	}
	if d.Env.ImagePullSecret != "" {
		ignored = append(ignored, "env.image_pull_secret")
	}
	if d.Server != nil {
		ignored = append(ignored, ignoredHardwareKeys("server.hardware", d.Server.Hardware, noLimits)...)
	}
	return ignored
}

// ignoredHardwareKeys is ignoredKeys for a table of hardware.
func ignoredHardwareKeys(table string, h descriptors.Hardware, noLimits string) []string {
	var ignored []string
	because := ""
	if noLimits != "" {
		because = " (no limits: " + noLimits + ")"
	}
	for _, key := range []struct {
		name, because string
		set           bool
	}{
		{"cpus", because, h.CPUs != "" && because != ""},
		{"memory", because, h.Memory != "" && because != ""},
		{"node_selector", "", len(h.NodeSelector) > 0},
		{"tolerations", "", len(h.Tolerations) > 0},
	} {
		if key.set {
			ignored = append(ignored, table+"."+key.name+key.because)
		}
	}
	return ignored
}

// launchedEvent says that the objects of an attempt are there.
func launchedEvent(p Plan, uid string, s Settings) event.Launched {
	return event.Launched{
		Header: p.Run.Cause("launched", ""), Cluster: cmp.Or(s.Engine, plan.EngineLocal), Scope: p.Scope, Job: p.Job, UID: uid,
		Retries: p.Retries, PendingDeadline: p.PendingDeadline,
	}
}
