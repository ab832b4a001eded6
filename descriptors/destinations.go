package descriptors

import (
	"slices"
	"strings"
)

// A ColumnSource is what a ColumnValue is a field of.
type ColumnSource string

// The sources.
const (
	FromRun     ColumnSource = "run"
	FromLabel   ColumnSource = "label"
	FromSummary ColumnSource = "summary"
	FromMetric  ColumnSource = "metric"
	FromSample  ColumnSource = "sample"
)

// A ColumnValue is the value of a column, as Destination.Columns writes it.
type ColumnValue struct {
	From  ColumnSource
	Name  string // of the label or the metric; empty for the other sources
	Field string // empty for a label
}

// ParseColumnValue reads a value as run.id, label.team, summary.median, metric.rate.median
// or sample.value. The name of a metric may have dots. Ok is false for all other texts.
func ParseColumnValue(text string) (v ColumnValue, ok bool) {
	from, rest, _ := strings.Cut(text, ".")
	v = ColumnValue{From: ColumnSource(from), Field: rest}
	switch v.From {
	case FromLabel:
		v.Name, v.Field = rest, ""
		return v, rest != ""
	case FromMetric:
		i := strings.LastIndexByte(rest, '.')
		if i < 1 {
			return v, false
		}
		v.Name, v.Field = rest[:i], rest[i+1:]
	case FromRun, FromSummary, FromSample:
	}
	return v, slices.Contains(columnFields(v.From), v.Field)
}

// Number reports whether the value is a number; else it is text.
func (v ColumnValue) Number() bool {
	switch v.From {
	case FromRun:
		return v.Field == "attempt" || v.Field == "repetition"
	case FromSummary, FromMetric:
		return slices.Contains(summaryNumbers(), v.Field)
	case FromSample:
		return v.Field == "value" || v.Field == "step"
	case FromLabel:
	}
	return false
}

func summaryNumbers() []string {
	return []string{"n", "min", "max", "median", "p90", "p95", "p99", "mean", "sd", "first", "last"}
}

func columnFields(from ColumnSource) []string {
	switch from {
	case FromRun:
		return []string{
			"id", "name", "namespace", "owner", "outcome", "attempt", "created", "started", "ended", "set", "cell", "repetition",
		}
	case FromSummary:
		return append([]string{"metric", "unit", "labels"}, summaryNumbers()...)
	case FromMetric:
		return append([]string{"unit"}, summaryNumbers()...)
	case FromSample:
		return []string{"metric", "unit", "labels", "value", "time", "step"}
	case FromLabel:
	}
	return nil
}

// ColumnsOrDefault are the columns of a row: those of the descriptor, or the default ones.
// The caller must not change them.
func (d Destination) ColumnsOrDefault() map[string]string {
	switch {
	case len(d.Columns) > 0:
		return d.Columns
	case d.Rows == SampleRows:
		return map[string]string{
			"run": "run.id", "metric": "sample.metric", "unit": "sample.unit", "labels": "sample.labels",
			"time": "sample.time", "step": "sample.step", "value": "sample.value",
		}
	}
	all := map[string]string{"run": "run.id", "metric": "summary.metric", "unit": "summary.unit", "labels": "summary.labels"}
	for _, field := range []string{"n", "min", "median", "max", "mean", "sd"} {
		all[field] = "summary." + field
	}
	return all
}
