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
	"github.com/benchmark-ai/bai/services/executor/transpile"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Facts are what is known of one attempt of a run before it is decided about.
type Facts struct {
	Over     bool  // the run has ended
	Canceled bool  // the run has a cancel mark
	Plan     *Plan // nil where there is none yet
	// Images are answers of registries, for the plan that is to be made.
	Images []cluster.Image
}

// Reception is what has to be done about an attempt that could be launched.
type Reception struct {
	Queue *Waiting        // put this into the queue, then say so
	Never *event.Finished // see to it that the attempt is never launched, then say this
	Say   []event.Event   // say this
	Aside bool            // put it aside: an executor as new as the gateway can read its descriptor
}

// Receive decides about an attempt whose data are there: it waits for a slot,
// or its run ends at once, or there is nothing left to do.
func Receive(run event.Fetched, f Facts, s Settings) Reception {
	switch {
	case f.Over:
		return Reception{}
	case f.Plan != nil:
		return Reception{Say: f.Plan.last()}
	case f.Canceled:
		return Reception{Never: canceled(run.Header)}
	}
	w, _, err := prepare(run, nil, s)
	if errors.Is(err, errUnread) {
		return Reception{Aside: true}
	}
	if err != nil {
		return Reception{Say: []event.Event{refused(run.Header, err)}}
	}
	return Reception{Queue: &w}
}

// errUnread says that this executor cannot read a descriptor. The gateway accepted it,
// so that the user has done nothing wrong: one of the two is older.
var errUnread = errors.New("the descriptor cannot be read by this executor")

// prepare makes the plan of an attempt, and what the queue has to know of it.
// Its error says what the user got wrong.
func prepare(run event.Fetched, images []cluster.Image, s Settings) (Waiting, transpile.Plan, error) {
	d, faults := parse(run, s)
	if faults.Err() != nil {
		return Waiting{}, transpile.Plan{}, errUnread
	}
	if engines := s.engines(); !slices.Contains(engines, d.Info.ExecutionEngine) {
		return Waiting{}, transpile.Plan{}, &transpile.RefusedError{
			Reason:  event.EngineUnavailable,
			Message: fmt.Sprintf("info.execution_engine is %q, which this platform does not have: it has %s", d.Info.ExecutionEngine, strings.Join(engines, ", ")),
		}
	}
	if err := checkReferences(run, d, s); err != nil {
		return Waiting{}, transpile.Plan{}, err
	}
	p, err := transpile.Objects(transpile.Input{Run: run, Descriptor: d, Images: images}, s.Pods)
	return Waiting{Run: run, Pods: p.Pods}, p, err
}

// Settle returns the plan for an attempt that has a slot, whose descriptor can be read:
// its objects, or that it is never launched, and why.
func Settle(run event.Fetched, f Facts, s Settings) Plan {
	if f.Over {
		return Plan{Never: true, Run: run}
	}
	if f.Canceled {
		return Plan{Never: true, Last: canceled(run.Header), Run: run}
	}
	_, p, err := prepare(run, f.Images, s)
	if err != nil {
		last := refused(run.Header, err)
		return Plan{Never: true, Last: &last, Run: run}
	}
	doc := planOf(run, p)
	doc.Images = f.Images
	return doc
}

// parse reads a run's descriptor, which the gateway has accepted: this executor's
// settings may have changed since, and launch is where they are held against it.
func parse(run event.Fetched, s Settings) (*descriptors.Descriptor, descriptors.Faults) {
	p := s.Parser()
	p.Accepted = true
	return p.Parse(run.File, []byte(run.Descriptor))
}

// refused is the end of a run that cannot be launched: as the user wrote it, or
// where it is the platform that lacks what every run needs.
func refused(h event.Header, err error) event.Finished {
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

// canceled is the end of a run of which nothing was launched.
func canceled(h event.Header) *event.Finished {
	return &event.Finished{Header: h.Cause("finished", ""), Outcome: event.Canceled, Reason: event.CanceledByUser, Message: "canceled before it was launched"}
}

// lost is the end of a run of which the platform has forgotten what it needs.
func lost(h event.Header, what string) event.Finished {
	return event.Finished{Header: h.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassPlatform, Reason: event.NoProgress, Message: what}
}

// Admit returns who of the queue is given a slot now, in the queue's order:
// as many as there are free slots, and nobody before somebody who waits for one.
// Who waits for others of the same user or label to end is passed over. While a
// gang holds a slot and is not placed yet no other gang is admitted, so that two
// never hold half of what each needs.
//
// Those who are in the ledger already are passed over.
func Admit(l Ledger, queue []Place, r Rules) []Entry {
	var admitted []Entry
	t, gang := r.tally(l.Entries), slices.ContainsFunc(l.Entries, Entry.unplaced)
	for _, p := range queue {
		if l.holds(p.holder()) {
			continue
		}
		e := r.entry(p)
		if t.full() {
			break
		}
		if t.barred(e) != "" {
			continue
		}
		if gang && e.unplaced() {
			break
		}
		gang = gang || e.unplaced()
		t.add(e)
		admitted = append(admitted, e)
	}
	return admitted
}

// News is what became of a holder of a slot, in the order in which it can.
type News int

// News of a holder of a slot.
const (
	Launched News = iota + 1 // its objects are there, and it was said
	Placed                   // all of its pods have a node
	Ending                   // its run or attempt is over, its objects have to go
	Gone                     // its objects are gone: the slot is free
)

// Learn returns the ledger with the news of its holders, and whether that
// changed it. News of who holds no slot change nothing.
func Learn(l Ledger, news map[Holder]News) (Ledger, bool) {
	next, changed := Ledger{Fence: l.Fence}, false
	for _, e := range l.Entries {
		was, n := e, news[e.Holder]
		if n == Gone {
			changed = true
			continue
		}
		e.Launched = e.Launched || n == Launched || n == Placed
		e.Placed = e.Placed || n == Placed
		e.Ending = e.Ending || n == Ending
		changed = changed || e != was
		next.Entries = append(next.Entries, e)
	}
	return next, changed
}

// Task is what somebody has to do for a holder of a slot.
type Task int

// Tasks.
const (
	Nothing Task = iota
	Launch       // create its objects and say so
	Release      // delete its objects, and when they are gone free the slot
	Look         // see whether its pods have their nodes
)

// task returns what a holder of a slot needs, given only the ledger.
func (e Entry) task() Task {
	switch {
	case e.Ending:
		return Release
	case !e.Launched:
		return Launch
	case e.unplaced():
		return Look
	}
	return Nothing
}

// placed reports whether every pod of a gang has a node.
func placed(seen cluster.Seen, pods int) bool {
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

// queued tells the user that a run waits.
func queued(h event.Header) event.Status {
	return event.Status{Header: h.Cause("status/queued", ""), Phase: event.PhaseQueued, Message: "waiting for a free slot"}
}

// Positions returns what to tell those at the head of the queue about their
// place in it, and which limit of their own bars them, given what they were told
// last, which is brought up to date. A place is a fact of its time.
func Positions(queue []Place, barred, told map[Holder]string, now time.Time) []event.Event {
	var say []event.Event
	here := make(map[Holder]string, len(queue))
	for i, p := range queue {
		h := p.holder()
		msg := fmt.Sprintf("waiting for a free slot, number %d in the queue", i+1)
		if why := barred[h]; why != "" {
			msg += "; " + why
		}
		here[h] = msg
		if told[h] == msg {
			continue
		}
		say = append(say, event.Status{
			Header: p.Run.Cause("status/queued", fmt.Sprintf("%d at %d", i+1, now.UnixMilli())), Phase: event.PhaseQueued, Message: msg,
		})
	}
	maps.DeleteFunc(told, func(h Holder, _ string) bool { return here[h] == "" })
	maps.Copy(told, here)
	return say
}

// launching tells the user that a run has its slot.
func launching(p Plan, s Settings) event.Status {
	run := p.Run
	h, msg := run.Header, "creating its objects"
	for _, i := range p.Images {
		msg += "; " + entrypointOf(i)
	}
	if s.engine() == EngineLocal {
		msg = "starting the command with this machine's own programs (no image)"
		if ignored := withoutEffect(run, s); len(ignored) > 0 {
			msg += "; without effect on this machine: " + strings.Join(ignored, ", ")
		}
	}
	return event.Status{Header: h.Cause("status/launching", ""), Phase: event.PhaseLaunching, Message: msg}
}

// entrypointOf says whether the program of an image that runs by itself is known.
func entrypointOf(i cluster.Image) string {
	if i.Unread == "" {
		return fmt.Sprintf("image %s runs its entrypoint, as its registry gives it for %s", i.Name, i.Digest)
	}
	return fmt.Sprintf("the entrypoint of image %s is not known, so that the output is read from the container's log: %s", i.Name, i.Unread)
}

// withoutEffect returns the keys of a run's descriptor that the local cluster takes and
// does not carry out.
func withoutEffect(run event.Fetched, s Settings) []string {
	d, _ := parse(run, s)
	if d == nil {
		return nil
	}
	ignored := ignoredOf("hardware", d.Hardware, s)
	if d.Env.Privileged {
		ignored = append(ignored, "env.privileged")
	}
	if d.Env.ImagePullSecret != "" {
		ignored = append(ignored, "env.image_pull_secret")
	}
	if d.Server != nil {
		ignored = append(ignored, ignoredOf("server.hardware", d.Server.Hardware, s)...)
	}
	return ignored
}

// ignoredOf is withoutEffect for a table of hardware.
func ignoredOf(table string, h descriptors.Hardware, s Settings) []string {
	var ignored []string
	because := ""
	if s.Unlimited != "" {
		because = " (no limits: " + s.Unlimited + ")"
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

// launched says that the objects of an attempt are there.
func launched(p Plan, uid string, s Settings) event.Launched {
	return event.Launched{
		Header: p.Run.Cause("launched", ""), Cluster: s.engine(), Scope: p.Scope, Job: p.Job, UID: uid,
		Retries: p.Retries, PendingDeadline: p.PendingDeadline,
	}
}
