// Package osu reads the text of the OSU Micro-Benchmarks.
package osu

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/mpirun"
	"github.com/benchmark-ai/bai/services/parsers/internal/table"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "osu"

// Labels of metrics.
const (
	labelBenchmark  = "benchmark"       // as its title has it, without OSU and Test
	labelDatatype   = "datatype"        // if it is printed
	labelPairs      = "pairs"           // of processes, of osu_mbw_mr
	labelWindow     = "window"          // how many messages osu_mbw_mr has under way
	labelCreation   = "window_creation" // of one-sided benchmarks
	labelSync       = "synchronization" // of one-sided benchmarks
	labelMemory     = "memory"          // of sender and receiver: D, H or M, as their arguments
	labelBytes      = "bytes"           // of a message
	labelPercentile = "percentile"
)

// Kind returns the parser of the OSU Micro-Benchmarks: of all that print a table with sizes of messages, or one row without. Formats
// are those of c/util/osu_util_mpi.c of version 7.4 and of the older programs down to 3.1. MB are 10⁶ bytes.
//
// Headlines are the highest bandwidth over all sizes of messages, or the lowest latency (of an average, a minimum and a maximum the
// average; of nonblocking collectives the overall time), once for each benchmark in the text. The tools print nothing at their end: a
// text that ends between two rows is complete as far as one can see, and the launcher's exit code must tell.
func Kind() report.Kind {
	whole := []string{labelBenchmark, labelDatatype, labelPairs, labelWindow, labelCreation, labelSync, labelMemory}
	row := append(slices.Clone(whole), labelBytes)
	percentile := append(slices.Clone(row), labelPercentile)
	lower := func(name, meaning string) report.Definition {
		return report.Definition{Name: name, Unit: report.Seconds, Direction: report.Lower, Labels: row, Meaning: meaning}
	}
	return report.Kind{
		Name: name, Tool: "OSU Micro-Benchmarks",
		Metrics: []report.Definition{
			{
				Name: "peak_bandwidth", Unit: report.BytesPerSecond, Direction: report.Higher, Headline: true, Labels: whole,
				Meaning: "highest bandwidth over all sizes of messages",
			},
			{
				Name: "minimum_latency", Unit: report.Seconds, Direction: report.Lower, Headline: true, Labels: whole,
				Meaning: "lowest latency over all sizes of messages",
			},
			{Name: "bandwidth", Unit: report.BytesPerSecond, Direction: report.Higher, Labels: row, Meaning: "MB/s"},
			{Name: "message_rate", Unit: report.PerSecond, Direction: report.Higher, Labels: row, Meaning: "Messages/s"},
			lower("latency", "Latency, or Avg Latency"), lower("latency_min", "Min Latency"), lower("latency_max", "Max Latency"),
			{Name: "latency_percentile", Unit: report.Seconds, Direction: report.Lower, Labels: percentile, Meaning: "Tail Lat"},
			{Name: "bandwidth_percentile", Unit: report.BytesPerSecond, Direction: report.Higher, Labels: percentile, Meaning: "Tail BW"},
			{Name: "iterations", Unit: report.Count, Labels: row, Meaning: "over which latencies are averages"},
			lower("time_overall", "Overall, of a nonblocking collective"),
			{Name: "time_compute", Unit: report.Seconds, Labels: row, Meaning: "Compute"},
			lower("time_init", "Coll. Init"), lower("time_test", "MPI_Test"), lower("time_wait", "MPI_Wait"),
			lower("time_communication", "Pure Comm."),
			lower("time_communication_min", "Min Comm."), lower("time_communication_max", "Max Comm."),
			{Name: "overlap", Unit: report.Ratio, Direction: report.Higher, Labels: row, Meaning: "of communication with computation"},
		},
		Looks: looks, Parse: parse,
	}
}

// Titles of columns that are no metrics.
const (
	titleSize       = "Size"
	titleValidation = "Validation"
	titleTransmit   = "Transmit Size"
)

// columns are all that the tools print. A title that begins with another comes first.
func columns() []table.Column {
	seconds := func(title, name string) table.Column {
		return table.Column{Title: title, Name: name, Unit: report.Seconds, Direction: report.Lower, Exponent: "e-6"}
	}
	bandwidth := func(title string) table.Column {
		return table.Column{Title: title, Name: "bandwidth", Unit: report.BytesPerSecond, Direction: report.Higher, Exponent: "e6"}
	}
	return []table.Column{
		{Title: titleSize},
		{Title: titleValidation},
		{Title: titleTransmit},
		seconds("Latency (us)", "latency"), seconds("Latency(us)", "latency"), seconds("Avg Latency(us)", "latency"),
		seconds("Avg Latency (us)", "latency"),
		seconds("Min Latency(us)", "latency_min"), seconds("Max Latency(us)", "latency_max"),
		{Title: "Iterations", Name: "iterations", Unit: report.Count},
		bandwidth("Bandwidth (MB/s)"), bandwidth("Bandwidth(MB/s)"), bandwidth("Bi-Bandwidth (MB/s)"), bandwidth("MB/s"),
		{Title: "Messages/s", Name: "message_rate", Unit: report.PerSecond, Direction: report.Higher},
		seconds("Overall(us)", "time_overall"),
		{Title: "Compute(us)", Name: "time_compute", Unit: report.Seconds, Exponent: "e-6"},
		seconds("Coll. Init(us)", "time_init"), seconds("MPI_Test(us)", "time_test"), seconds("MPI_Wait(us)", "time_wait"),
		seconds("Pure Comm.(us)", "time_communication"), seconds("Min Comm.(us)", "time_communication_min"),
		seconds("Max Comm.(us)", "time_communication_max"),
		{Title: "Overlap(%)", Name: "overlap", Unit: report.Ratio, Direction: report.Higher, Exponent: "e-2"},
	}
}

// header returns the columns of a table; it is nil for another line.
func header(line []byte, known []table.Column) []table.Column {
	all := percentiles(table.Header(line, known))
	if len(all) == 0 || all[0].Title != titleSize && all[0].Name == "" {
		return nil
	}
	for _, c := range all[1:] {
		if c.Name == "" && c.Title != titleValidation && c.Title != titleTransmit {
			return nil
		}
	}
	return all
}

// percentiles joins the words of titles with a number: P99 Tail Lat(us), P50 Tail BW(MB/s).
func percentiles(words []table.Column) []table.Column {
	var all []table.Column
	for i := 0; i < len(words); i++ {
		if i+2 < len(words) && words[i+1].Title == "Tail" && strings.HasPrefix(words[i].Title, "P") {
			if c, ok := percentile(words[i].Title[1:], words[i+2].Title); ok {
				all = append(all, c)
				i += 2
				continue
			}
		}
		all = append(all, words[i])
	}
	return all
}

func percentile(number, of string) (c table.Column, ok bool) {
	switch of {
	case "Lat(us)":
		c = table.Column{Name: "latency_percentile", Unit: report.Seconds, Direction: report.Lower, Exponent: "e-6"}
	case "BW(MB/s)":
		c = table.Column{Name: "bandwidth_percentile", Unit: report.BytesPerSecond, Direction: report.Higher, Exponent: "e6"}
	}
	c.Title, c.Labels = of, map[string]string{labelPercentile: number}
	_, isNumber := report.Number(number)
	return c, c.Name != "" && isNumber
}

func looks(head []byte) bool {
	var tags mpirun.Tags
	for line := range bytes.Lines(head) {
		if _, _, ok := title(tags.Remove(line)); ok {
			return true
		}
	}
	return false
}

// title returns the benchmark and the version in the line that begins a table:
//
//	# OSU MPI-CUDA Allreduce Latency Test v7.3
//	# OSU MPI Latency Test (Version 2.1)
func title(line []byte) (benchmark, version string, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("# OSU "))
	if !ok {
		return "", "", false
	}
	text := strings.TrimSpace(string(rest))
	for _, separator := range []string{" v", " (Version "} {
		if i := strings.LastIndex(text, separator); i > 0 {
			version = strings.TrimSuffix(text[i+len(separator):], ")")
			benchmark = strings.TrimSuffix(text[:i], " Test")
			if version != "" && version[0] >= '0' && version[0] <= '9' {
				return report.Clip(benchmark), report.Clip(version), true
			}
		}
	}
	return "", "", false
}

func parse(r io.Reader, _ report.Options) (report.Report, error) {
	p := parser{known: columns()}
	if err := report.Lines(r, p.line); err != nil {
		return report.Report{}, err
	}
	return p.report(), nil
}
