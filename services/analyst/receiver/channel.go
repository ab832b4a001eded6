package receiver

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/receiver/hours"
)

// Channel is a receiver under the name that descriptors use, with what the settings say of it.
type Channel struct {
	Name     string
	Receiver Receiver
	Rules    Rules
}

// Rules say which notices a receiver gets, and when. The zero value lets every notice pass at once.
type Rules struct {
	Namespaces   []string      // whose notices it gets; empty means those of all
	Rate         int           // notices an hour, the last of which sums up those that wait; 0 means any number
	Quiet        hours.Range   // nothing is sent then
	MinChange    float64       // changes that are smaller are left out; a share
	SkipResolved bool          // ends of incidents are left out
	SkipEnds     bool          // ends of runs and sets are left out
	Pause        time.Duration // between two notices
	Repeat       time.Duration // after which a notice of incidents that go on is sent again; 0 means never
}

// Allows reports whether a namespace may use the receiver.
func (r Rules) Allows(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}
