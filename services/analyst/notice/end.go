package notice

import (
	"strconv"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Ended is what a notice of the end of a run or a set says became of it.
const Ended incident.State = "ended"

// End is the end of a run, or of a set of runs.
type End struct {
	ID        string
	Name      string // of the owner's choice; may be empty
	Namespace string
	Task      string
	Owner     string
	Labels    map[string]string `json:",omitempty"` // of the run, or of the set
	Outcome   event.Outcome
	Reason    event.Reason // of a failed run
	Message   string       // why it did not succeed
	Submitted time.Time
	Ended     time.Time

	Set     bool // it is a set, of runs
	Runs    Counts
	Resumes int `json:",omitempty"` // how often the set had been resumed: it ends again after each

	Numbers    []Number // of a run: the most important ones first
	More       int      // how many numbers there are beside them
	Incomplete bool     // samples of the run may be missing in Numbers
}

// Counts are the numbers of runs of a set that have ended.
type Counts struct{ Succeeded, Failed, Canceled int }

// Number is the value of a run in one series: the median of its samples.
type Number struct {
	Metric string
	Unit   string
	Labels map[string]string
	Value  store.Float
}

// NewEnd returns the notice of an end for a receiver. It is the same whoever makes it, and whenever. Each end of a set that is resumed has
// a notice of its own.
func NewEnd(receiver string, e End) Notice {
	parts := []string{"end", receiver, e.ID}
	if e.Resumes > 0 {
		parts = append(parts, strconv.Itoa(e.Resumes))
	}
	id := incident.ID(parts...)
	return Notice{
		ID: id, Receiver: receiver, Namespace: e.Namespace, Became: Ended, Ends: []End{e},
		Labels: LabelsOf(e.Labels), First: id, Made: e.Ended,
	}
}
