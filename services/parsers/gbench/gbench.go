// Package gbench reads the JSON of Google Benchmark.
package gbench

import (
	"bytes"
	"slices"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "gbench"

// Labels of metrics.
const (
	labelBenchmark = "benchmark" // with its arguments, and what else the tool puts into the name
	labelBigO      = "big_o"     // the function of n that was fitted
)

// Kind returns the parser of Google Benchmark's --benchmark_format=json and --benchmark_out. The format is that of src/json_reporter.cc; it
// was checked with 1.7.1. Entries without run_type, of versions before 1.5, are told apart by the end of their names.
//
// A metric is the aggregate median if there is one, else the median of the repetitions, else the aggregate mean. The headline is real_time,
// if there is just one benchmark. Counters are metrics with their own names; one that has the name of a metric of the tool gets _counter
// behind it.
func Kind() report.Kind {
	return report.Kind{
		Name: name, Tool: "Google Benchmark", Metrics: definitions(), Document: true, Looks: looks,
		Parse: report.DocumentParser(name, parse),
	}
}

// definitions returns the metrics of the tool. But for _stddev, their names are those of fields.
func definitions() []report.Definition {
	labels, fit := []string{labelBenchmark}, []string{labelBenchmark, labelBigO}
	of := func(name, unit string, d report.Direction, meaning string) report.Definition {
		return report.Definition{Name: name, Unit: unit, Direction: d, Labels: labels, Meaning: meaning}
	}
	all := []report.Definition{
		of("real_time", report.Seconds, report.Lower, "wall clock of an iteration"),
		of("cpu_time", report.Seconds, report.Lower, "processor time of an iteration"),
		of("items_per_second", report.PerSecond, report.Higher, "items processed"),
		of("bytes_per_second", report.BytesPerSecond, report.Higher, "bytes processed"),
		of("allocs_per_iter", report.Count, report.Lower, "allocations of an iteration"),
		of("max_bytes_used", report.Bytes, report.Lower, "most memory in use"),
		of("total_allocated_bytes", report.Bytes, report.Lower, "bytes allocated"),
		of("net_heap_growth", report.Bytes, report.Lower, "bytes allocated and not freed"),
		of("real_time_stddev", report.Seconds, report.Lower, "standard deviation of real_time over the repetitions"),
		of("cpu_time_stddev", report.Seconds, report.Lower, "standard deviation of cpu_time over the repetitions"),
		{
			Name: "real_coefficient", Unit: report.Seconds, Direction: report.Lower, Labels: fit,
			Meaning: "wall clock over the function of n",
		},
		{
			Name: "cpu_coefficient", Unit: report.Seconds, Direction: report.Lower, Labels: fit,
			Meaning: "processor time over the function of n",
		},
		of("rms", report.Ratio, report.Lower, "error of the fit, of the mean time"),
		of("*", report.Count, "", "counter of the benchmark"),
	}
	all[0].Headline = true
	return all
}

func looks(head []byte) bool {
	return document.Starts(head, `"context"`) && bytes.Contains(head, []byte(`"num_cpus"`))
}

// output is what the tool prints.
type output struct {
	Context    *machine `json:"context"`
	Benchmarks []entry  `json:"benchmarks"`
}

// machine is what the tool says about itself and where it runs.
type machine struct {
	Version string `json:"library_version"`
}

func parse(text []byte, _ report.Options) report.Report {
	nameless := func(e entry) bool { return e.text("name") == "" }
	f := document.Find(text, `"context"`, func(d *output) bool {
		return d.Context != nil && d.Benchmarks != nil && !slices.ContainsFunc(d.Benchmarks, nameless)
	})
	if f.Doc != nil {
		return result(f)
	}
	failure := failureOf(f.Around)
	switch {
	case failure != "":
		return report.Failure(name, "", nil, failure)
	case looks(text):
		return report.Of(name, "", nil, "the JSON document ends before the first result does")
	}
	return report.Of(name, "", nil, "")
}

// failureOf returns why nothing was run.
func failureOf(text []byte) string {
	for line := range bytes.Lines(text) {
		unknown := bytes.Contains(line, []byte(": error: unrecognized command-line flag:"))
		if unknown || bytes.HasPrefix(line, []byte("Failed to match any benchmarks")) {
			return report.Clip(string(line))
		}
	}
	return ""
}

// result returns the report of a document.
func result(f document.Found[output]) report.Report {
	w := writer{defined: definitions(), metrics: make([]report.Metric, 0, 6*len(f.Doc.Benchmarks))}
	all := benchmarksOf(f.Doc.Benchmarks)
	failed := ""
	for _, b := range all {
		if b.failure != "" && failed == "" {
			failed = report.Clip(b.name + ": " + b.failure)
		}
		w.benchmark(b)
	}
	timed := slices.IndexFunc(w.metrics, func(m report.Metric) bool { return m.Name == "real_time" })
	switch {
	case failed != "" && len(w.metrics) == 0:
		return report.Failure(name, f.Doc.Context.Version, nil, failed)
	case failed != "":
		w.miss(failed)
	case f.Cut:
		w.miss("the JSON document ends in the middle")
	case len(all) == 0:
		w.miss("no benchmark was run")
	case len(w.metrics) == 0:
		w.miss("all benchmarks were skipped")
	case len(all) == 1 && timed >= 0 && w.missing == "":
		w.metrics[timed].Headline = true
	}
	return report.Of(name, f.Doc.Context.Version, w.metrics, w.missing)
}
