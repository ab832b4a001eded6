package slots

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// admit returns the allocations of the queued attempts that are given a slot now, in
// the queue's order: as many as there are free slots. An attempt does not overtake
// another that waits for a slot, but it overtakes those that wait for others of the
// same user or label to end, and those that hold a slot already. While a gang holds a
// slot and is not scheduled yet no other gang is admitted, so that two never hold half
// of the nodes that each needs.
func admit(l Table, queue []Item, r Quota) []Allocation {
	var admitted []Allocation
	t, gang := r.usage(l.Allocations), slices.ContainsFunc(l.Allocations, Allocation.unscheduled)
	for _, p := range queue {
		if l.Holds(p.AttemptKey()) {
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

// Transition is a change of an attempt that holds a slot. Later ones are greater.
type Transition int

// Transitions of an attempt that holds a slot.
const (
	Launched    Transition = iota + 1 // its objects are there, and it was published
	Scheduled                         // all of its pods have a node
	Terminating                       // its run or attempt is over, its objects have to go
	Released                          // its objects are gone: the slot is free
)

// apply returns the table after transitions, and whether they changed it. Transitions
// of attempts that hold no slot change nothing.
func apply(l Table, transitions map[AttemptKey]Transition) (Table, bool) {
	next, changed := Table{Fence: l.Fence}, false
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

// Task is the next work for an attempt that holds a slot.
type Task int

// Tasks.
const (
	NoTask          Task = iota
	Launch               // create its objects and publish that
	Release              // delete its objects, and when they are gone free the slot
	CheckScheduling      // see whether its pods have their nodes
)

// nextTask returns the task for an allocation, given only the table.
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

// queuePositions returns events about the positions in the queue that changed since
// lastReported, which it updates, with the limit in blocked that bars an attempt.
// Positions of another time are other events.
func queuePositions(queue []Item, blocked, lastReported map[AttemptKey]string, now time.Time) []event.Event {
	var events []event.Event
	current := make(map[AttemptKey]string, len(queue))
	for i, p := range queue {
		h := p.AttemptKey()
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
