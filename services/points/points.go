// Package points turns the results of a run into its points: its value in each series.
//
// A run has a value for each metric of its samples, with one unit and one set of labels,
// however many samples it emitted, and for run.duration and run.queued. The package is
// pure: metrics-pusher stores points, and the gateway reads them.
package points

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// The metrics that each run with a start and an end has.
const (
	DurationMetric = "run.duration" // from the start of the benchmark's process to the end
	QueuedMetric   = "run.queued"   // from the submission to that start
	timeUnit       = "s"
)

// Labels of runs that points are made of.
const (
	LabelVersion     = "version"      // what is measured, for people
	LabelVersionTime = "version_time" // time of RFC 3339 of what is measured
)

// Counts reports whether a run has values: it succeeded, and is no warm-up. A warm-up was
// run before the machine was in its normal state, and a run that did not succeed may have
// measured something else.
func Counts(r store.Run) bool { return !r.Warmup && r.Outcome == event.Succeeded }

// OutsideHistory reports whether a run was made to confirm an incident, or to compare it with
// another one: such runs repeat old ones, and are no points of a history. A label says nothing.
func OutsideHistory(r store.Run) bool { return r.Confirms != "" || r.Compares != "" }

// timeOf returns the time by which a run is ordered among others: that of its firing, else of
// its label version_time, else of its submission. A label that is no time of RFC 3339, or
// one of a year before 1678 or after 2261, is ignored.
func timeOf(r store.Run) time.Time {
	if r.Firing != nil {
		return *r.Firing
	}
	t, err := time.Parse(time.RFC3339, r.Labels[LabelVersionTime])
	if err == nil && time.Unix(0, t.UnixNano()).Equal(t) {
		return t
	}
	return r.Created
}

// Results are the results of a run, as far as they are stored.
type Results struct {
	Summaries   *store.Summaries // nil for a run without samples
	Revision    int64            // version of the document of Summaries; 0 without it
	Environment []store.PodEnvironment
	Imported    bool // the run is of another platform, and its import did not ask for a place in the history
}

// Of returns the points of a run that has ended. Runs that are excluded have points of their
// samples; such runs are not compared with others, but may be looked at.
func Of(r store.Run, results Results) store.RunPoints {
	all := store.RunPoints{PointRun: pointRun(r, results), Revision: results.Revision}
	switch {
	case Counts(r):
		all.Points = Values(r, results.Summaries)
	case results.Summaries != nil:
		all.Points = results.Summaries.Summaries
	}
	return all
}

// Values returns the values of a run: those of its samples, which may be nil, and its times,
// unless a metric of the benchmark with the same name takes their place.
func Values(r store.Run, all *store.Summaries) []store.Summary {
	var values []store.Summary
	if all != nil {
		values = slices.Clip(all.Summaries)
	}
	has := func(metric string) bool {
		return slices.ContainsFunc(values,
			func(s store.Summary) bool { return s.Metric == metric && s.Unit == timeUnit && len(s.Labels) == 0 })
	}
	if r.Started == nil || r.Ended == nil {
		return values
	}
	if d := r.Ended.Sub(*r.Started); d >= 0 && !has(DurationMetric) { // clocks that differ make it negative
		values = append(values, ofTime(DurationMetric, d))
	}
	if d := r.Started.Sub(r.Created); d >= 0 && !has(QueuedMetric) && !r.Created.IsZero() { // an import may not have the time
		values = append(values, ofTime(QueuedMetric, d))
	}
	return values
}

// ofTime returns the value of a run that is a time, which has no samples.
func ofTime(metric string, d time.Duration) store.Summary {
	v := store.Float(d.Seconds())
	return store.Summary{
		Metric: metric, Unit: timeUnit, Min: v, Max: v, Median: v, P90: v, P95: v, P99: v, Mean: v,
		SD: store.Float(math.NaN()), First: v, Last: v,
	}
}

// pointRun returns what the points of a run have in common.
func pointRun(r store.Run, results Results) store.PointRun {
	p := store.PointRun{
		Run: r.ID, Namespace: r.Namespace, Task: r.Labels[store.LabelTask], Set: r.Set, Cell: r.Cell, Ordinal: r.Repetition,
		Time: timeOf(r), Excluded: exclusion(r, results.Imported), Complete: results.Summaries == nil || results.Summaries.Complete,
		Version: r.Labels[LabelVersion], Image: image(r.Descriptor), Descriptor: sum(r.Descriptor),
		Machine: store.MachineFingerprint(results.Environment), Hardware: hardware(results.Environment),
	}
	p.Data, p.Code = dataDigests(r.Data)
	for _, one := range results.Environment {
		if p.Platform == "" {
			p.Platform = one.Platform
		}
		if one.Machine.Node != "" {
			p.Nodes = append(p.Nodes, one.Machine.Node)
		}
		if digest := r.Images[one.Origin.Pod]; strings.Contains(digest, ":") {
			p.Images = append(p.Images, digest)
		}
	}
	p.Nodes, p.Images = sorted(p.Nodes), sorted(p.Images)
	return p
}

// Ending returns what is known of a run that has ended without its results and its
// descriptor: when it is in the order of its series, its version, and why it is no point.
func Ending(r store.Run) (at time.Time, version string, excluded store.Exclusion) {
	return timeOf(r), r.Labels[LabelVersion], exclusion(r, false)
}

// exclusion returns why a run is no point, or "".
func exclusion(r store.Run, imported bool) store.Exclusion {
	switch {
	case imported:
		return store.ExcludedImport
	case r.Warmup:
		return store.ExcludedWarmup
	case OutsideHistory(r):
		return store.ExcludedConfirmation
	case r.Outcome == event.Canceled:
		return store.ExcludedCanceled
	case r.Outcome != event.Succeeded:
		return store.ExcludedFailed
	}
	return ""
}

// image returns the image that a descriptor names, or "" if it cannot be read.
func image(descriptor string) string {
	if d, _ := (parser.Parser{Accepted: true}).Parse("", []byte(descriptor)); d != nil {
		return d.Env.DockerImage
	}
	return ""
}

// dataDigests returns the digest of all data sets of a run, and that of the code that was
// sent along; each is empty where there are none.
func dataDigests(all []event.Data) (data, code string) {
	var sets []string
	for _, d := range all {
		if strings.HasPrefix(d.Source, pod.CodeScheme) {
			code = d.SHA256
			continue
		}
		sets = append(sets, fmt.Sprintf("%q %s\n", d.Path, d.SHA256))
	}
	if len(sets) == 0 {
		return "", code
	}
	slices.Sort(sets)
	return sum(strings.Join(sets, "")), code
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// sorted returns texts in order, each once.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
