package slots

import (
	"fmt"
	"maps"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// admit returns the allocations of the queued attempts that get a slot now, in the
// order of the queue, as many as there are free slots. An attempt does not overtake one
// that waits for a slot. It does overtake attempts that are blocked by a limit of their
// user or label, and attempts that hold a slot already, unless one of these waits for
// nodes that it could take. While a gang holds a slot and
// is not scheduled yet, no other gang is admitted, so that two gangs never hold half of
// the nodes that each needs. Engines have nothing in common but the limits of users and
// labels.
func admit(l Table, queue []Item, r Quota) []Allocation {
	var admitted []Allocation
	heads := l.heads()
	t, gang, waiting := r.usage(l.Allocations), l.gangs(), make(map[string]bool)
	for _, p := range queue {
		if l.Holds(p.AttemptKey()) {
			continue
		}
		if t.allFull() {
			break
		}
		e := r.newAllocation(p)
		if t.full(e.Engine) || waiting[e.Engine] || t.exceededLimit(e) != "" || heads.holdBack(e) {
			continue
		}
		if gang[e.Engine] && e.unscheduled() {
			waiting[e.Engine] = true
			continue
		}
		gang[e.Engine] = gang[e.Engine] || e.unscheduled()
		t.add(e)
		admitted = append(admitted, e)
	}
	return admitted
}

// gangs returns the engines on which a gang holds a slot and is not scheduled yet.
func (l Table) gangs() map[string]bool {
	engines := make(map[string]bool)
	for _, e := range l.Allocations {
		if e.unscheduled() {
			engines[e.Engine] = true
		}
	}
	return engines
}

// Transition is a change of an attempt with a slot. Later transitions are greater.
type Transition int

// Transitions of an attempt with a slot.
const (
	Launched    Transition = iota + 1 // its objects exist, and the launch was published
	Scheduled                         // all of its pods have nodes
	Terminating                       // its run or attempt has ended, and its objects must be deleted
	Released                          // its objects are gone: the slot is free
)

// apply returns the table after transitions, and reports whether they changed it. It
// ignores transitions of attempts without a slot.
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

// Task is the next work for an attempt with a slot.
type Task int

// Tasks.
const (
	NoTask          Task = iota
	Launch               // create its objects and publish the launch
	Release              // delete its objects, then free the slot
	CheckScheduling      // check whether its pods have nodes
)

// nextTask returns the task that an allocation needs.
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

// queuePositions returns status events about the positions that have changed since
// lastReported, and updates lastReported. A status includes the limit in blocked that
// blocks the attempt. Events of different times have different IDs.
func queuePositions(queue []Item, blocked, lastReported map[AttemptKey]string, now time.Time) []event.Event {
	var events []event.Event
	current := make(map[AttemptKey]string, len(queue))
	ahead := make(map[string]int) // by engine
	for _, p := range queue {
		h := p.AttemptKey()
		ahead[p.Engine]++
		number := ahead[p.Engine]
		msg := fmt.Sprintf("waiting for a free slot%s, number %d in the queue", onEngine(p.Engine), number)
		if why := blocked[h]; why != "" {
			msg += "; " + why
		}
		current[h] = msg
		if lastReported[h] == msg {
			continue
		}
		events = append(events, event.Status{
			Header: p.Run.Cause("status/queued", fmt.Sprintf("%d at %d", number, now.UnixMilli())), Phase: event.PhaseQueued, Message: msg,
		})
	}
	maps.DeleteFunc(lastReported, func(h AttemptKey, _ string) bool { return current[h] == "" })
	maps.Copy(lastReported, current)
	return events
}

// onEngine names an engine beside the default one in a message.
func onEngine(engine string) string {
	if engine == "" {
		return ""
	}
	return " of engine " + engine
}
