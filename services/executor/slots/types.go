package slots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// MaxPriority is the highest priority. The lowest is -MaxPriority.
const MaxPriority = 1000

// AttemptKey identifies an attempt of a run.
type AttemptKey struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
}

// DocKey returns the key of the attempt's documents.
func (h AttemptKey) DocKey() string { return fmt.Sprintf("%s/%d", h.Run, h.Attempt) }

// QueuedRun is a document of the queue.
type QueuedRun struct {
	Run    event.Fetched `json:"run"`
	Pods   int           `json:"pods"`
	Pool   Pool          `json:"pool,omitempty"`
	Engine string        `json:"engine,omitempty"` // key of the engine; empty for the default one
}

// A Pool is the labels of the nodes that a run's pods ask for. A run cannot take what
// another one waits for if their pools differ in the value of a label.
type Pool map[string]string

// key returns the pool as a text, one label per line.
func (p Pool) key() string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		labels = append(labels, name+"="+p[name])
	}
	return strings.Join(labels, "\n")
}

// Item is a queued run with the key of its document. The order of the keys is the order
// of the queue.
type Item struct {
	QueuedRun

	Key string
}

// AttemptKey returns the key of the queued attempt.
func (w QueuedRun) AttemptKey() AttemptKey { return AttemptKey{Run: w.Run.Run, Attempt: w.Run.Attempt} }

// QueueKey returns the key of an attempt's document in the queue. Higher priorities
// sort first, then retried attempts, then runs in the order of their submission, which
// is the order of their IDs.
func QueueKey(priority int, h AttemptKey) string {
	first := 1
	if h.Attempt > 1 {
		first = 0
	}
	return fmt.Sprintf("%04d/%d/%s/%d", MaxPriority-priority, first, h.Run, h.Attempt)
}

// Table is the document with all attempts that hold a slot.
type Table struct {
	Fence       int64        `json:"fence"` // fence of the lease under which an attempt was last admitted
	Allocations []Allocation `json:"entries"`
}

// Allocation is an attempt that holds a slot, from its admission until its objects are
// gone.
type Allocation struct {
	AttemptKey

	QueueKey    string `json:"queue"` // key of its document in the queue, which stays until the attempt has a plan
	Pods        int    `json:"pods"`
	QuotaKeys   string `json:"shares,omitempty"` // limits that apply to it, one per line
	Launched    bool   `json:"launched,omitempty"`
	Scheduled   bool   `json:"placed,omitempty"`
	Terminating bool   `json:"ending,omitempty"`
	Pool        string `json:"pool,omitempty"` // key of its Pool
	Engine      string `json:"engine,omitempty"`

	Wait event.Reason `json:"-"` // why it waits in the cluster, according to its run; empty if it does not
}

// unscheduled reports whether the allocation is of a gang whose pods may not all have
// nodes. A gang that a queue of the cluster suspends takes none.
func (e Allocation) unscheduled() bool {
	return e.Pods > 1 && !e.Scheduled && !e.Terminating && !e.suspended()
}

// suspended reports whether a queue of the cluster suspends the attempt, which then takes
// no slot.
func (e Allocation) suspended() bool { return e.Wait == event.QueueSuspended && !e.Terminating }

// Holds reports whether an attempt holds a slot.
func (l Table) Holds(h AttemptKey) bool {
	_, ok := l.Allocation(h)
	return ok
}

// Allocation returns the allocation of an attempt, if it has one.
func (l Table) Allocation(h AttemptKey) (Allocation, bool) {
	for _, e := range l.Allocations {
		if e.AttemptKey == h {
			return e, true
		}
	}
	return Allocation{}, false
}

// tableKey is the key of the one table.
const tableKey = "slots"
