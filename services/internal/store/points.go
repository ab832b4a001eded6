package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"
)

// SeriesKey identifies a series: the values of one metric, with one unit and one set of labels, over the runs of a task. Each cell of a
// sweep has series of its own. What is measured and where it ran are no part of it: a point has them.
type SeriesKey struct {
	Namespace string            `json:"namespace"`
	Task      string            `json:"task,omitempty"` // label task_name of the runs; may be empty
	Metric    string            `json:"metric"`
	Unit      string            `json:"unit,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"` // of the samples
	Cell      string            `json:"cell,omitempty"`   // its name; empty for runs of no set
}

// ID returns a text of 32 hex digits that no other series has.
func (k SeriesKey) ID() string {
	if len(k.Labels) == 0 {
		k.Labels = nil
	}
	text, _ := json.Marshal(k) // keys of maps are sorted; texts have no errors
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Equal reports whether both are the same series. It is much faster than to compare IDs.
func (k SeriesKey) Equal(o SeriesKey) bool {
	return k.Metric == o.Metric && maps.Equal(k.Labels, o.Labels) && k.Unit == o.Unit && k.Task == o.Task &&
		k.Cell == o.Cell && k.Namespace == o.Namespace
}

// PointRun is what all points of a run have in common. Empty fields are unknown.
type PointRun struct {
	Run       string    `json:"run"`
	Namespace string    `json:"namespace"`
	Task      string    `json:"task,omitempty"`
	Set       string    `json:"set,omitempty"`
	Cell      string    `json:"cell,omitempty"`
	Ordinal   int       `json:"ordinal,omitempty"` // of the run in its cell, from 1
	Time      time.Time `json:"time"`              // by which points are ordered
	Excluded  Exclusion `json:"excluded,omitempty"`
	Complete  bool      `json:"complete"` // all samples of the run are in its points

	Version    string   `json:"version,omitempty"`    // label version: what is measured
	Image      string   `json:"image,omitempty"`      // as the descriptor names it
	Images     []string `json:"images,omitempty"`     // digests of the images that ran, as sha256:…, sorted
	Descriptor string   `json:"descriptor,omitempty"` // SHA-256 of the descriptor as it was run, hex
	Data       string   `json:"data,omitempty"`       // digest of the paths and contents of all data sets, hex
	Code       string   `json:"code,omitempty"`       // SHA-256 of the code that was sent along, hex
	Platform   string   `json:"platform,omitempty"`   // version of the platform's programs in the pods
	Machine    string   `json:"machine,omitempty"`    // MachineFingerprint of the pods
	Hardware   string   `json:"hardware,omitempty"`   // the same, for people
	Nodes      []string `json:"nodes,omitempty"`      // of the pods, sorted
}

// Exclusion is the reason why a run is no point of a series. The empty text means that it is one.
type Exclusion string

// Reasons, in the order in which they are looked for.
const (
	ExcludedImport       Exclusion = "import" // it ran on another platform, and its import did not ask for a place in the history
	ExcludedWarmup       Exclusion = "warm-up"
	ExcludedConfirmation Exclusion = "confirmation" // it was made to confirm an incident, or for a comparison
	ExcludedFailed       Exclusion = "failed"
	ExcludedCanceled     Exclusion = "canceled"
)

// RunPoints are the values of one run, one for each series that it has a value in.
type RunPoints struct {
	PointRun

	Revision int64     `json:"revision"` // of the points: a later one replaces earlier ones; that of the run's summary, 0 without one
	Points   []Summary `json:"points"`   // those of run.duration and run.queued have no samples
}

// Key returns the series that a value of the run belongs to.
func (r PointRun) Key(s Summary) SeriesKey {
	return SeriesKey{Namespace: r.Namespace, Task: r.Task, Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Cell: r.Cell}
}

// Point is the value of one run in a series.
type Point struct {
	PointRun
	Summary
}

// Position returns the position of the point in its series.
func (p Point) Position() PointPosition { return PointPosition{Time: p.Time, Run: p.Run} }

// PointPosition is a position in a series: points are in order of time, then of run.
type PointPosition struct {
	Time time.Time
	Run  string
}

// Series is a series with at least one point.
type Series struct {
	SeriesKey

	Direction string    // of the newest point
	Points    int64     // number of points
	Newest    time.Time // time of the newest point
}

// SeriesQuery selects series. Its zero value selects all.
type SeriesQuery struct {
	Namespace    string // empty means all
	Task         string // empty means all
	MetricPrefix string // beginning of the metric's name
}

// PointQuery selects points of a series.
type PointQuery struct {
	Series SeriesKey
	Since  time.Time     // of this time or later; zero means all
	Until  time.Time     // before this time; zero means all
	Oldest bool          // first; else the newest is
	After  PointPosition // only points that follow this position in the order of the query; the zero value means all
}

// Points is the part of a store that has points.
type Points interface {
	PointReader

	// PutPoints stores the points of a run in place of those of an earlier revision, all of them or, after an error, some: the same call
	// stores the rest. It changes nothing if the store has points of this or of a later revision.
	PutPoints(ctx context.Context, p RunPoints) error
}

// PointReader reads points. The latest writes may be missing.
type PointReader interface {
	// Series returns up to limit series with points, in order of namespace, task and metric, and the cursor of the next page, empty after
	// the last. Cursor "" is the first page. Runs that are excluded are no points.
	Series(ctx context.Context, q SeriesQuery, cursor string, limit int) (page []Series, next string, err error)
	// Points returns up to limit points, the newest or the oldest first. Fewer than limit are the last ones. Runs that are excluded are no
	// points. A page costs the same however many points the series has.
	Points(ctx context.Context, q PointQuery, limit int) ([]Point, error)
	// RunPoints returns the points of up to MaxPointRuns runs, in the order of their IDs, those of excluded runs, too. A run whose points
	// are not stored is missing. With metrics only points of these metrics are returned.
	RunPoints(ctx context.Context, runs, metrics []string) ([]RunPoints, error)
}

// MaxPointRuns is the maximum number of runs whose points are read at once.
const MaxPointRuns = 1000
