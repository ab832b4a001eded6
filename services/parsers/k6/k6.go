// Package k6 reads the summary that k6 makes at the end of a test.
package k6

import (
	"bytes"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "k6"

// Labels of metrics.
const (
	labelStat = "stat" // avg, min, med, max, p(95), ... of a trend; value, min, max of a gauge
	labelTags = "tags" // those that a metric was narrowed down to: expected_response:true
)

// Kind returns the parser of k6's summaries: the JSON of --summary-export (0.x and 1.x), what handleSummary gets, the JSON of
// --new-machine-readable-summary (1.x), and the text, as 0.33 and later and as 1.x print it. JSON comes before text, because the text is
// rounded. The text before 1.0 marks a metric that has crossed one of its thresholds or more: that counts as one.
//
// Metrics have k6's names. A counter is two metrics: its count, and NAME_rate. A rate is three: its part of all, and NAME_passes and
// NAME_fails. Trends and gauges have a label stat. Times are in milliseconds; --summary-export does not say which trends of one's own
// are times, so those keep their unit.
//
// A threshold that was crossed is a result, though k6 exits with 99. In --summary-export `true` means crossed, in other JSON `ok` means the
// opposite. A text with errors and without a summary has failed.
func Kind() report.Kind {
	return report.Kind{
		Name: name, Tool: "k6", Metrics: definitions(), Document: true, Looks: looks,
		Parse: report.DocumentParser(name, parse),
	}
}

// definitions are made of the metrics that k6 has itself.
func definitions() []report.Definition {
	tags, stats := []string{labelTags}, []string{labelStat, labelTags}
	var all []report.Definition
	for _, b := range builtins() {
		unit := unitOf(b.contains)
		first := report.Definition{Name: b.name, Unit: unit, Direction: b.better, Labels: tags, Meaning: b.meaning}
		more := func(suffix, unit, meaning string) report.Definition {
			return report.Definition{Name: b.name + suffix, Unit: unit, Labels: tags, Meaning: meaning}
		}
		switch b.kind {
		case trend, gauge:
			first.Headline, first.Labels = b.headline, stats
			all = append(all, first)
		case counter:
			second := more("_rate", rateOf(unit), "the same per second")
			second.Direction, second.Headline = b.rateBetter, b.headline
			all = append(all, first, second)
		case rate:
			first.Unit = report.Ratio
			all = append(all, first, more("_passes", report.Count, "how many were true"),
				more("_fails", report.Count, "how many were false"))
		}
	}
	failed := report.Definition{Name: "thresholds_failed", Unit: report.Count, Direction: report.Lower}
	failed.Meaning = "thresholds that were crossed, if the test has any"
	others := report.Definition{Name: "*", Unit: "*", Labels: stats, Meaning: "metrics of one's own, and of k6's other modules"}
	return append(all, failed, others)
}

// looks finds the JSON, the text, or the beginning of what k6 prints.
func looks(head []byte) bool {
	has := func(s string) bool { return bytes.Contains(head, []byte(s)) }
	trimmed := bytes.TrimLeft(head, " \t\r\n")
	if len(trimmed) > 0 && trimmed[0] == '{' {
		keys := []string{`"root_group"`, `"iteration_duration"`, `"http_req_duration"`, `"vus_max"`}
		return has(`"k6Version"`) || has(`"metrics"`) && slices.ContainsFunc(keys, has)
	}
	return has("  execution: local\n") && has("scenarios: (") || has("iteration_duration...") || has("http_req_duration...")
}

func parse(text []byte, _ report.Options) report.Report {
	s, cut := fromJSON(text)
	var log textReader
	for line := range bytes.Lines(text) {
		log.line(line)
	}
	if len(s.values) == 0 {
		s = log.best()
	}
	c := newCollector(s)
	for _, v := range s.values {
		c.value(v)
	}
	c.thresholds(s)
	c.headlines(!s.unsure)
	reasons := []string{s.missing, log.aborted, strings.Join(c.missing, "; ")}
	if cut {
		reasons = append(reasons, "the JSON ends early")
	}
	if len(c.metrics) == 0 && log.failure != "" {
		return report.Failure(name, s.version, nil, log.failure)
	}
	return report.Of(name, s.version, c.metrics, joined(reasons))
}

func joined(reasons []string) string {
	var all []string
	for _, r := range reasons {
		if r != "" {
			all = append(all, r)
		}
	}
	return strings.Join(all, "; ")
}
