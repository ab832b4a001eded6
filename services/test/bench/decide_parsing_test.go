package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

func TestTheBestRepetitionOfTheSlowestBenchmarkOfAParserCounts(t *testing.T) {
	t.Parallel()
	metric := func(name, pkg, benchmark string, v float64) report.Metric {
		return report.Metric{Name: name, Value: v, Labels: map[string]string{"package": "example.com/parsers/" + pkg, "benchmark": benchmark}}
	}
	rate := func(pkg, benchmark string, v float64) report.Metric {
		return metric("bytes_per_sec", pkg, benchmark, v)
	}
	kinds := []report.Kind{{Name: "gnu-time"}, {Name: "k6", Document: true}}
	metrics := []report.Metric{
		metric("sec_per_op", "gnutime", "Parse", 1), rate("gnutime", "Parse", 90e6), rate("gnutime", "Parse", 120e6),
		rate("k6", "Parse/log", 200e6), rate("k6", "Parse/document", 32.768e6), rate("k6", "Parse/document", 16e6),
	}
	want := []result{
		atLeast("Parse/gnu-time", 120, "MB/s", 100, "a log, one core"),
		atMost("Parse/k6", 2, "ms", 1, "64 KiB of a document, one core"),
	}
	got, err := decideParsing(kinds, metrics)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := decideParsing(append(kinds, report.Kind{Name: "csv"}), metrics); err == nil {
		t.Error("no error for a parser without a benchmark")
	}
}
