package iperf3

import (
	"math"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/table"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Values of labels.
const (
	send    = "send"
	receive = "receive"
	sum     = "sum"
)

// metrics returns all numbers, and which are missing.
func (r *invocation) metrics() ([]report.Metric, string) {
	w := writer{run: r}
	if r.end == nil || r.end.Sent == nil && r.end.Received == nil && r.end.Sum == nil {
		w.means()
		return w.set.List(), "iperf has not summed up: the mean of the intervals"
	}
	w.sums()
	w.streams()
	w.processors()
	return w.set.List(), strings.Join(w.missing, "; ")
}

// writer makes metrics.
type writer struct {
	run     *invocation
	set     table.Metrics
	missing []string
}

// rate adds a bandwidth.
func (w *writer) rate(name string, value float64, headline bool, transfer, stream string) {
	w.put(report.Metric{Name: name, Value: value, Unit: report.BitsPerSecond, Direction: report.Higher, Headline: headline}, transfer,
		stream)
}

// put adds a metric; a value that is not finite, or that is too large for the conversion, is none.
func (w *writer) put(m report.Metric, transfer, stream string) {
	if math.IsInf(m.Value, 0) || math.IsNaN(m.Value) {
		return
	}
	m.Labels = map[string]string{labelTransfer: transfer, labelStream: stream}
	w.set.Put(m)
}

func (w *writer) udp() bool { return strings.EqualFold(w.run.start.Test.Protocol, "UDP") }

// server reports whether a server has printed the text.
func (w *writer) server() bool { return w.run.start.Accepted != nil }

// forward is the transfer of the sums without a suffix.
func (w *writer) forward() string {
	if w.run.start.Test.Reverse == 1 {
		return receive
	}
	return send
}

// sums writes what is about all streams: once, or of a bidirectional test once for each direction.
func (w *writer) sums() {
	e := w.run.end
	w.transfer(w.forward(), e.Sent, w.received(e.Received, e.Sum))
	if e.bidirectional() {
		w.transfer(receive, e.SentReverse, w.received(e.ReceivedReverse, e.SumReverse))
	}
}

// received returns what arrived. Of datagrams, up to 3.10, there is one sum: a client's has what was sent, and how much of it was lost; a
// server's has what the server sent.
func (w *writer) received(received, all *numbers) *numbers {
	if received != nil || !w.udp() || w.server() {
		return received
	}
	return arrived(all)
}

// arrived makes of the sum of datagrams what the receiver got of it.
func arrived(all *numbers) *numbers {
	if all == nil || all.Packets == nil || all.Lost == nil || *all.Packets <= 0 || *all.Lost > *all.Packets {
		return nil
	}
	n := *all
	part := (*all.Packets - max(*all.Lost, 0)) / *all.Packets
	n.Bytes, n.Rate = n.Bytes*part, n.Rate*part
	return &n
}

// reported says whether the receiver has told its numbers.
func (n *numbers) reported() bool {
	return n != nil && (n.Bytes > 0 || n.Packets != nil && *n.Packets > 0)
}

func (w *writer) transfer(transfer string, sent, received *numbers) {
	if received.reported() {
		w.rate("bandwidth", received.Rate, true, transfer, sum)
		w.put(report.Metric{Name: "transferred", Value: received.Bytes, Unit: report.Bytes}, transfer, sum)
		w.put(report.Metric{Name: "duration", Value: received.Seconds, Unit: report.Seconds}, transfer, sum)
		w.datagrams(received, transfer, sum)
	} else {
		w.missing = append(w.missing, "what the receiver got of the transfer "+transfer)
	}
	w.sent(sent, transfer, sum)
}

// sent writes what a sender knows.
func (w *writer) sent(n *numbers, transfer, stream string) {
	if n == nil || n.Bytes <= 0 {
		return
	}
	w.rate("sent_bandwidth", n.Rate, false, transfer, stream)
	w.count("retransmits", n.Retransmits, transfer, stream)
	if n.MeanRTT > 0 {
		for i, rtt := range []float64{n.MinRTT, n.MeanRTT, n.MaxRTT} {
			name := []string{"rtt_min", "rtt_mean", "rtt_max"}[i]
			w.put(report.Metric{Name: name, Value: rtt / 1e6, Unit: report.Seconds, Direction: report.Lower}, transfer, stream)
		}
	}
	if n.MaxWindow > 0 {
		w.put(report.Metric{Name: "congestion_window_max", Value: n.MaxWindow, Unit: report.Bytes}, transfer, stream)
	}
}

func (w *writer) count(name string, value *float64, transfer, stream string) {
	if value != nil {
		w.put(report.Metric{Name: name, Value: *value, Unit: report.Count, Direction: report.Lower}, transfer, stream)
	}
}

// datagrams writes what a receiver of datagrams knows.
func (w *writer) datagrams(n *numbers, transfer, stream string) {
	if n.Packets == nil || *n.Packets <= 0 {
		return
	}
	w.put(report.Metric{Name: "datagrams", Value: *n.Packets, Unit: report.Count}, transfer, stream)
	w.count("datagrams_lost", n.Lost, transfer, stream)
	w.count("out_of_order", n.OutOfOrder, transfer, stream)
	if n.Jitter != nil {
		w.put(report.Metric{Name: "jitter", Value: *n.Jitter / 1e3, Unit: report.Seconds, Direction: report.Lower}, transfer, stream)
	}
	if n.LostPercent != nil {
		w.put(report.Metric{Name: "loss", Value: *n.LostPercent / 100, Unit: report.Ratio, Direction: report.Lower}, transfer, stream)
	}
}

// streams writes what is about one stream. Streams are numbered within their transfer.
func (w *writer) streams() {
	count := make(map[string]int)
	for _, s := range w.run.end.Streams {
		of := s.UDP
		if of == nil {
			of = s.Sender
		}
		if of == nil {
			continue
		}
		transfer := w.transferOf(of)
		count[transfer]++
		stream := strconv.Itoa(count[transfer])
		w.sent(of, transfer, stream)
		if s.UDP != nil {
			w.datagrams(s.UDP, transfer, stream)
		}
		if s.Receiver.reported() {
			w.rate("bandwidth", s.Receiver.Rate, false, transfer, stream)
			w.put(report.Metric{Name: "transferred", Value: s.Receiver.Bytes, Unit: report.Bytes}, transfer, stream)
		}
	}
}

// transferOf returns the transfer of a stream: in a bidirectional test, that depends on who sends.
func (w *writer) transferOf(n *numbers) string {
	if !w.run.end.bidirectional() {
		return w.forward()
	}
	if n.Sender != w.server() {
		return send
	}
	return receive
}

// processors writes how busy the processors were. The remote ones are 0 if the other side has not told.
func (w *writer) processors() {
	for _, host := range []string{"local", "remote"} {
		prefix := map[string]string{"local": "host_", "remote": "remote_"}[host]
		if w.run.end.CPU[prefix+"total"] <= 0 {
			continue
		}
		for _, mode := range []string{"total", "user", "system"} {
			if v, ok := w.run.end.CPU[prefix+mode]; ok {
				labels := map[string]string{labelHost: host, labelMode: mode}
				w.set.Put(report.Metric{
					Name: "cpu_utilization", Value: v / 100, Unit: report.Ratio,
					Direction: report.Lower, Labels: labels,
				})
			}
		}
	}
}

// mean is the mean of intervals.
type mean struct {
	bytes, seconds float64
	sent           bool
}

func (m *mean) add(n *numbers) {
	if n != nil && !n.Omitted && n.Seconds > 0 {
		m.bytes, m.seconds, m.sent = m.bytes+n.Bytes, m.seconds+n.Seconds, n.Sender
	}
}

// means writes the means of the intervals, where there is no sum.
func (w *writer) means() {
	var forward, reverse mean
	add := func(text []byte) {
		var i interval
		if decode(named(text), &i) {
			forward.add(i.Sum)
			reverse.add(i.SumReverse)
		}
	}
	for _, array := range w.run.intervals {
		elements(array, add)
	}
	for _, text := range w.run.each {
		add(text)
	}
	w.mean(w.forward(), forward)
	w.mean(receive, reverse)
}

func (w *writer) mean(transfer string, m mean) {
	if m.seconds <= 0 {
		return
	}
	name := "bandwidth"
	if m.sent {
		name = "sent_bandwidth"
	}
	w.rate(name, m.bytes*8/m.seconds, true, transfer, sum)
	w.put(report.Metric{Name: "duration", Value: m.seconds, Unit: report.Seconds}, transfer, sum)
}
