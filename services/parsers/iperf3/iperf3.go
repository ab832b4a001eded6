// Package iperf3 reads the JSON of iperf 3.
package iperf3

import (
	"bytes"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "iperf3"

// Labels of metrics.
const (
	labelTransfer = "transfer" // send or receive, as the client sees it
	labelStream   = "stream"   // its number within a transfer, or sum
	labelHost     = "host"     // local, which printed the text, or remote
	labelMode     = "mode"     // total, user or system
)

// Kind returns the parser of iperf 3 with -J or --json-stream, of clients and of servers. Keys are those of src/iperf_api.c; it was
// checked with output of 3.12 (TCP, UDP, -P, -R, --bidir, -O, clients and servers) and of 3.9 (UDP, --bidir, clients and servers), and for
// the sum of datagrams in 3.1 and for --json-stream with texts made from its documented form. Text without JSON has no metrics, but its
// line of an error counts.
//
// The headline is what arrived, once for each direction. A side that has not told its numbers to the other is missing: bytes of 0 are
// none. Where iperf was ended before it summed up, the headline is the mean of the intervals that are not omitted.
func Kind() report.Kind {
	labels := []string{labelTransfer, labelStream}
	lower := func(name, unit, meaning string) report.Definition {
		return report.Definition{Name: name, Unit: unit, Direction: report.Lower, Labels: labels, Meaning: meaning}
	}
	return report.Kind{
		Name: name, Tool: "iperf 3, as JSON",
		Metrics: []report.Definition{
			{
				Name: "bandwidth", Unit: report.BitsPerSecond, Direction: report.Higher, Headline: true, Labels: labels,
				Meaning: "rate at which data arrived",
			},
			{
				Name: "sent_bandwidth", Unit: report.BitsPerSecond, Direction: report.Higher, Headline: true, Labels: labels,
				Meaning: "rate at which data was sent; the headline only if there is nothing but intervals of the sender",
			},
			{Name: "transferred", Unit: report.Bytes, Labels: labels, Meaning: "bytes that arrived"},
			{Name: "duration", Unit: report.Seconds, Labels: labels, Meaning: "of the transfer, without omitted seconds"},
			lower("retransmits", report.Count, "segments of TCP that were sent again"),
			lower("jitter", report.Seconds, "of datagrams, at the receiver"),
			lower("datagrams_lost", report.Count, "datagrams that did not arrive"),
			{Name: "datagrams", Unit: report.Count, Labels: labels, Meaning: "datagrams that should have arrived"},
			lower("loss", report.Ratio, "part of the datagrams that did not arrive"),
			lower("out_of_order", report.Count, "datagrams that arrived after later ones"),
			lower("rtt_min", report.Seconds, "round-trip time, as TCP knows it"), lower("rtt_mean", report.Seconds, "round-trip time"),
			lower("rtt_max", report.Seconds, "round-trip time"),
			{Name: "congestion_window_max", Unit: report.Bytes, Labels: labels, Meaning: "of TCP, of the sender"},
			{
				Name: "cpu_utilization", Unit: report.Ratio, Direction: report.Lower, Labels: []string{labelHost, labelMode},
				Meaning: "of one processor",
			},
		},
		Document: true, Looks: looks, Parse: report.DocumentParser(name, parse),
	}
}

func looks(head []byte) bool { return bytes.Contains(head, []byte(`"iperf 3.`)) }

func parse(text []byte, _ report.Options) report.Report {
	p := parser{}
	p.read(text)
	return p.report()
}
