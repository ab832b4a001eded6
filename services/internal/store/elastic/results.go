package elastic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
)

// resultDoc is a point as it is stored: the value of a run in one series, with fields for dashboards.
type resultDoc struct {
	Timestamp string            `json:"@timestamp"`
	Run       resultRun         `json:"run"`
	Labels    map[string]string `json:"labels,omitempty"`
	Machine   resultMachine     `json:"machine,omitzero"`
	Metric    resultMetric      `json:"metric"`
	N         int64             `json:"n"`
	Value     map[string]any    `json:"value"`
	Complete  bool              `json:"complete"`
	Find      pointSearchFields `json:"find"`
	Doc       pointRecord       `json:"doc"`
}

// pointSearchFields are the fields by which points are found.
type pointSearchFields struct {
	Series  string `json:"series,omitempty"` // ID; empty if the run is excluded
	Time    int64  `json:"time"`             // by which points are ordered
	Ordinal int    `json:"ordinal"`          // among the points of the run
}

// pointRecord is a point without what the points of its run have in common. It is one only if its revision is that of its run.
type pointRecord struct {
	store.SeriesKey

	Run      string        `json:"run"`
	Revision int64         `json:"revision"`
	Ordinal  int           `json:"ordinal"`
	Time     time.Time     `json:"time"`
	Value    store.Summary `json:"value"` // without the key
}

func newPointRecord(p store.RunPoints, ordinal int) pointRecord {
	v := p.Points[ordinal]
	r := pointRecord{SeriesKey: p.Key(v), Run: p.Run, Revision: p.Revision, Ordinal: ordinal, Time: p.Time, Value: v}
	r.Value.Metric, r.Value.Unit, r.Value.Labels = "", "", nil
	return r
}

// value returns the value with its key.
func (r pointRecord) value() store.Summary {
	v := r.Value
	v.Metric, v.Unit, v.Labels = r.Metric, r.Unit, r.Labels
	return v
}

type resultRun struct {
	ID         string        `json:"id"`
	Name       string        `json:"name,omitempty"`
	Namespace  string        `json:"namespace"`
	Owner      string        `json:"owner"`
	Task       string        `json:"task,omitempty"`
	Attempt    int           `json:"attempt"`
	Outcome    event.Outcome `json:"outcome,omitempty"`
	Set        string        `json:"set,omitempty"`
	Cell       string        `json:"cell,omitempty"`
	Repetition int           `json:"repetition,omitempty"`
	Warmup     bool          `json:"warmup,omitempty"`
	Schedule   string        `json:"schedule,omitempty"`
	Version    string        `json:"version,omitempty"`
}

type resultMachine struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
}

type resultMetric struct {
	Name   string            `json:"name"`
	Unit   string            `json:"unit,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`

	Direction string `json:"direction,omitempty"`
}

// newResultDoc returns the document of a point, with facts from the run's record and environment as far as they are known.
func newResultDoc(p store.RunPoints, ordinal int, r store.Run, pods []store.PodEnvironment) resultDoc {
	one := p.Points[ordinal]
	d := resultDoc{
		Timestamp: names.Timestamp(names.Nanos(cmp.Or(r.Created, p.Time))), N: one.N, Complete: p.Complete, Value: values(one),
		Run: resultRun{
			ID: names.Term(p.Run), Name: names.Term(r.Name), Namespace: names.Term(p.Namespace), Owner: names.Term(r.Owner),
			Task: names.Term(p.Task), Attempt: r.Attempt,
			Outcome: r.Outcome, Set: names.Term(p.Set), Cell: names.Term(p.Cell), Repetition: p.Ordinal, Warmup: r.Warmup,
			Schedule: names.Term(r.Schedule), Version: names.Term(version(p, r)),
		},
		Metric: resultMetric{Name: names.Term(one.Metric), Unit: names.Term(one.Unit), Direction: names.Term(one.Direction)},
		Find:   pointSearchFields{Time: names.Nanos(p.Time), Ordinal: ordinal},
		Doc:    newPointRecord(p, ordinal),
	}
	if p.Excluded == "" {
		d.Find.Series = d.Doc.ID()
	}
	d.Labels, _ = names.Searchable(r.Labels)
	d.Metric.Labels, _ = names.Searchable(one.Labels)
	if len(pods) > 0 {
		d.Machine = resultMachine{Name: names.Term(describeMachines(pods)), Fingerprint: p.Machine}
	}
	return d
}

// values returns the finite numbers of a summary: the server cannot store others.
func values(one store.Summary) map[string]any {
	all := map[string]store.Float{
		"min": one.Min, "max": one.Max, "median": one.Median, "p90": one.P90, "p95": one.P95, "p99": one.P99,
		"mean": one.Mean, "sd": one.SD,
		"first": one.First, "last": one.Last,
	}
	if one.Interval != nil {
		all["low"], all["high"] = one.Interval.Low, one.Interval.High
	}
	out := make(map[string]any, len(all))
	for name, v := range all {
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
			out[name] = f
		}
	}
	return out
}

// version returns the version of the measured program: the label's, else the images that ran.
func version(p store.RunPoints, r store.Run) string {
	if p.Version != "" {
		return p.Version
	}
	var images []string
	for _, image := range r.Images {
		images = append(images, image)
	}
	slices.Sort(images)
	return strings.Join(slices.Compact(images), ", ")
}

// describeMachines returns a description of the pods' machines, each kind of machine once.
func describeMachines(pods []store.PodEnvironment) string {
	var all []string
	for _, p := range pods {
		m := p.Machine
		var parts []string
		for _, g := range m.GPUs {
			parts = append(parts, g.Model)
		}
		text := strings.Join(slices.Compact(parts), ", ")
		if len(parts) > 0 {
			text = fmt.Sprintf("%d × %s, ", len(parts), text)
		}
		text += m.CPUModel
		if m.CPUs > 0 {
			text += fmt.Sprintf(", %d CPUs", m.CPUs)
		}
		if m.Memory > 0 {
			text += fmt.Sprintf(", %.0f GiB", float64(m.Memory)/(1<<30))
		}
		all = append(all, strings.TrimPrefix(text, ", "))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
}
