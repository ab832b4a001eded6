package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// LabelVersion is the label with the version of the measured program.
const LabelVersion = "version"

// resultDoc is the summary of one series of a run's samples, for dashboards.
type resultDoc struct {
	Timestamp string            `json:"@timestamp"`
	Run       resultRun         `json:"run"`
	Labels    map[string]string `json:"labels,omitempty"`
	Machine   resultMachine     `json:"machine,omitzero"`
	Metric    resultMetric      `json:"metric"`
	N         int64             `json:"n"`
	Value     map[string]any    `json:"value"`
	Complete  bool              `json:"complete"`
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

// writeResults writes the summaries of a run for dashboards, one document for each series, with facts from the run's record and environment
// as far as they are known. Repeating it changes nothing, and an older version of the summaries never replaces a newer one.
func (s *Store) writeResults(ctx context.Context, d store.Doc) error {
	var all store.Summaries
	if unread := json.Unmarshal(d.Value, &all); unread != nil || len(all.Summaries) == 0 {
		return nil //nolint:nilerr // it is no summary of ours, or of nothing
	}
	r, err := s.Run(ctx, d.Key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	environment, _, err := store.Get[store.RunEnvironment](ctx, s, store.KindEnvironment, d.Key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	var body []byte
	var items []int
	for n, one := range all.Summaries {
		doc, err := json.Marshal(newResultDoc(r, environment, all, one))
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrRefused, err)
		}
		items = append(items, len(body))
		body = appendString(append(body, `{"index":{"_id":`...), digest(r.ID, strconv.Itoa(n)))
		body = strconv.AppendInt(append(body, `,"version_type":"external_gte","version":`...), d.Version, 10)
		body = append(append(append(body, "}}\n"...), doc...), '\n')
	}
	refused, err := s.client.Bulk(ctx, s.client.Index(schema.Results, partition(r.ID)), body, items)
	return errors.Join(append(refused, err)...)
}

func newResultDoc(r store.Run, environment store.RunEnvironment, all store.Summaries, one store.Summary) resultDoc {
	d := resultDoc{
		Timestamp: timestamp(nanos(r.Created)), N: one.N, Complete: all.Complete, Value: values(one),
		Run: resultRun{
			ID: termOf(r.ID), Name: termOf(r.Name), Namespace: termOf(r.Namespace), Owner: termOf(r.Owner), Task: termOf(r.Labels[store.LabelTask]), Attempt: all.Attempt,
			Outcome: r.Outcome, Set: termOf(r.Set), Cell: termOf(r.Cell), Repetition: r.Repetition, Warmup: r.Warmup, Schedule: termOf(r.Schedule), Version: termOf(version(r)),
		},
		Metric: resultMetric{Name: termOf(one.Metric), Unit: termOf(one.Unit), Direction: termOf(one.Direction)},
	}
	d.Labels, _ = searchable(r.Labels)
	d.Metric.Labels, _ = searchable(one.Labels)
	if pods := environment.Attempt(all.Attempt); len(pods) > 0 {
		d.Machine = resultMachine{Name: termOf(describeMachines(pods)), Fingerprint: store.Fingerprint("", pods)}
	}
	return d
}

// values returns the finite numbers of a summary: the server cannot store others.
func values(one store.Summary) map[string]any {
	all := map[string]store.Float{
		"min": one.Min, "max": one.Max, "median": one.Median, "p90": one.P90, "p95": one.P95, "p99": one.P99, "mean": one.Mean, "sd": one.SD,
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
func version(r store.Run) string {
	if v := r.Labels[LabelVersion]; v != "" {
		return v
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
