// Package pytestbenchmark reads the JSON of pytest-benchmark.
package pytestbenchmark

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "pytest-benchmark"

// Labels of metrics. A parameter of a test is a label of its name, unless that is one of these.
const (
	labelBenchmark = "benchmark" // file, test and parameters, as pytest names it
	labelGroup     = "group"     // if the test is in one
	labelIndex     = "index"     // counts benchmarks that are the same from 1
)

// Kind returns the parser of pytest-benchmark's --benchmark-json. The format is that of its stats.py; it was checked with 5.3.1. All times
// are in seconds. The headline is the median, if there is just one benchmark.
//
// A benchmark whose function raises an exception is not in the document, and one whose test fails later is. Only the text that pytest
// prints tells of both: a line with FAILED or ERROR means that the run has failed.
func Kind() report.Kind {
	labels := []string{labelBenchmark, labelGroup, labelIndex, "*"}
	k := report.Kind{Name: name, Tool: "pytest-benchmark", Document: true, Looks: looks, Parse: report.DocumentParser(name, parse)}
	for _, f := range fields() {
		k.Metrics = append(k.Metrics, report.Definition{
			Name: f.name, Unit: f.unit, Direction: f.direction, Headline: f.name == "median", Labels: labels, Meaning: f.meaning,
		})
	}
	return k
}

// field is one of the statistics.
type field struct {
	name, unit string
	direction  report.Direction
	meaning    string
	of         func(*stats) document.Number
}

func fields() []field {
	return []field{
		{"median", report.Seconds, report.Lower, "median of the rounds", func(s *stats) document.Number { return s.Median }},
		{"mean", report.Seconds, report.Lower, "mean of the rounds", func(s *stats) document.Number { return s.Mean }},
		{"stddev", report.Seconds, report.Lower, "standard deviation of the rounds", func(s *stats) document.Number { return s.Stddev }},
		{"min", report.Seconds, report.Lower, "shortest round", func(s *stats) document.Number { return s.Min }},
		{"max", report.Seconds, report.Lower, "longest round", func(s *stats) document.Number { return s.Max }},
		{"q1", report.Seconds, report.Lower, "first quartile of the rounds", func(s *stats) document.Number { return s.Q1 }},
		{"q3", report.Seconds, report.Lower, "third quartile of the rounds", func(s *stats) document.Number { return s.Q3 }},
		{"iqr", report.Seconds, report.Lower, "distance between the quartiles", func(s *stats) document.Number { return s.IQR }},
		{"ops", report.PerSecond, report.Higher, "calls a second: 1 over the mean", func(s *stats) document.Number { return s.Ops }},
		{"rounds", report.Count, "", "rounds that were timed", func(s *stats) document.Number { return s.Rounds }},
		{"iterations", report.Count, "", "calls of a round", func(s *stats) document.Number { return s.Iterations }},
		{"total", report.Seconds, "", "sum of the rounds", func(s *stats) document.Number { return s.Total }},
	}
}

func looks(head []byte) bool { return document.Starts(head, `"machine_info"`) }

// output is what the plug-in writes.
type output struct {
	Benchmarks []benchmark `json:"benchmarks"`
	Version    string      `json:"version"`
}

// benchmark is one test.
type benchmark struct {
	FullName *string                    `json:"fullname"`
	Group    string                     `json:"group"`
	Params   map[string]json.RawMessage `json:"params"`
	Stats    stats                      `json:"stats"`
}

// stats are times of a call in seconds, and numbers of them.
type stats struct {
	Min        document.Number `json:"min"`
	Max        document.Number `json:"max"`
	Mean       document.Number `json:"mean"`
	Stddev     document.Number `json:"stddev"`
	Rounds     document.Number `json:"rounds"`
	Median     document.Number `json:"median"`
	IQR        document.Number `json:"iqr"`
	Q1         document.Number `json:"q1"`
	Q3         document.Number `json:"q3"`
	Ops        document.Number `json:"ops"`
	Total      document.Number `json:"total"`
	Iterations document.Number `json:"iterations"`
}

func parse(text []byte, _ report.Options) report.Report {
	f := document.Find(text, `"machine_info"`, func(d *output) bool {
		return d.Benchmarks != nil && !slices.ContainsFunc(d.Benchmarks, func(b benchmark) bool { return b.FullName == nil })
	})
	failure := failureOf(f.Around)
	switch {
	case f.Doc != nil:
		return result(f, failure)
	case failure != "":
		return report.Failure(name, "", nil, failure)
	case looks(text):
		return report.Of(name, "", nil, "the JSON document ends before the first result does")
	}
	return report.Of(name, "", nil, "")
}

// failureOf returns what pytest says about the first test that has failed.
func failureOf(text []byte) string {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("FAILED ")) || bytes.HasPrefix(line, []byte("ERROR ")) || bytes.HasPrefix(line, []byte("ERROR: ")) {
			return report.Clip(string(line))
		}
	}
	return ""
}

// result returns the report of a document.
func result(f document.Found[output], failure string) report.Report {
	missing, all, labels := "", fields(), labelsOf(f.Doc.Benchmarks)
	metrics := make([]report.Metric, 0, len(all)*len(labels))
	for i, b := range f.Doc.Benchmarks {
		for _, of := range all {
			n := of.of(&b.Stats)
			v, ok := n.Times(0)
			switch {
			case ok:
				metrics = append(metrics, report.Metric{Name: of.name, Value: v, Unit: of.unit, Direction: of.direction, Labels: labels[i]})
			case of.name != "total" && of.name != "iterations" && missing == "":
				missing = report.Clip("no number: " + of.name + " of " + *b.FullName)
			}
		}
	}
	switch {
	case failure != "":
		return report.Failure(name, f.Doc.Version, metrics, failure)
	case f.Cut:
		missing = "the JSON document ends in the middle"
	case len(f.Doc.Benchmarks) == 0:
		missing = "no benchmark was run"
	case len(f.Doc.Benchmarks) == 1 && missing == "":
		metrics[0].Headline = true
	}
	return report.Of(name, f.Doc.Version, metrics, missing)
}

// labelsOf returns labels that tell benchmarks apart.
func labelsOf(benchmarks []benchmark) []map[string]string {
	labels, count := make([]map[string]string, len(benchmarks)), make(map[string]int)
	for i, b := range benchmarks {
		labels[i] = map[string]string{}
		for key, value := range b.Params {
			if text, ok := scalar(value); ok {
				labels[i][key] = text
			}
		}
		delete(labels[i], labelGroup)
		delete(labels[i], labelIndex)
		if labels[i][labelBenchmark] = *b.FullName; b.Group != "" {
			labels[i][labelGroup] = b.Group
		}
		count[*b.FullName]++
	}
	seen := make(map[string]int)
	for i, b := range benchmarks {
		if seen[*b.FullName]++; count[*b.FullName] > 1 {
			labels[i][labelIndex] = strconv.Itoa(seen[*b.FullName])
		}
	}
	return labels
}

// scalar returns a value of a parameter as a text, unless it is a list or an object.
func scalar(value json.RawMessage) (text string, ok bool) {
	if json.Unmarshal(value, &text) == nil && len(value) > 0 && value[0] == '"' {
		return text, true
	}
	return string(value), len(value) > 0 && value[0] != '{' && value[0] != '['
}
