// Package rule decides which incidents the rules of descriptors open, change and end. It is
// pure: the same points always give the same incidents, in whatever order they came.
package rule

import (
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// MaxPoints is how many points of a series a decision looks at.
const MaxPoints = 500

// Input is what a decision looks at: one rule, and one series that it watches.
type Input struct {
	Rule incident.Rule

	// Series is the series that the rule is applied to. Of Failed it has only a namespace and
	// a task; of Missing it has a metric, too, and stands for all series of that metric.
	Series store.SeriesKey

	// Points are the newest points of the series, the oldest first, at most MaxPoints of them.
	// Missing needs only the newest one with a value, of all series of the metric.
	Points []store.Point

	// Incidents are those of this rule and series that are open, and all that have ended and
	// whose first bad point is not older than the oldest of Points (or the oldest of Runs).
	// Others of the namespace do no harm.
	Incidents []incident.Incident

	// Acks are what users said, by the IDs of incidents.
	Acks map[string]incident.Ack

	// Confirmations are what runs say of the incidents that are confirming, by their IDs.
	Confirmations map[string]incident.Confirmation

	// Baseline has the points of the baseline's runs in the series. Only Beyond needs it.
	Baseline []store.Point

	// Expected is when the next value has to be there, by the schedule of the task: the first
	// firing after the newest point and after Resumed, and the time that a run takes. It is
	// zero where it is not known. Only Missing needs it, and only where the rule has no Within.
	Expected time.Time
	Paused   bool      // the schedule is paused, or has ended: no value is missing
	Resumed  time.Time // when the schedule was last resumed; zero if it never was

	// Runs are the newest runs of the task that have ended, the oldest first. Only Failed needs
	// them. Canceled runs, warm-ups and confirmations are none of them.
	Runs []EndedRun

	// Removed says that the newest descriptor of the task does not have the rule any more.
	Removed bool

	Now time.Time
}

// EndedRun is how a run ended.
type EndedRun struct {
	Run     string
	Time    time.Time // by which runs are ordered, as of a point
	Version string
	Failed  bool
	Reason  string // why it failed, for people
}

// Output is what follows.
type Output struct {
	// Incidents are those to write: new ones, and changed ones. The same decision with them in
	// its input has none.
	Incidents []incident.Incident

	// Notes are sentences that say why the rule cannot be judged.
	Notes []string
}
