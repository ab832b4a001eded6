// Package confirm decides which runs confirm an incident, and what they say of it. It is pure.
//
// An incident says that a metric changed between two runs. A confirmation repeats both, as they
// were, in pairs: one run of the last good edition and one of the first bad edition, one after
// the other. The analyst asks for the runs with a Request, the gateway submits them and reports
// them in a Progress. Each of the two documents has one owner.
package confirm

import (
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// A Request asks the gateway for runs: the document of KindConfirmation, which the analyst
// writes. The gateway deletes it once Incidents is empty and no run of it goes on.
type Request struct {
	ID        string
	Namespace string
	// IDs of those that wait for the runs, in order. None: no further run is submitted, and those that go on are canceled
	Incidents []string
	First     string // ID of the incident that asked first: the value of the label confirms
	Old       string // run of the last good edition
	New       string // run of the first bad edition
	Pairs     int
	MaxRuns   int
	MaxCost   string    `json:",omitempty"` // a price: no run is submitted that would pass it; empty for any cost
	Deadline  time.Time // no run is submitted after it
}

// Progress says which runs were submitted: the document of KindConfirmationRuns, which the
// gateway writes, with the key of the request.
type Progress struct {
	Runs []SubmittedRun // in order
	Done string         // why no further run is submitted; empty as long as one may be
	Gaps []string       // what of the runs cannot be repeated as it was
}

// SubmittedRun is a run of a confirmation.
type SubmittedRun struct {
	Ordinal int // from 0: two for each pair. Those of pairs that were given up are left out
	Run     string
	State   State
	Nodes   []string `json:",omitempty"` // where it ran; none as long as it is not known
}

// State is how far a run has come.
type State string

// States of runs.
const (
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed" // or canceled
)

// StateOf returns the state of a run with an outcome.
func StateOf(o event.Outcome) State {
	if o == event.Succeeded {
		return Succeeded
	}
	return Failed
}

// ID returns the ID of the request for an incident. Incidents of one group, task and cell share
// the runs: they are about one change.
func ID(i incident.Incident) string {
	return incident.ID("confirmation", i.Series.Namespace, i.Group, i.Series.Task, i.Series.Cell)
}

// Key returns the key of the documents of a request.
func Key(namespace, id string) string { return namespace + "/" + id }

// New returns the request of an incident that is confirming.
func New(i incident.Incident, now time.Time) Request {
	c := i.Rule.Confirm
	return Request{
		ID: ID(i), Namespace: i.Series.Namespace, Incidents: []string{i.ID}, First: i.ID, Old: i.Confirmation.Old, New: i.Confirmation.New,
		Pairs: c.Pairs, MaxRuns: c.MaxRuns, MaxCost: c.MaxCost, Deadline: now.Add(c.Deadline),
	}
}

// SideOf returns which edition the run with an ordinal repeats. The order within pairs is random
// by the ID of the request, and balanced: two pairs in a row are old, new, new, old, or new, old,
// old, new. So a machine that becomes slower all the time slows both editions equally.
func SideOf(id string, ordinal int) incident.Side {
	pair := ordinal / 2
	oldFirst := coin(id, pair/2) == (pair%2 == 0)
	if oldFirst == (ordinal%2 == 0) {
		return incident.SideOld
	}
	return incident.SideNew
}
