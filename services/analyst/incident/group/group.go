// Package group decides which incidents belong together, and what people are told of them. It
// is pure.
package group

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
)

// Most is how many incidents a notice has.
const Most = 10

// A Group is a number of incidents of one namespace with the same change. It is stored as JSON.
type Group struct {
	Namespace string
	ID        string
	State     incident.State // that of its members, as it was last decided
	Members   []string       // IDs of its incidents, in order
	Notified  []Transition   // the transitions that people are notified of, in order
	Receivers []string       // those that have a notice that it fires and none that it is over, in order

	// Tasks are those of the incidents that each of the receivers has heard of, in order. A receiver
	// that is not there has heard of all.
	Tasks map[string][]string `json:",omitempty"`

	// Labels are those of the first notice of each receiver that had any: all later ones have them too.
	Labels map[string]map[string]string `json:",omitempty"`

	// Update is when a receiver is to hear of a task that it has not heard of; zero for none.
	Update time.Time `json:",omitzero"`

	// Outbox has the notices that follow from the group as it is stored, as long as some of them may not
	// be enqueued.
	Outbox []Entry `json:",omitempty"`
}

// An Entry is a notice in the outbox of a group. Its incidents are stored by themselves.
type Entry struct {
	Notice    notice.Notice // without incidents
	Incidents []string      // their IDs, in order
}

// Notices returns the notices of the outbox, with their incidents as some members have them. A notice
// of which no incident is among these is left out.
func (g Group) Notices(members []incident.Incident) (all []notice.Notice) {
	for _, e := range g.Outbox {
		n := e.Notice
		for _, id := range e.Incidents {
			n.Incidents = append(n.Incidents, keep(members, func(i incident.Incident) bool { return i.ID == id })...)
		}
		if len(n.Incidents) > 0 {
			all = append(all, n)
		}
	}
	return all
}

// outbox returns the entries of notices.
func outbox(all []notice.Notice) (entries []Entry) {
	for _, n := range all {
		e := Entry{Notice: n}
		e.Notice.Incidents = nil
		for _, i := range n.Incidents {
			e.Incidents = append(e.Incidents, i.ID)
		}
		entries = append(entries, e)
	}
	return entries
}

// updatePause is how long a group waits after a notice before its receivers hear of further tasks.
const updatePause = time.Hour

// A Transition is a change of a group's state that people are notified of.
type Transition struct {
	Notice string // ID of the notice, without a receiver
	State  incident.State
	At     time.Time
}

// Assign returns the incident with its group: the one that it has, else that of an incident of
// others that belongs to the same change, else one whose ID follows from the change. Others are
// open incidents of the namespace, and those that ended within the last days; those without a
// group do not count.
//
// Two incidents belong together if they lie between the same two versions, or begin with the
// runs of the same time, which those of one firing have; or if they are of one task and their
// changes may lie between the same two runs. Missing values belong together if they are of one
// task and follow the same run.
func Assign(i incident.Incident, others []incident.Incident) incident.Incident {
	if i.Group != "" {
		return i
	}
	sorted := slices.SortedFunc(slices.Values(others), func(a, b incident.Incident) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.ID, b.ID))
	})
	for _, o := range sorted {
		if o.Group != "" && o.ID != i.ID && together(i, o) {
			i.Group = o.Group
			return i
		}
	}
	i.Group = ownGroup(i)
	return i
}

// ownGroup returns the ID of the group of an incident that is the first one of it.
func ownGroup(i incident.Incident) string {
	namespace := i.Series.Namespace
	old, next := versions(i)
	switch {
	case old != "":
		return incident.ID("group", namespace, "versions", old, next)
	case i.FirstBad != nil:
		return incident.ID("group", namespace, "time", i.FirstBad.Time.UTC().Format(time.RFC3339Nano))
	case i.LastGood != nil:
		return incident.ID("group", namespace, "missing", i.Series.Task, i.LastGood.Run)
	}
	return incident.ID("group", namespace, "missing", i.Series.Task)
}

// versions returns the versions between which an incident lies; empty if they are not known, or
// not different.
func versions(i incident.Incident) (old, next string) {
	if i.LastGood == nil || i.FirstBad == nil || i.LastGood.Version == "" || i.FirstBad.Version == "" ||
		i.LastGood.Version == i.FirstBad.Version {
		return "", ""
	}
	return i.LastGood.Version, i.FirstBad.Version
}

// together reports whether two incidents belong to one change.
func together(a, b incident.Incident) bool {
	if a.Series.Namespace != b.Series.Namespace || (a.FirstBad == nil) != (b.FirstBad == nil) {
		return false
	}
	task := a.Series.Task == b.Series.Task
	if a.FirstBad == nil {
		return task && runOf(a.LastGood) == runOf(b.LastGood)
	}
	oldA, nextA := versions(a)
	oldB, nextB := versions(b)
	switch {
	case oldA != "" && oldA == oldB && nextA == nextB:
		return true
	case a.FirstBad.Time.Equal(b.FirstBad.Time):
		return true
	}
	return task && a.Kind != "" && b.Kind != "" && overlap(a, b)
}

func runOf(p *incident.Point) string {
	if p == nil {
		return ""
	}
	return p.Run
}

// overlap reports whether two changes may lie between the same two runs: each lies between the
// run before the first point of its range and the last one of it.
func overlap(a, b incident.Incident) bool {
	firstA, lastA := span(a)
	firstB, lastB := span(b)
	return !lastA.Before(firstB) && !lastB.Before(firstA)
}

func span(i incident.Incident) (first, last time.Time) {
	first, last = i.FirstBad.Time, i.FirstBad.Time
	for _, p := range []*incident.Point{i.LastGood, i.First, i.Last} {
		if p != nil && p.Time.Before(first) {
			first = p.Time
		}
		if p != nil && p.Time.After(last) {
			last = p.Time
		}
	}
	return first, last
}

// Decide returns the group with all of its members, and the notices that follow: at most one
// for each receiver. They are in its outbox too, in place of those before them, which must be enqueued. The same
// decision with that group has none. The ID of a notice follows
// from the group, from the number of transitions before it, and from its receiver: whoever makes
// it again makes the same. The function of returns the names of the receivers of an incident.
//
// Receivers are notified when the group begins to fire, and when it is over after that. It fires
// if one of its members does, and a receiver hears of members that join a group that fires
// already only if it has not heard of the group, or not of their task: two tasks may have versions
// of the same name by chance. Such an update has the incidents of those tasks alone. It comes an
// hour after the notice before it, at Update, together for all that joined until then. The group
// begins to fire again if all that fired were
// acknowledged, and one fires again or joins; while others of it fire, receivers of those that fire
// again are notified. It is over if all members that fired are: dismissed if all of them are, else
// resolved. A notice has those members whose receivers its own receiver is among; the one that the
// group is over has all that fired, if none of them names its receiver any more. Silent members are
// in no notice, and bring no receivers.
func Decide(g Group, members []incident.Incident, of func(incident.Incident) []string, now time.Time) (Group, []notice.Notice) {
	g, all := g.decide(members, of, now)
	g.Outbox = outbox(all)
	return g, all
}

// Due reports whether Decide is to be called although no incident of the group is known to have changed: its members are not as they were
// when it was last decided, one of them joins it or fires again, notices are in its outbox, or receivers are to hear of further tasks now.
func Due(g Group, members []incident.Incident, now time.Time) bool {
	visible := keep(members, func(i incident.Incident) bool { return !i.Silent })
	switch is := stateOf(visible); {
	case is != g.State, len(g.Outbox) > 0, !g.Update.IsZero() && !now.Before(g.Update):
		return true
	case is == incident.Firing && len(g.Notified) > 0 && slices.ContainsFunc(visible, func(i incident.Incident) bool {
		return firesAgain(i, g.Notified[len(g.Notified)-1].At)
	}):
		return true
	}
	return slices.ContainsFunc(members, func(i incident.Incident) bool { return !slices.Contains(g.Members, i.ID) })
}

// decide is Decide without the outbox.
func (g Group) decide(members []incident.Incident, receivers receiversFunc, now time.Time) (Group, []notice.Notice) {
	g.Notified = slices.Clone(g.Notified)
	g.Members = union(g.Members, members)
	visible := slices.DeleteFunc(slices.SortedFunc(slices.Values(members), incident.ByWorst),
		func(i incident.Incident) bool { return i.Silent })
	was, is := g.State, stateOf(visible)
	g.State = is
	last := incident.State("")
	if len(g.Notified) > 0 {
		last = g.Notified[len(g.Notified)-1].State
	}
	switch {
	case is == incident.Firing:
		firing := keep(visible, func(i incident.Incident) bool { return i.State == incident.Firing })
		names := receiversOf(firing, receivers)
		if was == is && last == is {
			joined := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(g.Receivers, name) })
			again := keep(firing, func(i incident.Incident) bool { return firesAgain(i, g.Notified[len(g.Notified)-1].At) })
			if len(again) == 0 {
				all := g.notices(firing, joined, receivers, now)
				g = g.heard(joined, firing, receivers)
				g, updates := g.update(firing, receivers, now)
				return g, append(all, updates...)
			}
			names = sorted(slices.Concat(joined, receiversOf(again, receivers)))
		}
		g = g.transition(is, now)
		all := g.notices(firing, names, receivers, now)
		g = g.heard(names, firing, receivers)
		g.Update = time.Time{}
		return g, all
	case is.Over() && last == incident.Firing:
		names := g.Receivers
		g = g.transition(is, now)
		g.Receivers, g.Tasks, g.Update = nil, nil, time.Time{}
		return g, g.notices(keep(visible, fired), names, receivers, now)
	}
	return g, nil
}

// heard returns the group after receivers have heard of those of some incidents that are theirs.
func (g Group) heard(names []string, of []incident.Incident, receivers receiversFunc) Group {
	g.Receivers = sorted(slices.Concat(g.Receivers, names))
	g.Tasks = maps.Clone(g.Tasks)
	for _, name := range names {
		if g.Tasks == nil {
			g.Tasks = make(map[string][]string)
		}
		tasks := slices.Clone(g.Tasks[name])
		for _, i := range receivers.only(of, name) {
			tasks = append(tasks, i.Series.Task)
		}
		g.Tasks[name] = sorted(tasks)
	}
	return g
}

// update returns the group, and the notices to receivers of incidents whose tasks they have not heard
// of, or when these are due.
func (g Group) update(firing []incident.Incident, receivers receiversFunc, now time.Time) (Group, []notice.Notice) {
	g.Update = time.Time{}
	news := make(map[string][]incident.Incident) // by receiver
	for _, i := range firing {
		for _, name := range receiversOf([]incident.Incident{i}, receivers) {
			if tasks, known := g.Tasks[name]; known && !slices.Contains(tasks, i.Series.Task) {
				news[name] = append(news[name], i)
			}
		}
	}
	if len(news) == 0 {
		return g, nil
	}
	if due := g.Notified[len(g.Notified)-1].At.Add(updatePause); now.Before(due) {
		g.Update = due
		return g, nil
	}
	g = g.transition(incident.Firing, now)
	var all []notice.Notice
	for _, name := range slices.Sorted(maps.Keys(news)) {
		all = append(all, g.notices(news[name], []string{name}, receivers, now)...)
		g = g.heard([]string{name}, news[name], receivers)
	}
	return g, all
}

// receiversFunc returns the names of the receivers of an incident.
type receiversFunc func(incident.Incident) []string

// only returns those of some incidents that a receiver is one of; all of them if it is one of none.
func (of receiversFunc) only(all []incident.Incident, name string) []incident.Incident {
	own := keep(all, func(i incident.Incident) bool { return slices.Contains(of(i), name) })
	if len(own) == 0 {
		return all
	}
	return own
}

// receiversOf returns the receivers of incidents, in order, each once.
func receiversOf(all []incident.Incident, of receiversFunc) []string {
	var names []string
	for _, i := range all {
		names = append(names, of(i)...)
	}
	return sorted(names)
}

// sorted returns texts in order, each once.
func sorted(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// union returns the IDs of members that are known and of those at hand, in order.
func union(known []string, members []incident.Incident) []string {
	all := slices.Clone(known)
	for _, i := range members {
		all = append(all, i.ID)
	}
	return sorted(all)
}

func keep(all []incident.Incident, of func(incident.Incident) bool) []incident.Incident {
	var some []incident.Incident
	for _, i := range all {
		if of(i) {
			some = append(some, i)
		}
	}
	return some
}

// stateOf returns the state of a group: empty as long as none of its members fired.
func stateOf(members []incident.Incident) incident.State {
	has := map[incident.State]bool{}
	for _, i := range keep(members, fired) {
		has[i.State] = true
	}
	for _, s := range []incident.State{incident.Firing, incident.Acknowledged, incident.Resolved, incident.Dismissed} {
		if has[s] {
			return s
		}
	}
	return ""
}

// fired reports whether an incident ever fired.
func fired(i incident.Incident) bool {
	return slices.ContainsFunc(i.Became, func(t incident.Transition) bool { return t.State == incident.Firing })
}

// firesAgain reports whether an incident that was acknowledged fires again since a time.
func firesAgain(i incident.Incident, since time.Time) bool {
	n := len(i.Became)
	return n > 1 && i.Became[n-1].State == incident.Firing && i.Became[n-2].State == incident.Acknowledged && i.Became[n-1].At.After(since)
}

// transition adds a transition that people are notified of.
func (g Group) transition(s incident.State, now time.Time) Group {
	id := incident.ID("notice", g.Namespace, g.ID, strconv.Itoa(len(g.Notified)), string(s))
	g.Notified = append(g.Notified, Transition{Notice: id, State: s, At: now})
	return g
}

// notices returns the notices of the group's latest transition for some receivers.
func (g Group) notices(of []incident.Incident, names []string, receivers receiversFunc, now time.Time) (all []notice.Notice) {
	latest := g.Notified[len(g.Notified)-1]
	for _, name := range names {
		about := receivers.only(of, name)
		all = append(all, notice.Notice{
			ID: incident.ID("notice", latest.Notice, name), First: incident.ID("notice", g.Notified[0].Notice, name),
			Receiver: name, Namespace: g.Namespace, Group: g.ID, Became: latest.State, Made: now,
			Incidents: about[:min(Most, len(about))], More: max(0, len(about)-Most),
		})
	}
	return all
}
