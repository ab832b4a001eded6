package iperf2

import (
	"bytes"
	"math"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// sum is the stream of the row SUM.
const sum = "sum"

// row is a line about one connection, or about all, in one interval.
type row struct {
	id                 string
	receive            bool // the client received
	csv                bool
	ports              ports   // of CSV
	sent               bool    // of datagrams, what a client sent
	start, end         float64 // seconds
	bytes, rate        float64 // B, bits/s
	jitter             float64 // seconds
	datagrams, dropped float64 // -1 for none
}

// ports are those of a connection, that of who sends first.
type ports struct{ from, to string }

// reverse reports whether these are the ports of the other direction of a connection. A client of 2.1 does not know where it goes to: 0.
func (p ports) reverse(of ports) bool { return p.from == of.to && (p.to == of.from || p.to == "0") }

// rowKey tells apart what rows are about.
type rowKey struct {
	id            string
	receive, sent bool
}

func (r row) key() rowKey     { return rowKey{r.id, r.receive, r.sent && r.datagrams < 0} }
func (r row) length() float64 { return r.end - r.start }

// connection is what is kept of the rows about one thing, however many there are.
type connection struct {
	whole       row     // with the longest interval, the last of several
	end         float64 // of the latest interval
	first, last int     // of its rows, where all are numbered
	doubtful    bool    // may be of the run before the last
}

// connections are in the order of the text.
type connections struct {
	all  []connection
	at   map[rowKey]int
	rows int // that were read
}

// maxConnections is how many connections are kept in mind.
const maxConnections = 10_000

func (c *connections) add(r row) {
	if c.rows++; r.csv && r.id != sum {
		c.locate(&r)
	}
	i, ok := c.at[r.key()]
	switch {
	case !ok && len(c.all) == maxConnections:
	case !ok:
		if c.at == nil {
			c.at = make(map[rowKey]int)
		}
		c.at[r.key()] = len(c.all)
		c.all = append(c.all, connection{whole: r, end: r.end, first: c.rows, last: c.rows})
	default:
		if r.length() >= c.all[i].whole.length() {
			c.all[i].whole = r
		}
		c.all[i].end = max(c.all[i].end, r.end)
		c.all[i].last, c.all[i].doubtful = c.rows, false
	}
}

// locate finds out what a row of CSV belongs to, which has no header above it: to a connection that is known, to its other direction, or to
// a later run, in which the connection of this number has other ports. The report of a server about datagrams may have the ports the other
// way round.
func (c *connections) locate(r *row) {
	i, ok := c.at[rowKey{id: r.id}]
	if !ok {
		i, ok = c.at[rowKey{id: r.id, sent: true}]
	}
	switch {
	case !ok || c.all[i].whole.ports == r.ports:
	case r.ports.reverse(c.all[i].whole.ports):
		r.receive = r.datagrams < 0
	case r.start == 0:
		c.begin(r.id)
	}
}

// begin begins another run, to which a connection of this number belongs. What comes after the last row about that of the run before, and
// after the last row SUM, may belong to either: connections end in any order.
func (c *connections) begin(id string) {
	before := 0
	for _, one := range c.all {
		if one.whole.id == id || one.whole.id == sum {
			before = max(before, one.last)
		}
	}
	all := c.all
	c.all = c.all[:0]
	clear(c.at)
	for _, one := range all {
		if one.first > before {
			one.doubtful = true
			c.at[one.whole.key()] = len(c.all)
			c.all = append(c.all, one)
		}
	}
}

// lastRun leaves out the connections of the run before the last, and returns the numbers of those that may be of either. Where iperf prints
// intervals, a connection that is not printed again while others are is none of the last run.
func (c *connections) lastRun() (doubtful []string) {
	certain := make([]connection, 0, len(c.all))
	intervals := false
	for _, one := range c.all {
		if one.doubtful {
			doubtful = append(doubtful, one.whole.id)
			continue
		}
		certain = append(certain, one)
		intervals = intervals || one.last > one.first
	}
	if intervals {
		c.all, doubtful = certain, nil
	}
	return doubtful
}

// readRow reads what follows the number of a connection:
//
//	0.0000-2.0105 sec  5658752 KBytes  23056820 Kbits/sec
//	0.0- 2.0 sec  1.14 MBytes  9.50 Mbits/sec   0.004 ms 40/853 (4.7%)
func readRow(id string, rest []byte) (row, bool) {
	f := splitRow(rest)
	if len(f.start) == 0 || len(f.words) < 4 {
		return row{}, false
	}
	r := row{id: id, datagrams: -1}
	if r.id, r.receive = strings.CutPrefix(id, "*"); strings.HasPrefix(r.id, "SUM") {
		r.id = sum
	}
	size, perSecond, isRate := unitsOf(string(f.words[1]), string(f.words[3]))
	var ok [4]bool
	r.start, ok[0] = report.Number(string(f.start))
	r.end, ok[1] = report.Number(string(f.end))
	r.bytes, ok[2] = scaled(string(f.words[0]), size)
	r.rate, ok[3] = scaled(string(f.words[2]), perSecond)
	if !isRate || ok != [4]bool{true, true, true, true} || r.end < r.start || r.rate < 0 || r.bytes < 0 {
		return row{}, false
	}
	if len(f.words) > 4 {
		r.readDatagrams(strings.Fields(string(bytes.Join(f.words[4:], []byte(" ")))))
	}
	return r, true
}

// rowFields are the interval of a row, and the words after `sec`.
type rowFields struct {
	start, end []byte
	words      [][]byte
}

// splitRow splits a row; it is empty for another line.
func splitRow(rest []byte) rowFields {
	interval, after, ok := bytes.Cut(rest, []byte(" sec "))
	start, end, dash := bytes.Cut(bytes.TrimSpace(interval), []byte("-"))
	if !ok || !dash || len(interval) > 64 {
		return rowFields{}
	}
	return rowFields{start: start, end: bytes.TrimSpace(end), words: bytes.Fields(after)}
}

// readDatagrams reads jitter, lost and all datagrams: 0.004 ms 40/853 (4.7%), or 0.004 ms 0/ 179 (0%).
func (r *row) readDatagrams(f []string) {
	if len(f) < 3 || f[1] != "ms" {
		return
	}
	jitter, ok := scaled(f[0], unit{1, "e-3"})
	lost, all, _ := strings.Cut(strings.Join(f[2:min(4, len(f))], ""), "/")
	all, _, _ = strings.Cut(all, "(")
	n, ok1 := report.Number(lost)
	m, ok2 := report.Number(all)
	if ok && ok1 && ok2 && m >= 0 {
		r.jitter, r.dropped, r.datagrams = jitter, n, m
	}
}

// unitsOf returns the factors of a size and a rate as powers of ten, or of two with a negative sign; ok is false for other words.
func unitsOf(size, rate string) (bytes, perSecond unit, ok bool) {
	b, ok1 := strings.CutSuffix(size, "Bytes")
	if size == "Byte" {
		b, ok1 = "", true
	}
	bytes, known := factor(b, true)
	bits, ok2 := strings.CutSuffix(rate, "bits/sec")
	if ok2 {
		perSecond, ok2 = factor(bits, false)
		return bytes, perSecond, ok1 && known && ok2
	}
	bits, ok2 = strings.CutSuffix(rate, "Bytes/sec")
	perSecond, of := factor(bits, true)
	perSecond.factor *= 8
	return bytes, perSecond, ok1 && known && ok2 && of
}

// unit is a factor, and a decimal exponent.
type unit struct {
	factor   float64
	exponent string
}

// factor returns the unit of a prefix: of bytes a power of 1024, of bits a power of 1000.
func factor(prefix string, binary bool) (unit, bool) {
	i := strings.Index("KMGTP", prefix)
	switch {
	case prefix == "":
		return unit{1, ""}, true
	case i < 0 || len(prefix) > 1:
		return unit{}, false
	case binary:
		return unit{float64(int64(1) << (10 * (i + 1))), ""}, true
	}
	return unit{1, []string{"e3", "e6", "e9", "e12", "e15"}[i]}, true
}

// scaled returns a printed number in the base unit. The exponent is parsed with it, so that decimal units are exact.
func scaled(text string, u unit) (float64, bool) {
	if strings.ContainsAny(text, "eE") {
		return 0, false
	}
	v, ok := report.Number(text + u.exponent)
	v *= u.factor
	return v, ok && v <= math.MaxFloat64/2
}

// readCSV reads a line of -y C: time, address and port of both sides, number, interval, bytes, bits per second, and for datagrams jitter in
// ms, lost, all, percentage and out of order.
func readCSV(line []byte) (row, bool) {
	f := strings.Split(string(line), ",")
	if len(f) != 9 && len(f) != 14 || len(f[0]) < 14 {
		return row{}, false
	}
	start, end, ok0 := strings.Cut(f[6], "-")
	r := row{id: f[5], csv: true, ports: ports{from: f[2], to: f[4]}, datagrams: -1}
	if r.id == "-1" {
		r.id = sum
	}
	var ok [5]bool
	_, ok[4] = report.Number(f[0])
	r.start, ok[0] = report.Number(start)
	r.end, ok[1] = report.Number(end)
	r.bytes, ok[2] = report.Number(f[7])
	r.rate, ok[3] = report.Number(f[8])
	if !ok0 || ok != [5]bool{true, true, true, true, true} || r.end < r.start || r.rate < 0 || r.bytes < 0 {
		return row{}, false
	}
	if len(f) == 14 {
		if r.sent = strings.HasPrefix(f[11], "-"); !r.sent {
			r.readDatagrams([]string{f[9], "ms", f[10] + "/" + f[11]})
		}
	}
	return r, true
}

// transfer returns the label of a row about one direction, where a client received. The row SUM of both is about none.
func (r row) transfer(received, both bool) string {
	switch {
	case r.receive, r.id == sum && received && !both:
		return "receive"
	case received && r.id != sum:
		return "send"
	}
	return ""
}

// metrics returns the metrics of a row with the label transfer, unless that is empty.
func (r row) metrics(transfer string) []report.Metric {
	m := bandwidth(r.id, transfer, r.rate)
	if r.sent {
		m.Name = "sent_bandwidth"
		return []report.Metric{m}
	}
	metric := func(name, unit string, direction report.Direction, v float64) report.Metric {
		return report.Metric{Name: name, Value: v, Unit: unit, Direction: direction, Labels: labelsOf(r.id, transfer)}
	}
	all := []report.Metric{m, metric("transferred", report.Bytes, "", r.bytes), metric("duration", report.Seconds, "", r.length())}
	if r.datagrams >= 0 {
		all = append(all, metric("jitter", report.Seconds, report.Lower, r.jitter),
			metric("datagrams_lost", report.Count, report.Lower, r.dropped),
			metric("datagrams", report.Count, "", r.datagrams))
	}
	return all
}

func bandwidth(stream, transfer string, rate float64) report.Metric {
	return report.Metric{
		Name: "bandwidth", Value: rate, Unit: report.BitsPerSecond, Direction: report.Higher,
		Labels: labelsOf(stream, transfer),
	}
}

func labelsOf(stream, transfer string) map[string]string {
	labels := map[string]string{labelStream: stream}
	if transfer != "" {
		labels[labelTransfer] = transfer
	}
	return labels
}
