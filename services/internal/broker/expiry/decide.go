package expiry

import "time"

// patience is the number of session timeouts in which a live member sends at least one heartbeat, even on a busy machine.
const patience = 3

// A session timeout that a member asks for counts within these bounds. Anybody who reaches the broker may send any number.
const (
	minSession = time.Second
	maxSession = 5 * time.Minute
)

// group is what is known of a consumer group since a member joined last.
type group struct {
	session time.Duration       // the longest session timeout that a member asked for
	due     time.Time           // when there is something to do
	silent  map[string]struct{} // members that have sent no heartbeat since the group was found stable; nil before
}

// joined notes a request to join, which starts a rebalance.
func (g *group) joined(now time.Time, session time.Duration) {
	g.session = max(g.session, min(max(session, minSession), maxSession))
	g.due, g.silent = now.Add(g.session), nil
}

// found notes the state of a group, with its members. A group that is not stable is looked at again: in a rebalance a live member may send
// nothing.
func (g *group) found(now time.Time, stable bool, members []string) {
	if !stable {
		g.due = now.Add(g.session)
		return
	}
	g.due, g.silent = now.Add(patience*g.session), make(map[string]struct{}, len(members))
	for _, m := range members {
		g.silent[m] = struct{}{}
	}
}

// heard notes a heartbeat, and reports whether every member has sent one.
func (g *group) heard(member string) bool {
	delete(g.silent, member)
	return g.silent != nil && len(g.silent) == 0
}

// step is what to do next for a group.
type step int

const (
	stepWait   step = iota // until it is due
	stepLook               // whether it is stable, and who its members are
	stepRemove             // the members that are silent
)

// next returns the step of a group.
func (g *group) next(now time.Time) step {
	switch {
	case now.Before(g.due):
		return stepWait
	case g.silent == nil:
		return stepLook
	default:
		return stepRemove
	}
}
