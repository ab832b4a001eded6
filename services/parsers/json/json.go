// Package json reads metrics from a JSON file of one's own.
package json

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/bmf"
	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "json"

// maxMetrics is how many metrics a file may have that selects none.
const maxMetrics = 1000

// Kind returns the parser of any JSON: a document, or one on each line. Text around documents is skipped.
//
// With options, a metric is the number at a path: a.b[2].c, or a["odd key"].c for a key that has anything else than letters, digits, "_",
// "-" and the like in it. A number in a string counts: "1.5". A path that leads to nothing, or to no number, is named, with that of the
// number that is spelled most like it; the state is partial, or failed if no path leads to a number. What is selected is a headline,
// because a person chose it.
//
// Without options, each number is a metric with its path as its name, the unit "1" and no direction. Numbers in strings do not count then.
// A number is a headline if it is the only one.
//
// If several documents have a value at the same path, the last counts.
func Kind() report.Kind {
	return report.Kind{
		Name: name, Tool: "a benchmark of one's own",
		Metrics: []report.Definition{
			{
				Name: "*", Unit: "*", Headline: true,
				Meaning: "a number that was selected by its path, or each number, with its path as its name",
			},
		},
		Document: true, Looks: looks, Parse: report.DocumentParser(name, parse),
	}
}

// looks reports whether a text begins with JSON that no other kind reads.
func looks(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\uFEFF")), " \t\r\n")
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	begins := false
	cut := document.All(head, func(doc []byte) { begins = begins || &doc[0] == &head[0] })
	if !begins && cut != 0 {
		return false
	}
	for _, other := range []string{
		`"primaryMetric"`,             // jmh
		`"root_group"`, `"k6Version"`, // k6
		`"fio version"`,            // fio
		`"iperf 3`, `"test_start"`, // iperf3
		`"machine_info"`,                     // pytest-benchmark
		`"library_build_type"`,               // gbench
		`"exit_codes"`,                       // hyperfine
		`"Action":"run"`, `"Action":"start"`, // go test -json
	} {
		if bytes.Contains(head, []byte(other)) {
			return false
		}
	}
	return !bmf.Kind().Looks(head)
}

func parse(text []byte, o report.Options) report.Report {
	if len(o.Metrics) > 0 {
		return selected(text, o.Metrics)
	}
	return everything(text)
}

// everything returns the report of all numbers of a text.
func everything(text []byte) report.Report {
	var metrics []report.Metric
	where := make(map[string]int)
	var path []byte
	left, large := 0, 0
	documents, cut := each(text, func(way []document.Step, leaf []byte) {
		value, ok := report.Number(string(leaf))
		if !ok {
			if isNumber(leaf) {
				large++
			}
			return
		}
		path = appendPath(path[:0], way)
		i, known := where[string(path)]
		switch {
		case known:
			metrics[i].Value = value
		case len(metrics) == maxMetrics:
			left++
		default:
			where[string(path)] = len(metrics)
			metrics = append(metrics, report.Metric{Name: string(path), Value: value, Unit: report.Count})
		}
	})
	var missing []string
	switch {
	case documents == 0 && !cut:
		missing = append(missing, "no JSON in the text")
	case len(metrics) == 0 && !cut:
		missing = append(missing, "no number in the JSON")
	case left > 0:
		missing = append(missing, fmt.Sprintf("%d values are left out: the first %d numbers are metrics", left, maxMetrics))
	}
	if large > 0 {
		missing = append(missing, fmt.Sprintf("%d numbers are too large", large))
	}
	if cut {
		missing = append(missing, "the JSON ends early")
	}
	if len(metrics) == 1 {
		metrics[0].Headline = len(missing) == 0
	}
	return report.Of(name, "", metrics, strings.Join(missing, "; "))
}

// isNumber reports whether a value of JSON is a number. One that report.Number does not take is too large.
func isNumber(leaf []byte) bool {
	return len(leaf) > 0 && (leaf[0] == '-' || leaf[0] >= '0' && leaf[0] <= '9')
}

// each visits the values of all complete documents in a text. Cut tells that the last one is not: its values are no metrics, because one
// cannot tell which document they are of.
func each(text []byte, see func(way []document.Step, leaf []byte)) (documents int, cut bool) {
	at := document.All(text, func(doc []byte) {
		documents++
		document.Walk(doc, see)
	})
	return documents, at >= 0
}
