// Package iperf2 reads the output of iperf 2: text in every --format, with intervals and enhanced reports, and CSV.
package iperf2

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "iperf2"

// Labels of metrics.
const (
	labelStream   = "stream"   // the number that iperf gives a connection, or sum
	labelTransfer = "transfer" // send or receive, where a client receives, too
)

// Kind returns the parser of iperf 2. Formats are those of src/Reports.c and src/Settings.cpp of iperf 2.1.8: units of bits are powers of
// 1000, units of bytes powers of 1024.
//
// The headline is the row SUM of the whole time, or that of the only connection. Where the tool prints no sum (CSV, datagrams that a server
// received, one direction of a full-duplex test) it is the sum of the connections. Of datagrams, what the server received counts.
func Kind() report.Kind {
	labels := []string{labelStream, labelTransfer}
	return report.Kind{
		Name: name, Tool: "iperf 2",
		Metrics: []report.Definition{
			{
				Name: "bandwidth", Unit: report.BitsPerSecond, Direction: report.Higher, Headline: true, Labels: labels,
				Meaning: "rate of the whole time; of datagrams, that of those received",
			},
			{Name: "transferred", Unit: report.Bytes, Labels: labels, Meaning: "bytes of the whole time, as precise as they are printed"},
			{Name: "duration", Unit: report.Seconds, Labels: labels, Meaning: "length of the whole time"},
			{
				Name: "sent_bandwidth", Unit: report.BitsPerSecond, Direction: report.Higher, Labels: labels,
				Meaning: "rate of datagrams sent",
			},
			{Name: "jitter", Unit: report.Seconds, Direction: report.Lower, Labels: labels, Meaning: "of datagrams, at the server"},
			{Name: "datagrams_lost", Unit: report.Count, Direction: report.Lower, Labels: labels, Meaning: "datagrams that did not arrive"},
			{Name: "datagrams", Unit: report.Count, Labels: labels, Meaning: "datagrams that should have arrived"},
		},
		Looks: looks, Parse: parse,
	}
}

func looks(head []byte) bool {
	for line := range bytes.Lines(head) {
		switch {
		case bytes.HasPrefix(line, []byte("[ ID] Interval ")) && !bytes.Contains(line, []byte("Bitrate")),
			bytes.HasPrefix(line, []byte("Client connecting to ")) && bytes.Contains(line, []byte(" port ")):
			return true
		}
		if _, ok := readCSV(bytes.TrimSpace(line)); ok {
			return true
		}
	}
	return false
}

func parse(r io.Reader, _ report.Options) (report.Report, error) {
	p := parser{}
	if err := report.Lines(r, p.line); err != nil {
		return report.Report{}, err
	}
	return p.report(), nil
}

// parser keeps the rows of the last client or server in the text.
type parser struct {
	rows    connections
	opened  []string // the numbers of connections
	last    string   // the last word about a failure
	refused bool     // a connection has no address of its own
	header  bool     // of a client or a server was read
	server  bool     // of a server was read: connections come one after the other
	udp     bool     // that says that it speaks UDP
	started bool     // rows were read since that header
}

// isFailure reports whether a line begins as perror of iperf's WARN_errno and FAIL does.
func isFailure(line []byte) bool {
	for _, begin := range [...]string{
		"connect failed", "tcp connect failed", "udp connect failed", "read failed", "write failed", "recv failed",
		"bind failed", "listener bind failed",
		"unable to connect", "error: ", "iperf: ", "shutdown failed",
	} {
		if len(line) >= len(begin) && string(line[:len(begin)]) == begin {
			return true
		}
	}
	return false
}

func (p *parser) line(line []byte) {
	switch {
	case len(line) == 0 || line[0] == '-':
	case line[0] == '[':
		p.bracket(line)
	case line[0] >= '0' && line[0] <= '9':
		if r, ok := readCSV(line); ok {
			p.rows.add(r)
		}
	case bytes.HasPrefix(line, []byte("Client connecting to ")), bytes.HasPrefix(line, []byte("Server listening on ")):
		if p.started {
			*p = parser{}
		}
		p.header, p.udp = true, bytes.Contains(line, []byte(", UDP port "))
		p.server = p.server || line[0] == 'S'
	case isFailure(line):
		p.last = string(line)
	}
}

// bracket reads a line that begins with the number of a connection.
func (p *parser) bracket(line []byte) {
	id, rest, ok := bytes.Cut(line[1:], []byte("]"))
	if !ok {
		return
	}
	if bytes.Contains(rest, []byte("WARNING: did not receive ack")) {
		p.last = string(bytes.TrimSpace(rest))
	}
	if rest := bytes.TrimSpace(rest); bytes.HasPrefix(rest, []byte("local ")) {
		p.connection(string(bytes.TrimSpace(id)), rest)
		return
	}
	if r, ok := readRow(string(bytes.TrimSpace(id)), rest); ok {
		r.sent = p.udp && r.datagrams < 0
		p.rows.add(r)
		p.started = true
	}
}

// connection notes a connection. Those of a client may be printed before its header.
func (p *parser) connection(id string, rest []byte) {
	if p.started && !p.server {
		*p = parser{}
	}
	if len(p.opened) < maxConnections && !slices.Contains(p.opened, id) {
		p.opened = append(p.opened, id)
	}
	p.refused = p.refused || bytes.HasPrefix(rest, []byte("local 0.0.0.0 port 0 connected"))
}

// silent names the connections without a row.
func (p *parser) silent() string {
	seen := make(map[string]bool)
	for _, c := range p.rows.all {
		seen[c.whole.id] = true
	}
	ids := slices.DeleteFunc(slices.Clone(p.opened), func(id string) bool { return seen[id] })
	if len(ids) == 0 || len(seen) == 0 {
		return ""
	}
	return "no row of connection " + report.Clip(strings.Join(ids, ", "))
}

// report returns what the rows say.
func (p *parser) report() report.Report {
	metrics, missing := p.rows.metrics()
	if silent := p.silent(); silent != "" {
		missing = silent
		for i := range metrics {
			metrics[i].Headline = false
		}
	}
	switch {
	case len(metrics) == 0 && p.last != "":
		return report.Failure(name, "", nil, p.last)
	case len(metrics) == 0 && p.refused:
		return report.Failure(name, "", nil, "no connection was made")
	case len(metrics) == 0 && p.header:
		return report.Of(name, "", nil, "the client or server printed no result")
	case p.last != "" && !slices.ContainsFunc(metrics, func(m report.Metric) bool { return m.Headline }):
		return report.Failure(name, "", metrics, p.last)
	}
	both := slices.DeleteFunc([]string{missing, report.Clip(p.last)}, func(s string) bool { return s == "" })
	return report.Of(name, "", metrics, strings.Join(both, "; "))
}

// unfinished names the connections whose rows are all about parts of their time: iperf was ended before it printed the last.
func (c connections) unfinished() string {
	var ids []string
	for _, one := range c.all {
		if one.whole.start > 0 || one.whole.end < one.end {
			ids = append(ids, one.whole.id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return "no row about the whole time of " + report.Clip(strings.Join(ids, ", "))
}

// metrics returns the metrics of the rows about the whole time, and what is missing.
func (c connections) metrics() (metrics []report.Metric, missing string) {
	doubtful := c.lastRun()
	whole := make([]row, 0, len(c.all))
	for _, one := range c.all {
		whole = append(whole, one.whole)
	}
	received := slices.ContainsFunc(whole, func(r row) bool { return r.receive })
	both := received && slices.ContainsFunc(whole, func(r row) bool { return !r.receive && r.id != sum })
	for _, r := range whole {
		metrics = append(metrics, r.metrics(r.transfer(received, both))...)
	}
	if missing = c.unfinished(); missing != "" {
		return metrics, missing
	}
	if len(doubtful) > 0 {
		return metrics, "rows of connection " + report.Clip(strings.Join(doubtful, ", ")) + " may be of an earlier run"
	}
	unsummed := both || slices.ContainsFunc(whole, func(r row) bool { return r.csv || r.datagrams >= 0 })
	var without []string
	for _, transfer := range transfers(received, both) {
		if metrics, missing = withHeadline(metrics, transfer, unsummed); missing != "" {
			without = append(without, missing)
		}
	}
	return metrics, strings.Join(without, "; ")
}

// withHeadline marks the headline of a direction of transfer. If the tool prints no sum of it, it is added.
func withHeadline(metrics []report.Metric, transfer string, unsummed bool) (all []report.Metric, missing string) {
	made := bandwidth(sum, transfer, 0)
	made.Headline = true
	parts := 0
	for i, m := range metrics {
		if m.Name != "bandwidth" || m.Labels[labelTransfer] != transfer {
			continue
		}
		if m.Labels[labelStream] == sum {
			metrics[i].Headline = true
			return metrics, ""
		}
		parts++
		made.Value += m.Value
	}
	switch {
	case parts > 1 && !unsummed:
		return metrics, fmt.Sprintf("no row SUM of %d connections", parts)
	case parts > 0:
		return append(metrics, made), ""
	case len(metrics) > 0:
		return metrics, "no report of the server about the datagrams that it received"
	}
	return metrics, ""
}

// transfers returns the values of the label transfer for which there is a headline.
func transfers(received, both bool) []string {
	switch {
	case both:
		return []string{"send", "receive"}
	case received:
		return []string{"receive"}
	}
	return []string{""}
}
