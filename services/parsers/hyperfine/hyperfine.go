// Package hyperfine reads the JSON of hyperfine.
package hyperfine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "hyperfine"

// Labels of metrics. A parameter of hyperfine (-P, -L) is a label of its name.
const (
	labelCommand = "command"
	labelIndex   = "index" // counts commands that are the same from 1
)

// Kind returns the parser of hyperfine's --export-json. Fields are those of src/benchmark/benchmark_result.rs of hyperfine 1.20, and it was
// checked with 1.15. The headline is the median, if there is just one command.
//
// Hyperfine ends at a command that fails, unless it is told to ignore that. What it exported before is then the whole document: only its
// message on standard error, in the same text, tells that commands are missing. Exit codes that it ignored make the report partial.
func Kind() report.Kind {
	labels := []string{labelCommand, labelIndex, "*"}
	seconds := func(name, meaning string) report.Definition {
		return report.Definition{Name: name, Unit: report.Seconds, Direction: report.Lower, Labels: labels, Meaning: meaning}
	}
	k := report.Kind{
		Name: name, Tool: "hyperfine", Document: true, Looks: looks, Parse: report.DocumentParser(name, parse),
		Metrics: []report.Definition{
			seconds("median", "median of the run times"),
			seconds("mean", "mean of the run times"),
			seconds("stddev", "standard deviation of the run times; none of one run"),
			seconds("min", "shortest run time"),
			seconds("max", "longest run time"),
			seconds("user", "mean time in user mode"),
			seconds("system", "mean time in the kernel"),
			{Name: "memory_usage", Unit: report.Bytes, Direction: report.Lower, Labels: labels, Meaning: "greatest memory of a run"},
			{Name: "runs", Unit: report.Count, Labels: labels, Meaning: "runs that were timed"},
		},
	}
	k.Metrics[0].Headline = true
	return k
}

func looks(head []byte) bool { return document.Starts(head, `"results"`, `"command"`) }

// output is what hyperfine exports.
type output struct {
	Results []command `json:"results"`
}

// command is the result of one command.
type command struct {
	Command    *string                    `json:"command"`
	Mean       document.Number            `json:"mean"`
	Stddev     document.Number            `json:"stddev"`
	Median     document.Number            `json:"median"`
	User       document.Number            `json:"user"`
	System     document.Number            `json:"system"`
	Min        document.Number            `json:"min"`
	Max        document.Number            `json:"max"`
	Times      list                       `json:"times"`
	Memory     list                       `json:"memory_usage_byte"`
	ExitCodes  list                       `json:"exit_codes"` // null for a signal
	Parameters map[string]json.RawMessage `json:"parameters"`
}

// list is an array of numbers as it is in the document: there is one for each run.
type list string

// UnmarshalJSON never fails: what is no array is left out.
func (l *list) UnmarshalJSON(text []byte) error {
	if *l = ""; text[0] == '[' {
		*l = list(text)
	}
	return nil
}

// items returns the values of a list.
func (l list) items() iter.Seq[string] {
	return strings.FieldsFuncSeq(string(l), func(r rune) bool { return r <= ' ' || r == ',' || r == '[' || r == ']' })
}

// length returns how many values a list has.
func (l list) length() (n int) {
	for range l.items() {
		n++
	}
	return n
}

func parse(text []byte, _ report.Options) report.Report {
	f := document.Find(text, `"results"`, func(d *output) bool {
		return d.Results != nil && !slices.ContainsFunc(d.Results, func(c command) bool { return c.Command == nil })
	})
	failure := failureOf(f.Around)
	if f.Doc == nil {
		return nothing(f.Around, failure)
	}
	return result(f, failure)
}

// nothing returns the report of a text without a document.
func nothing(text []byte, failure string) report.Report {
	switch {
	case failure != "":
		return report.Failure(name, "", nil, failure)
	case looks(text):
		return report.Of(name, "", nil, "the JSON document ends in the middle")
	case bytes.Contains(text, []byte("Benchmark 1: ")) && bytes.Contains(text, []byte("Range (min … max):")):
		return report.Of(name, "", nil, "no JSON document: hyperfine was run without --export-json")
	}
	return report.Of(name, "", nil, "")
}

// failureOf returns what hyperfine says about its end.
func failureOf(text []byte) string {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("Error: ")) {
			return report.Clip(string(line[len("Error: "):]))
		}
	}
	return ""
}

// result returns the report of a document.
func result(f document.Found[output], failure string) report.Report {
	w := writer{metrics: make([]report.Metric, 0, 9*len(f.Doc.Results))}
	labels := labelsOf(f.Doc.Results)
	for i, c := range f.Doc.Results {
		w.command(c, labels[i])
	}
	if f.Cut {
		w.miss("the JSON document ends in the middle")
	}
	switch {
	case failure != "":
		return report.Failure(name, "", w.metrics, failure)
	case w.missing == "" && len(f.Doc.Results) == 1:
		w.metrics[0].Headline = true
	case len(f.Doc.Results) == 0:
		w.miss("no command was run")
	}
	return report.Of(name, "", w.metrics, w.missing)
}

// labelsOf returns labels that tell commands apart.
func labelsOf(commands []command) []map[string]string {
	labels, count := make([]map[string]string, len(commands)), make(map[string]int)
	for i, c := range commands {
		labels[i] = map[string]string{}
		for key, value := range c.Parameters {
			text := ""
			if json.Unmarshal(value, &text) != nil {
				text = string(value)
			}
			labels[i][key] = text
		}
		labels[i][labelCommand] = *c.Command
		delete(labels[i], labelIndex)
		count[*c.Command]++
	}
	seen := make(map[string]int)
	for i, c := range commands {
		if seen[*c.Command]++; count[*c.Command] > 1 {
			labels[i][labelIndex] = strconv.Itoa(seen[*c.Command])
		}
	}
	return labels
}

// writer collects metrics.
type writer struct {
	metrics []report.Metric
	missing string // the first that is
}

func (w *writer) miss(what string) {
	if w.missing == "" {
		w.missing = report.Clip(what)
	}
}

// command adds the metrics of a command.
func (w *writer) command(c command, labels map[string]string) {
	for _, m := range []struct {
		name  string
		value document.Number
	}{
		{"median", c.Median},
		{"mean", c.Mean},
		{"stddev", c.Stddev},
		{"min", c.Min},
		{"max", c.Max},
		{"user", c.User},
		{"system", c.System},
	} {
		v, ok := m.value.Times(0)
		if ok {
			w.put(m.name, report.Seconds, report.Lower, v, labels)
		} else if m.name != "stddev" {
			w.miss("no " + m.name + " of " + *c.Command)
		}
	}
	if most, ok := greatest(c.Memory); ok {
		w.put("memory_usage", report.Bytes, report.Lower, most, labels)
	}
	if n := max(c.Times.length(), c.ExitCodes.length()); n > 0 {
		w.put("runs", report.Count, "", float64(n), labels)
	}
	if failed := failedRuns(c.ExitCodes); failed != "" {
		w.miss(fmt.Sprintf("%s of %s", failed, *c.Command))
	}
}

func (w *writer) put(name, unit string, d report.Direction, v float64, labels map[string]string) {
	w.metrics = append(w.metrics, report.Metric{Name: name, Value: v, Unit: unit, Direction: d, Labels: labels})
}

// greatest returns the greatest of numbers.
func greatest(numbers list) (most float64, ok bool) {
	for n := range numbers.items() {
		if v, is := report.Number(n); is {
			most, ok = max(most, v), true
		}
	}
	return most, ok
}

// failedRuns says how many runs of a command have failed.
func failedRuns(codes list) string {
	n, all, first := 0, 0, ""
	for code := range codes.items() {
		if all++; code != "0" {
			n++
			first = cmp.Or(first, "exit code "+code)
		}
	}
	switch {
	case n == 0:
		return ""
	case first == "exit code null":
		first = "no exit code"
	}
	return fmt.Sprintf("%s in %d of %d runs, which was ignored,", first, n, all)
}
