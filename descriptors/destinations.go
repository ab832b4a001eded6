package descriptors

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
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

// destinations checks the destinations of the run.
func (c check) destinations() {
	if s := c.d.Server; s != nil && c.r.Has("server.output.destinations") {
		c.r.Warn("server.output.destinations", fault.NotRead, "a run has the destinations of the table output", "move them to [[output.destinations]]")
	}
	if c.d.Output == nil {
		return
	}
	first := map[string]int{}
	for i, d := range c.d.Output.Destinations {
		at := fmt.Sprintf("output.destinations[%d]", i)
		if j, twice := first[d.Name]; twice && d.Name != "" {
			c.r.Fault(at+".name", fault.SameDestination, fmt.Sprintf("%q is the name of output.destinations[%d] too", d.Name, j),
				"name each destination once")
			continue
		}
		first[d.Name] = i
		c.destination(at, d)
		c.columns(at+".columns", d)
	}
}

// destination finds one that the platform does not have for the descriptor's namespace.
func (c check) destination(at string, d Destination) {
	if c.parser.Destinations == nil || c.parser.Accepted || !c.r.IsValid(at+".name") {
		return
	}
	namespace := c.parser.Namespace
	if namespace == "" {
		namespace = "default"
	}
	var usable []string
	for _, name := range slices.Sorted(maps.Keys(c.parser.Destinations)) {
		if in := c.parser.Destinations[name]; len(in) == 0 || slices.Contains(in, namespace) {
			usable = append(usable, name)
		}
	}
	if slices.Contains(usable, d.Name) {
		return
	}
	remedy := "leave it out: the settings have no destination for this namespace"
	if len(usable) > 0 {
		remedy = "use one of " + strings.Join(usable, ", ")
	}
	c.r.Fault(at+".name", fault.NoDestination, fmt.Sprintf("this platform has no destination %q for the namespace %q", d.Name, namespace), remedy)
}

// columns checks the values of columns.
func (c check) columns(at string, d Destination) {
	if !c.r.IsValid(at) {
		return
	}
	used := map[ColumnSource]bool{}
	for _, name := range slices.Sorted(maps.Keys(d.Columns)) {
		v, ok := ParseColumnValue(d.Columns[name])
		path := at + "." + decode.Quoted(name)
		if !ok {
			c.r.Fault(path, fault.NoColumnValue, fmt.Sprintf("%q is not a value of a row", d.Columns[name]),
				"write run.FIELD, label.KEY, summary.FIELD, metric.NAME.FIELD or sample.FIELD")
			continue
		}
		used[v.From] = true
		samples := d.Rows == SampleRows
		switch {
		case v.From == FromSample && !samples:
			c.r.Fault(path, fault.OtherRows, "summaries have no values of a sample", `write rows = "samples", or a value of summary or metric`)
		case (v.From == FromSummary || v.From == FromMetric) && samples:
			c.r.Fault(path, fault.OtherRows, fmt.Sprintf("samples have no values of a %s", v.From), `write rows = "summaries", or a value of sample`)
		case used[FromSummary] && used[FromMetric]:
			c.r.Fault(path, fault.OtherRows, "a row is either one summary or the whole run", "use values of summary alone, or of metric alone")
			return
		}
	}
}
