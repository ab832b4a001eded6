// Package incident is the vocabulary of alarms: the rules that descriptors ask for, what
// they watch, and what they have found. It decides nothing by itself and does no I/O: see
// incident/rule for what opens and ends incidents, and incident/group for which of them
// belong together.
//
// All types are stored as JSON.
package incident

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// When is the condition under which a rule opens an incident.
type When string

// Conditions.
const (
	Regression When = "regression" // the series has changed, in the direction that is worse
	Change     When = "change"     // the series has changed, in either direction
	Above      When = "above"      // values are above the limit
	Below      When = "below"      // values are below the limit
	Beyond     When = "beyond"     // values are worse than a baseline by more than the limit
	Failed     When = "failed"     // runs of the task do not succeed
	Missing    When = "missing"    // no value came in time
)

// Statistic is what of a run's samples is its value.
type Statistic string

// Statistics.
const (
	Median Statistic = "median"
	Mean   Statistic = "mean"
	Min    Statistic = "min"
	Max    Statistic = "max"
	P90    Statistic = "p90"
	P95    Statistic = "p95"
	P99    Statistic = "p99"
	Last   Statistic = "last"
)

// A Rule is one table [[alarms]] of the newest descriptor of a task.
type Rule struct {
	// 32 hex digits of namespace, task, metric, condition, statistic and limits: the same in each edition with the same table
	ID        string
	Namespace string
	Task      string
	Metric    string // empty for Failed
	Statistic Statistic
	When      When
	Unit      string        // of Limit; empty means that of the series
	Limit     float64       // of Above and Below, in Unit; of Beyond, a share: 0.05 is 5 %
	Baseline  string        // of Beyond: its name
	MinChange float64       // smaller changes open nothing; a share
	For       int           // consecutive points that must be over a limit; at least 1
	Within    time.Duration // of Missing: how long a value may take; 0 means what the schedule says
	Notify    []string      // names of receivers; empty means those that settings give the namespace
	Since     time.Time     // time of the first run whose descriptor has the rule: what is older is shown, and nobody is told

	// Confirm says how runs confirm an incident before anybody is notified; nil for none.
	Confirm *Confirm `json:",omitempty"` // IDs of rules without it stay as they were
}

// Confirm is the table [alarms.confirm] of a rule.
type Confirm struct {
	Pairs    int           // of runs that are compared
	MaxRuns  int           // that are made at most, those that fail included
	MaxCost  string        `json:",omitempty"` // a price: what they cost at most, where that is known; empty for any cost
	Deadline time.Duration // after which the incident is judged without further ones
}

// A RuleSet has the rules of the newest descriptor of a task.
type RuleSet struct {
	Rules      []Rule
	Descriptor string            // its SHA-256, hex
	Labels     map[string]string // of the task's newest run
	Newest     time.Time         // time of that run: an earlier run changes nothing
}

// State is how far an incident has come.
type State string

// States. An incident in one of the last two is over. One that the platform dismissed, because
// its change was gone, goes on if the change comes back.
const (
	Suspected    State = "suspected"    // it is there, and must be confirmed before anybody is told
	Confirming   State = "confirming"   // runs that confirm it are under way
	Firing       State = "firing"       // it is there
	Acknowledged State = "acknowledged" // it is there, and somebody knows
	Resolved     State = "resolved"     // it is over
	Dismissed    State = "dismissed"    // it was none
)

// Over reports whether the state is a last one.
func (s State) Over() bool { return s == Resolved || s == Dismissed }

// Cause is the class of what an incident comes from.
type Cause string

// Causes.
const (
	CauseRegression   Cause = "regression"   // what is measured has changed: version, image or code
	CauseMethod       Cause = "method"       // how it is measured has changed: descriptor, data or the platform
	CauseEnvironment  Cause = "environment"  // where it is measured has changed
	CauseNoise        Cause = "noise"        // nothing has changed
	CauseInsufficient Cause = "insufficient" // there are too few points to tell
)

// An Incident is a change, a crossed limit or missing data that a rule watches.
type Incident struct {
	ID     string // 26 characters, derived from its rule and where it begins: see rule.Decide
	Rule   Rule   // as it was when the incident was last seen
	Series store.SeriesKey
	Group  string // of incidents with the same change of version or firing in a namespace
	State  State
	Silent bool // it lay too far back when it was first seen: nobody is told of it
	Became []Transition

	// Kind is step or drift for a change; empty for others.
	Kind      string
	Direction string // up or down
	Before    float64
	After     float64
	Unit      string
	Magnitude *store.Float // After/Before - 1; nil where Before is 0, or where there is no change
	Interval  [2]store.Float
	P         store.Float
	Worst     float64 // magnitude at its worst since somebody was told: an acknowledged one that gets clearly worse fires again

	LastGood *Point // the newest point before it; nil if there is none
	FirstBad *Point // the first point of it; nil for missing data without a point
	First    *Point // the range in which FirstBad may lie; nil where there is none
	Last     *Point
	Recent   []Point // up to 60 newest points, for a picture
	Cause    Cause
	Reasons  []string // sentences: what differs, and how the cause follows
	Message  string   // one sentence of what it is about

	Opened  time.Time // when it was first seen
	Updated time.Time // when it last changed
	Acked   *Ack      // nil unless somebody acknowledged it

	Confirmation *Confirmation `json:",omitempty"` // nil if no runs were to confirm it
}

// A Confirmation is what runs say of an incident: pairs of the last good and the first bad
// edition, each repeated as it was.
type Confirmation struct {
	ID      string      // of the request for the runs; incidents of one change share it. Empty until the runs are asked for
	Old     string      // run of the last good edition
	New     string      // run of the first bad edition
	Verdict Verdict     // empty as long as the runs go on
	Why     string      // one sentence
	Runs    []RunOfPair // in the order in which they were made
	Gaps    []string    // what may differ from the runs that are repeated
}

// RunOfPair is a run that confirms an incident.
type RunOfPair struct {
	Run   string
	Pair  int // from 1
	Side  Side
	State string       // running, succeeded or failed
	Value *store.Float // nil as long as it has none
}

// Side is the edition that a run repeats.
type Side string

// Sides.
const (
	SideOld Side = "old"
	SideNew Side = "new"
)

// Verdict is what runs say of an incident.
type Verdict string

// Verdicts.
const (
	VerdictConfirmed    Verdict = "confirmed"    // the new edition differs from the old one
	VerdictNoise        Verdict = "noise"        // it does not
	VerdictEnvironment  Verdict = "environment"  // it does not, and both have the values of the new one: something outside has changed
	VerdictInsufficient Verdict = "insufficient" // the runs do not tell
)

// Point is what an incident keeps of a point.
type Point struct {
	Run     string
	Time    time.Time
	Version string
	Value   float64
}

// A Transition is a change of an incident's state.
type Transition struct {
	State State
	At    time.Time
	By    string // the user; empty if it was the platform
	Why   string // one sentence
}

// Ack is what a user said of an incident.
type Ack struct {
	By     string
	At     time.Time
	Reason string
	Until  time.Time // zero means until it is over
	Accept bool      // the new level is the good one: the incident ends
	Wrong  bool      // it is none: it is dismissed, and counts against its rule
}

// A Mute keeps the incidents of some tasks from being told until a time.
type Mute struct {
	ID        string
	Namespace string
	Task      string            // empty means all
	Labels    map[string]string // of the task's newest run, or of the run whose end it is; all must match
	By        string
	Reason    string
	Since     time.Time
	Until     time.Time
}
