// Package imb reads the text of the Intel MPI Benchmarks.
package imb

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/mpirun"
	"github.com/benchmark-ai/bai/services/parsers/internal/table"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "imb"

// Labels of metrics.
const (
	labelBenchmark = "benchmark" // as IMB names it; Multi-… if several groups run it at the same time
	labelProcesses = "processes" // of the benchmark, or of each group
	labelGroups    = "groups"    // that run at the same time, if there are several
	labelMode      = "mode"      // aggregate or non-aggregate, of IMB-EXT, -RMA and -IO: whether each transfer is completed by itself
	labelGroup     = "group"     // the number of one of them
	labelBytes     = "bytes"     // of a message
)

// Kind returns the parser of the Intel MPI Benchmarks, above all IMB-MPI1. Formats are those of src_c/IMB_output.c of versions 3.2 to
// 2021.11; every benchmark of IMB-MPI1 was checked with 2021.11. Mbytes are 10⁶ bytes.
//
// Headlines are the highest bandwidth of a benchmark over all sizes of messages, and its lowest time: of PingPong and its like over all
// rows, as people quote it; of collective operations, which do nothing about 0 bytes, over the other rows. A benchmark that was run
// with several numbers of processes has the headlines of the largest.
func Kind() report.Kind {
	row := []string{labelBenchmark, labelProcesses, labelGroups, labelMode, labelGroup, labelBytes}
	whole := row[:4]
	return report.Kind{
		Name: name, Tool: "Intel MPI Benchmarks",
		Metrics: []report.Definition{
			{
				Name: "peak_bandwidth", Unit: report.BytesPerSecond, Direction: report.Higher, Headline: true, Labels: whole,
				Meaning: "highest bandwidth over all sizes of messages and groups",
			},
			{
				Name: "minimum_latency", Unit: report.Seconds, Direction: report.Lower, Headline: true, Labels: whole,
				Meaning: "lowest time over all sizes of messages and groups; of several times of a size, the average",
			},
			{Name: "bandwidth", Unit: report.BytesPerSecond, Direction: report.Higher, Labels: row, Meaning: "Mbytes/sec"},
			{Name: "time", Unit: report.Seconds, Direction: report.Lower, Labels: row, Meaning: "t, of one message"},
			{Name: "time_min", Unit: report.Seconds, Direction: report.Lower, Labels: row, Meaning: "t_min, of the fastest process"},
			{Name: "time_max", Unit: report.Seconds, Direction: report.Lower, Labels: row, Meaning: "t_max, of the slowest process"},
			{Name: "time_avg", Unit: report.Seconds, Direction: report.Lower, Labels: row, Meaning: "t_avg, of all processes"},
			{
				Name: "time_overlapped", Unit: report.Seconds, Direction: report.Lower, Labels: row,
				Meaning: "t_ovrl, of communication with computation",
			},
			{Name: "time_pure", Unit: report.Seconds, Direction: report.Lower, Labels: row, Meaning: "t_pure, of communication alone"},
			{Name: "time_cpu", Unit: report.Seconds, Labels: row, Meaning: "t_CPU, of computation"},
			{Name: "overlap", Unit: report.Ratio, Direction: report.Higher, Labels: row, Meaning: "of communication with computation"},
			{Name: "message_rate", Unit: report.PerSecond, Direction: report.Higher, Labels: row, Meaning: "Msg/sec"},
			{Name: "repetitions", Unit: report.Count, Labels: row, Meaning: "over which times are averages"},
			{Name: "defects", Unit: report.Count, Direction: report.Lower, Labels: row, Meaning: "of data, if IMB checks them"},
		},
		Looks: looks, Parse: parse,
	}
}

// Titles of columns that are labels.
const (
	titleBytes       = "#bytes"
	titleGroup       = "Group"
	titleRepetitions = "#repetitions"
)

// columns are all that IMB prints.
func columns() []table.Column {
	time := func(title, name string) table.Column {
		return table.Column{Title: title, Name: name, Unit: report.Seconds, Direction: report.Lower, Exponent: "e-6"}
	}
	return []table.Column{
		{Title: titleBytes},
		{Title: titleGroup},
		{Title: titleRepetitions, Name: "repetitions", Unit: report.Count},
		time("t[usec]", "time"), time("t_min[usec]", "time_min"), time("t_max[usec]", "time_max"), time("t_avg[usec]", "time_avg"),
		time("t_ovrl[usec]", "time_overlapped"), time("t_pure[usec]", "time_pure"),
		{Title: "t_CPU[usec]", Name: "time_cpu", Unit: report.Seconds, Exponent: "e-6"},
		{Title: "overlap[%]", Name: "overlap", Unit: report.Ratio, Direction: report.Higher, Exponent: "e-2"},
		{Title: "Mbytes/sec", Name: "bandwidth", Unit: report.BytesPerSecond, Direction: report.Higher, Exponent: "e6"},
		{Title: "Msg/sec", Name: "message_rate", Unit: report.PerSecond, Direction: report.Higher},
		{Title: "defects", Name: "defects", Unit: report.Count, Direction: report.Lower},
	}
}

// Lines that begin and end the output, and begin a benchmark.
const (
	begin     = "Intel"
	end       = "# All processes entering MPI_Finalize"
	benchmark = "# Benchmarking "
	mode      = "#    MODE: "
	unknown   = "Invalid benchmark name "
)

func looks(head []byte) bool {
	var tags mpirun.Tags
	for line := range bytes.Lines(head) {
		if _, ok := banner(tags.Remove(line)); ok {
			return true
		}
	}
	return false
}

// banner returns the version in the line that begins the output:
//
//	#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
//	#    Intel (R) MPI Benchmark Suite V3.2.3, MPI-1 part
func banner(line []byte) (version string, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("#    "+begin))
	if !ok {
		return "", false
	}
	_, rest, ok = bytes.Cut(rest, []byte(" MPI Benchmark"))
	rest, part, of := bytes.Cut(rest, []byte(", "))
	if !ok || !of || !bytes.HasSuffix(bytes.TrimSpace(part), []byte("part")) {
		return "", false
	}
	words := strings.Fields(strings.TrimPrefix(string(rest), "s"))
	if len(words) > 0 && words[0] == "Suite" {
		words = words[1:]
	}
	return report.Clip(strings.Join(words, " ")), true
}

func parse(r io.Reader, _ report.Options) (report.Report, error) {
	p := parser{known: columns()}
	if err := report.Lines(r, p.line); err != nil {
		return report.Report{}, err
	}
	return p.report(), nil
}

// parser keeps the last run that has ended, and the one that is being read.
type parser struct {
	known    []table.Column
	whole    invocation
	last     invocation
	tags     mpirun.Tags
	launcher mpirun.Errors // since the last run began
}

func (p *parser) line(line []byte) {
	line = p.tags.Remove(line)
	switch {
	case len(line) == 0:
	case line[0] == '#':
		p.comment(line)
	case line[0] == ' ' && p.last.open():
		p.inTable(line)
	case bytes.HasPrefix(line, []byte(unknown)):
		p.last.unknown = report.Clip(string(line))
	default:
		p.launcher.See(line)
	}
}

func (p *parser) comment(line []byte) {
	if version, ok := banner(line); ok {
		if p.last.ended && !p.last.none() {
			p.whole, p.last = p.last, p.whole
		}
		p.last.reset(version)
		p.launcher = mpirun.Errors{}
		return
	}
	switch {
	case bytes.HasPrefix(line, []byte(benchmark)):
		p.last.begin(report.Clip(string(line[len(benchmark):])))
	case bytes.HasPrefix(line, []byte("# #processes = ")), bytes.HasPrefix(line, []byte("# ( ")):
		p.last.processes(line)
	case bytes.HasPrefix(line, []byte(mode)):
		p.last.mode(report.Clip(string(line[len(mode):])))
	case bytes.HasPrefix(line, []byte(end)):
		p.last.ended = true
	}
}

// inTable reads a header, or a row below it.
func (p *parser) inTable(line []byte) {
	if table.IsRow(line) {
		p.last.row(line)
		return
	}
	if trimmed := bytes.TrimLeft(line, " "); len(trimmed) > 0 && (trimmed[0] == '#' || trimmed[0] == titleGroup[0]) {
		p.last.header(table.Header(line, p.known))
	}
}

// report returns the metrics of the last run that has ended, or those of the last one if none has.
func (p *parser) report() report.Report {
	r, missing := &p.last, ""
	switch {
	case p.last.ended:
	case p.whole.ended:
		r, missing = &p.whole, "a later run has not ended"
	default:
		missing = "IMB has not come to its end, MPI_Finalize"
	}
	metrics, failed, left := r.metrics()
	said := p.launcher.Last()
	switch {
	case failed != "":
		return report.Failure(name, r.version, metrics, failed)
	case len(metrics) == 0 && said != "":
		return report.Failure(name, r.version, nil, said)
	case len(metrics) == 0 && r.version != "":
		return report.Of(name, r.version, nil, together("IMB printed no result", left, r.unknown))
	case len(metrics) == 0:
		return report.Of(name, "", nil, "")
	}
	return report.Of(name, r.version, metrics, together(left, missing, r.unknown, said))
}

// together returns a reason that has all texts but the empty ones.
func together(texts ...string) string {
	return report.Clip(strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "; "))
}
