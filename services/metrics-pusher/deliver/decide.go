package deliver

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Column is a column of a delivery.
type Column struct {
	Name   string // 1 to 63 lower-case letters, digits and _, the first no digit
	Number bool   // its values are float64; else they are strings. Any value may be nil

	Value descriptors.ColumnValue // what its values are
}

// About is what a destination that stores runs may say of one beside its rows.
type About struct {
	Name, Namespace, Owner, Set, Cell, File string // each may be empty

	Outcome        event.Outcome
	Attempt        int
	Started, Ended time.Time // zero for none
	Labels         map[string]string
}

// Delivery is the rows of one run for one destination. Rows may be read several times, and gives the same rows each time. A reader stops at
// the first error.
type Delivery struct {
	Run     string
	About   About
	Columns []Column
	Rows    iter.Seq2[[]any, error]
}

// table is the columns of a destination's rows, by name.
type table struct {
	columns []Column
	values  []descriptors.ColumnValue
}

func tableOf(d descriptors.Destination) table {
	var t table
	all := d.ColumnsOrDefault()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v, _ := descriptors.ParseColumnValue(all[name]) // the gateway has accepted it
		t.columns, t.values = append(t.columns, Column{Name: name, Number: v.Number(), Value: v}), append(t.values, v)
	}
	return t
}

// aboutRun returns what is said of a run.
func aboutRun(r store.Run) About {
	a := About{
		Name: r.Name, Namespace: r.Namespace, Owner: r.Owner, Set: r.Set, Cell: r.Cell, File: r.File,
		Outcome: r.Outcome, Attempt: r.Attempt, Started: r.Created, Labels: r.Labels,
	}
	if r.Started != nil {
		a.Started = *r.Started
	}
	if r.Ended != nil {
		a.Ended = *r.Ended
	}
	return a
}

// row is one row, whose values get gives.
func (t table) row(get func(v descriptors.ColumnValue) any) []any {
	row := make([]any, len(t.values))
	for i, v := range t.values {
		row[i] = get(v)
	}
	return row
}

// ofRun reports whether the whole run is one row.
func (t table) ofRun() bool {
	return slices.ContainsFunc(t.values, func(v descriptors.ColumnValue) bool { return v.From == descriptors.FromMetric })
}

// summaryRows returns a row for each summary of a run, or the one row of the run.
func (t table) summaryRows(r store.Run, all store.Summaries) [][]any {
	if t.ofRun() {
		return [][]any{t.row(func(v descriptors.ColumnValue) any {
			if v.From != descriptors.FromMetric {
				return runValue(r, v)
			}
			if s, ok := metricSummary(all, v.Name); ok {
				return summaryValue(s, v.Field)
			}
			return nil
		})}
	}
	rows := make([][]any, len(all.Summaries))
	for i, s := range all.Summaries {
		rows[i] = t.row(func(v descriptors.ColumnValue) any {
			if v.From == descriptors.FromSummary {
				return summaryValue(s, v.Field)
			}
			return runValue(r, v)
		})
	}
	return rows
}

// metricSummary returns the summary of a metric: the one without labels, or the only one.
func metricSummary(all store.Summaries, metric string) (store.Summary, bool) {
	var found []store.Summary
	for _, s := range all.Summaries {
		if s.Metric == metric && len(s.Labels) == 0 {
			return s, true
		}
		if s.Metric == metric {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return store.Summary{}, false
	}
	return found[0], true
}

// sampleRows returns a row for each sample of the last attempt.
func (t table) sampleRows(r store.Run, samples []store.Sample) [][]any {
	var rows [][]any
	for _, s := range samples {
		if s.Origin.Attempt == r.Attempt {
			rows = append(rows, t.sampleRow(r, s))
		}
	}
	return rows
}

// sampleRow returns the row of a sample.
func (t table) sampleRow(r store.Run, s store.Sample) []any {
	return t.row(func(v descriptors.ColumnValue) any {
		if v.From != descriptors.FromSample {
			return runValue(r, v)
		}
		switch v.Field {
		case "metric":
			return text(s.Name)
		case "unit":
			return text(s.Unit)
		case "labels":
			return labels(s.Labels)
		case "value":
			return number(s.Float())
		case "step":
			if s.Step != nil {
				return float64(*s.Step)
			}
			return nil
		}
		return timeText(time.Unix(0, s.Time))
	})
}

func runValue(r store.Run, v descriptors.ColumnValue) any {
	if v.From == descriptors.FromLabel {
		value, ok := r.Labels[v.Name]
		if !ok {
			return nil
		}
		return value
	}
	switch v.Field {
	case "attempt":
		return float64(r.Attempt)
	case "repetition":
		if r.Repetition == 0 {
			return nil
		}
		return float64(r.Repetition)
	case "created":
		return timeText(r.Created)
	case "started":
		return optionalTime(r.Started)
	case "ended":
		return optionalTime(r.Ended)
	}
	return text(map[string]string{
		"id": r.ID, "name": r.Name, "namespace": r.Namespace, "owner": r.Owner, "outcome": string(r.Outcome), "set": r.Set, "cell": r.Cell,
	}[v.Field])
}

func summaryValue(s store.Summary, field string) any {
	switch field {
	case "metric":
		return text(s.Metric)
	case "unit":
		return text(s.Unit)
	case "labels":
		return labels(s.Labels)
	case "n":
		return float64(s.N)
	}
	return number(float64(map[string]store.Float{
		"min": s.Min, "max": s.Max, "median": s.Median, "p90": s.P90, "p95": s.P95, "p99": s.P99, "mean": s.Mean, "sd": s.SD,
		"first": s.First, "last": s.Last,
	}[field]))
}

// number is v, or nil: NaN and infinities are no values that every destination has.
func number(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// text is s, or nil for none.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// labels are a JSON object with sorted keys, or nil for none.
func labels(all map[string]string) any {
	if len(all) == 0 {
		return nil
	}
	b, err := json.Marshal(all)
	if err != nil {
		return nil // cannot be: they are texts
	}
	return string(b)
}

func optionalTime(t *time.Time) any {
	if t == nil {
		return nil
	}
	return timeText(*t)
}

func timeText(t time.Time) any { return t.UTC().Format(time.RFC3339Nano) }

// withError returns the destinations of a document after a try of one: without it after a success, with the error after a failure.
func withError(all []store.OwedDestination, name, failure string) []store.OwedDestination {
	var left []store.OwedDestination
	for _, d := range all {
		if d.Name != name {
			left = append(left, d)
		} else if failure != "" {
			left = append(left, store.OwedDestination{Name: name, Error: failure})
		}
	}
	return left
}
