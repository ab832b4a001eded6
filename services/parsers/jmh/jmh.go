// Package jmh reads the results that JMH, the Java microbenchmark harness, writes as JSON.
package jmh

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "jmh"

// Labels of metrics. A parameter of a benchmark is a label, too; one of these names gets the prefix "param_".
const (
	labelBenchmark  = "benchmark"  // its class and method
	labelThreads    = "threads"    // only if there are several
	labelPercentile = "percentile" // as JMH writes it: 99.9
)

// Kind returns the parser of JMH's `-rf json` (org.openjdk.jmh.results.format.JSONResultFormat, 1.37), alone or among what JMH prints.
//
// Each mode has a metric of its own. It is a headline if it has one value. JMH leaves a benchmark that throws out of its results, which
// only its log tells. A result file that ends too early is read up to its last complete benchmark. JMH's MB are 2^20 bytes (GCProfiler).
func Kind() report.Kind {
	labels := []string{labelBenchmark, labelThreads, "*"}
	second, rate := report.Seconds, report.PerSecond
	return report.Kind{
		Name: name, Tool: "JMH",
		Metrics: []report.Definition{
			{
				Name: "throughput", Unit: rate, Direction: report.Higher, Headline: true, Labels: labels,
				Meaning: "mean of the operations per second (mode thrpt)",
			},
			{
				Name: "average_time", Unit: second, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "mean time of an operation (avgt)",
			},
			{
				Name: "sample_time", Unit: second, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "mean time of sampled operations (sample)",
			},
			{
				Name: "single_shot_time", Unit: second, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "mean time of a single call (ss)",
			},
			{
				Name: "throughput_error", Unit: rate, Labels: labels,
				Meaning: "half of the 99.9 % confidence interval; JMH has none for less than 3 values",
			},
			{Name: "average_time_error", Unit: second, Labels: labels, Meaning: "the same"},
			{Name: "sample_time_error", Unit: second, Labels: labels, Meaning: "the same"},
			{Name: "single_shot_time_error", Unit: second, Labels: labels, Meaning: "the same"},
			{
				Name: "sample_time_percentile", Unit: second, Direction: report.Lower, Labels: labels,
				Meaning: "percentiles of the time of sampled operations",
			},
			{Name: "gc_alloc_rate", Unit: report.BytesPerSecond, Labels: labels, Meaning: "memory allocated per second (-prof gc)"},
			{
				Name: "gc_alloc_rate_norm", Unit: "B/op", Direction: report.Lower, Labels: labels,
				Meaning: "memory allocated by an operation (-prof gc)",
			},
			{Name: "gc_count", Unit: report.Count, Labels: labels, Meaning: "garbage collections (-prof gc)"},
			{Name: "gc_time", Unit: second, Labels: labels, Meaning: "time of garbage collections (-prof gc)"},
			{Name: "*", Unit: "*", Labels: labels, Meaning: "other secondary results: of profilers, counters and methods of a group"},
		},
		Document: true, Looks: looks, Parse: report.DocumentParser(name, parse),
	}
}

func looks(head []byte) bool {
	return bytes.Contains(head, []byte(`"primaryMetric"`)) && bytes.Contains(head, []byte(`"benchmark"`)) ||
		bytes.HasPrefix(head, []byte("# JMH version: ")) || bytes.Contains(head, []byte("\n# JMH version: "))
}

// result is one benchmark with one set of parameters.
type result struct {
	JMHVersion       string            `json:"jmhVersion"`
	Benchmark        string            `json:"benchmark"`
	Mode             string            `json:"mode"`
	Threads          int               `json:"threads"`
	Params           map[string]string `json:"params"`
	PrimaryMetric    *score            `json:"primaryMetric"`
	SecondaryMetrics json.RawMessage   `json:"secondaryMetrics"` // an object, whose order counts
}

// score is a value with its unit. JMH writes numbers that are none as strings.
type score struct {
	Score       json.RawMessage            `json:"score"`
	Error       json.RawMessage            `json:"scoreError"`
	Percentiles map[string]json.RawMessage `json:"scorePercentiles"`
	Unit        string                     `json:"scoreUnit"`
}

func parse(text []byte, _ report.Options) report.Report {
	results, cut := resultsOf(text)
	log := readLog(text)
	c := collector{taken: make(map[string]int)}
	for _, r := range results {
		c.result(r)
		log.version = cmp.Or(report.Clip(r.JMHVersion), log.version)
	}
	c.headlines()
	switch {
	case len(c.metrics) == 0 && log.failure != "":
		return report.Failure(name, log.version, nil, log.failure)
	case log.aborted:
		return report.Failure(name, log.version, c.metrics, log.failure)
	case log.failure != "":
		c.lack("a benchmark failed: " + report.Clip(log.failure))
	}
	if cut {
		c.lack("the JSON ends early")
	}
	return report.Of(name, log.version, c.metrics, strings.Join(c.missing, "; "))
}

// resultsOf returns what the last results in a text have. If they are not complete, those before them count, and else what they have.
func resultsOf(text []byte) (results []result, cut bool) {
	at := document.All(text, func(doc []byte) {
		var found []result
		if json.Unmarshal(doc, &found) == nil && len(found) > 0 && found[0].PrimaryMetric != nil {
			results = found
		}
	})
	const depth = 4 // of an array, a benchmark, its metrics and one of them: that many may lack their ends
	for range depth {
		if at < 0 || len(results) > 0 && !cut {
			break
		}
		text, cut = text[at+1:], true
		at = document.All(text, func(doc []byte) {
			var one result
			if json.Unmarshal(doc, &one) == nil && one.PrimaryMetric != nil {
				results = append(results, one)
			}
		})
	}
	return results, cut || at >= 0
}

// log is what JMH prints.
type log struct {
	version string
	failure string // what the last benchmark that failed has thrown, or why JMH ended
	aborted bool   // JMH ended before its results were complete
}

func readLog(text []byte) log {
	var l log
	thrown := false // the next line with words is that of an exception
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
		case thrown:
			l.failure, thrown = string(line), false
		case bytes.HasSuffix(line, []byte("<failure>")):
			l.failure, thrown = "a benchmark failed", true
		case bytes.HasPrefix(line, []byte("# JMH version: ")):
			l.version = report.Clip(string(line[len("# JMH version: "):]))
		case bytes.HasPrefix(line, []byte("# Run progress: 0.00% complete")):
			l = log{version: l.version}
		case bytes.HasPrefix(line, []byte("ERROR: org.openjdk.jmh.")), bytes.HasPrefix(line, []byte("No matching benchmarks.")):
			l.aborted = true
			if l.failure == "" {
				l.failure = string(line)
			}
		}
	}
	return l
}
