// Package notice is what receivers get: one transition of one incident, or of a group
// of incidents with the same change, or the end of a run or a set, for one receiver.
package notice

import (
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
)

// A Notice is told to one receiver once. It is stored as JSON.
type Notice struct {
	ID        string // 26 characters, of receiver, group and transition: whoever makes it again makes the same
	Receiver  string // its name in settings
	Namespace string
	Group     string              // of the incidents; empty for a test
	Became    incident.State      // firing, resolved or dismissed; Ended for that of a run or a set
	Incidents []incident.Incident // worst first, ten at most
	Ends      []End               `json:",omitempty"` // of runs and sets: one, or several in a digest, ten at most
	More      int                 // how many more incidents and ends there are
	Labels    map[string]string   `json:",omitempty"` // commit, repository and pull_request of the run that First is about: see labels.go
	First     string              // ID of the first notice of the same group to this receiver; ID for that one itself
	Digest    []string            // IDs of the notices that this one sums up, because the receiver is over its rate; empty for others
	Test      bool                // marked as a test
	Again     bool                // a send of it was cut off before the answer: it may have come already
	Made      time.Time
	URL       string // of the incident for people; empty if settings give no address
}

// Status is what became of a notice.
type Status string

// Statuses.
const (
	Waiting Status = "waiting" // it is not sent yet: the receiver is away, over its rate, or it is quiet there
	Sent    Status = "sent"
	Refused Status = "refused" // the receiver does not want it, and will not
	Muted   Status = "muted"
	Summed  Status = "summed" // a digest has it: see Delivery.Digest
)

// Delivery is the log of one notice.
type Delivery struct {
	Notice   Notice
	Status   Status
	Attempts int
	Answer   string    // what the place answered last, in one line
	Next     time.Time // when it is tried again; zero unless Waiting
	Until    time.Time `json:",omitzero"`  // after its last attempt, when the receiver gets something again; zero for at once
	Asked    bool      `json:",omitempty"` // the receiver has asked to wait until then
	Sending  time.Time // a send began then, and its answer is not known
	Digest   string    // ID of the notice that sums it up; empty unless Summed
	At       time.Time // of Status
}
