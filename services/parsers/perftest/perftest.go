// Package perftest reads the text of the RDMA benchmarks of linux-rdma/perftest: ib_write_bw, ib_read_lat, raw_ethernet_bw and their like.
package perftest

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/table"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "perftest"

// Labels of metrics.
const (
	labelTest       = "test"       // as its title has it, without the word Test
	labelSide       = "side"       // local or remote, with --report-both
	labelBytes      = "bytes"      // of a message
	labelLevel      = "sl"         // service level, with --raw_qos
	labelFlows      = "flows"      // of raw_ethernet_fs_rate
	labelPort       = "port"       // of the device, with --report-per-port
	labelPercentile = "percentile" // 99 or 99.9
)

// Kind returns the parser of perftest. Formats are those of src/perftest_parameters.h from version 2 on, compared with the text in the
// programs of 4.5. MB/sec, which newer versions name MiB/sec, are 2²⁰ bytes in all versions.
//
// Headlines are the highest average bandwidth over all sizes of messages, and the lowest average latency; not the peak, which is 0
// where the tool does not compute it. With --report-both each side has a bandwidth of its own. Versions without an average latency have
// the typical one as headline.
func Kind() report.Kind {
	whole := []string{labelTest, labelSide}
	row := append(slices.Clone(whole), labelBytes, labelLevel, labelFlows)
	with := func(label string) []string { return append(slices.Clone(row), label) }
	time := func(name, meaning string, labels ...string) report.Definition {
		labels = append(slices.Clone(row), labels...)
		return report.Definition{Name: name, Unit: report.Seconds, Direction: report.Lower, Labels: labels, Meaning: meaning}
	}
	higher := func(name, unit, meaning string, labels []string) report.Definition {
		return report.Definition{Name: name, Unit: unit, Direction: report.Higher, Labels: labels, Meaning: meaning}
	}
	headline := func(d report.Definition) report.Definition {
		d.Headline, d.Labels = true, whole
		return d
	}
	return report.Kind{
		Name: name, Tool: "perftest",
		Metrics: []report.Definition{
			headline(higher("bandwidth", report.BitsPerSecond,
				"highest average over all sizes of messages; of a bidirectional test, the sum", nil)),
			headline(time("latency", "lowest average over all sizes of messages")),
			headline(higher("flow_rate", report.PerSecond, "highest number of flows steered in a second", nil)),
			higher("bandwidth_average", report.BitsPerSecond, "BW average", row),
			higher("bandwidth_peak", report.BitsPerSecond, "BW peak, if the tool computes it", row),
			higher("message_rate", report.PerSecond, "MsgRate", row),
			higher("bandwidth_port", report.BitsPerSecond, "BW Port1 and BW Port2", with(labelPort)),
			higher("message_rate_port", report.PerSecond, "MsgRate Port1 and MsgRate Port2", with(labelPort)),
			{Name: "cpu_utilization", Unit: report.Ratio, Direction: report.Lower, Labels: row, Meaning: "CPU_Util"},
			{Name: "iterations", Unit: report.Count, Labels: row, Meaning: "of a row"},
			time("latency_average", "t_avg"), time("latency_typical", "t_typical, the median"), time("latency_min", "t_min"),
			time("latency_max", "t_max"),
			time("latency_stdev", "t_stdev"), time("latency_percentile", "99 % and 99.9 % percentile", labelPercentile),
			higher("transaction_rate", report.PerSecond, "tps average", row),
			time("flow_time_average", "fs_avg_time, to steer a flow"), time("flow_time_typical", "fs_typical_time"),
			time("flow_time_min", "fs_min_time"),
			time("flow_time_max", "fs_max_time"),
			higher("flows_per_second", report.PerSecond, "fps", row),
		},
		Looks: looks, Parse: parse,
	}
}

// Titles of columns that are labels.
const (
	titleBytes = "#bytes"
	titleFlows = "#flows"
	titleLevel = "#sl"
)

// columns are all that the tools print.
func columns() []table.Column {
	time := func(title, name string) table.Column {
		return table.Column{Title: title, Name: name, Unit: report.Seconds, Direction: report.Lower, Exponent: "e-6"}
	}
	percentile := func(title, number string) table.Column {
		c := time(title, "latency_percentile")
		c.Labels = map[string]string{labelPercentile: number}
		return c
	}
	rate := func(title, name, exponent string, labels map[string]string) table.Column {
		return table.Column{Title: title, Name: name, Unit: report.PerSecond, Direction: report.Higher, Exponent: exponent, Labels: labels}
	}
	all := []table.Column{
		{Title: titleBytes},
		{Title: titleFlows},
		{Title: titleLevel},
		{Title: "#iterations", Name: "iterations", Unit: report.Count},
		time("t_min[usec]", "latency_min"), time("t_max[usec]", "latency_max"), time("t_typical[usec]", "latency_typical"),
		time("t_avg[usec]", "latency_average"), time("t_stdev[usec]", "latency_stdev"),
		percentile("99% percentile[usec]", "99"), percentile("99.9% percentile[usec]", "99.9"),
		rate("tps average", "transaction_rate", "", nil),
		rate("MsgRate[Mpps]", "message_rate", "e6", nil),
		{Title: "CPU_Util[%]", Name: "cpu_utilization", Unit: report.Ratio, Direction: report.Lower, Exponent: "e-2"},
		time("fs_min_time[usec]", "flow_time_min"), time("fs_max_time[usec]", "flow_time_max"),
		time("fs_typical_time[usec]", "flow_time_typical"),
		time("fs_avg_time[usec]", "flow_time_average"), rate("fps[flow per sec]", "flows_per_second", "", nil),
	}
	for _, port := range []string{"1", "2"} {
		all = append(all, rate("MsgRate Port"+port+"[Mpps]", "message_rate_port", "e6", map[string]string{labelPort: port}))
	}
	return append(all, bandwidths()...)
}

// bandwidths are the columns of bandwidths in all units.
func bandwidths() []table.Column {
	var all []table.Column
	for _, unit := range []table.Column{
		{Title: "[Gb/sec]", Exponent: "e9"},
		{Title: "[MB/sec]", Factor: 8 << 20},
		{Title: "[MiB/sec]", Factor: 8 << 20},
	} {
		unit.Unit, unit.Direction = report.BitsPerSecond, report.Higher
		add := func(title, name string, labels map[string]string) {
			c := unit
			c.Title, c.Name, c.Labels = title+unit.Title, name, labels
			all = append(all, c)
		}
		add("BW peak", "bandwidth_peak", nil)
		add("BW average", "bandwidth_average", nil)
		add("BW Port1", "bandwidth_port", map[string]string{labelPort: "1"})
		add("BW Port2", "bandwidth_port", map[string]string{labelPort: "2"})
	}
	return all
}

// header returns the columns of a table; it is nil for another line.
func header(line []byte, known []table.Column) []table.Column {
	if !isHeader(line) {
		return nil
	}
	all := table.Header(line, known)
	if len(all) < 2 || !slices.ContainsFunc(all, isHeadline) {
		return nil
	}
	return all
}

// isHeadline reports whether a column may have the headline.
func isHeadline(c table.Column) bool {
	switch c.Name {
	case "bandwidth_average", "latency_average", "latency_typical", "flows_per_second":
		return true
	}
	return false
}

func isHeader(line []byte) bool {
	return bytes.HasPrefix(line, []byte(" "+titleBytes+" ")) || bytes.HasPrefix(line, []byte(" "+titleFlows+"\t"))
}

// title returns the test in the line that begins a run: it stands in the middle, and its first word is a verb of RDMA.
func title(line []byte) (test string, ok bool) {
	const indent = "            "
	if !bytes.HasPrefix(line, []byte(indent)) {
		return "", false
	}
	trimmed := bytes.TrimSpace(line)
	if !bytes.HasSuffix(trimmed, []byte(" Test")) {
		return "", false
	}
	text := strings.TrimSuffix(string(trimmed), " Test")
	verb, _, _ := strings.Cut(text, " ")
	switch verb {
	case "Send", "RDMA_Write", "RDMA_Read", "Atomic":
		return report.Clip(text), true
	}
	return "", false
}

func looks(head []byte) bool {
	known := columns()
	for line := range bytes.Lines(head) {
		if _, ok := title(line); ok || header(bytes.TrimRight(line, "\r\n"), known) != nil {
			return true
		}
	}
	return false
}

func parse(r io.Reader, _ report.Options) (report.Report, error) {
	p := parser{known: columns()}
	if err := report.Lines(r, p.line); err != nil {
		return report.Report{}, err
	}
	return p.report(), nil
}
