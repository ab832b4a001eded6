package iperf3

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// invocation is what one start of iperf has printed, or one client of a server.
type invocation struct {
	start     start
	intervals [][]byte // the arrays of -J: one
	each      [][]byte // the intervals of --json-stream
	end       *end
	failure   string
	begun     bool
	cut       bool // the JSON has no end
}

type start struct {
	Version  string    `json:"version"`
	Accepted *struct{} `json:"accepted_connection"` // of a server
	Test     struct {
		Protocol string `json:"protocol"`
		Reverse  int    `json:"reverse"`
	} `json:"test_start"`
}

type end struct {
	Streams []struct {
		Sender   *numbers `json:"sender"`
		Receiver *numbers `json:"receiver"`
		UDP      *numbers `json:"udp"`
	} `json:"streams"`
	Sum             *numbers           `json:"sum"`
	Sent            *numbers           `json:"sum_sent"`
	Received        *numbers           `json:"sum_received"`
	SumReverse      *numbers           `json:"sum_bidir_reverse"`
	SentReverse     *numbers           `json:"sum_sent_bidir_reverse"`
	ReceivedReverse *numbers           `json:"sum_received_bidir_reverse"`
	CPU             map[string]float64 `json:"cpu_utilization_percent"`
}

// bidirectional reports whether there are sums of both directions.
func (e *end) bidirectional() bool {
	return e.SumReverse != nil || e.SentReverse != nil || e.ReceivedReverse != nil
}

type interval struct {
	Sum        *numbers `json:"sum"`
	SumReverse *numbers `json:"sum_bidir_reverse"`
}

// numbers are about one stream, or about the sum.
type numbers struct {
	Seconds     float64  `json:"seconds"`
	Bytes       float64  `json:"bytes"`
	Rate        float64  `json:"bits_per_second"`
	Retransmits *float64 `json:"retransmits"`
	Jitter      *float64 `json:"jitter_ms"`
	Lost        *float64 `json:"lost_packets"`
	Packets     *float64 `json:"packets"`
	LostPercent *float64 `json:"lost_percent"`
	OutOfOrder  *float64 `json:"out_of_order"`
	MinRTT      float64  `json:"min_rtt"` // microseconds
	MeanRTT     float64  `json:"mean_rtt"`
	MaxRTT      float64  `json:"max_rtt"`
	MaxWindow   float64  `json:"max_snd_cwnd"`
	Sender      bool     `json:"sender"` // who printed the text is the sender
	Omitted     bool     `json:"omitted"`
}

// parser keeps the last run that came to its end, and the last one.
type parser struct {
	whole, last invocation
	word        string // the last line of text about an error, since the last document
}

// firstKeys are those with which a document of iperf begins.
//
//nolint:gochecknoglobals // a constant
var firstKeys = []string{"start", "title", "extra_data", "event", "intervals", "end", "error"}

// read reads all documents of a text. Where one has no end, another may begin in any of the next lines: text is read again for that,
// but not without limit.
func (p *parser) read(text []byte) {
	budget := 4 * len(text)
	for at := 0; at < len(text) && budget > 0; {
		line := text[at:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		trimmed := bytes.TrimLeft(line, " \t[,")
		begin := at + len(line) - len(trimmed)
		at += len(line)
		if len(trimmed) == 0 || !isDocument(text[begin:]) {
			p.text(trimmed)
			continue
		}
		n, ended := p.document(text[begin:])
		if ended {
			at = begin + n
		} else {
			budget -= n
		}
	}
	p.finish()
}

// isDocument reports whether a text begins like a document of iperf: with one of the first keys.
func isDocument(text []byte) bool {
	if text[0] != '{' {
		return false
	}
	const most = 256 // bytes of blanks and of the key
	key, ok := bytes.CutPrefix(bytes.TrimLeft(text[1:min(len(text), most)], " \t\r\n"), []byte{'"'})
	if !ok {
		return false
	}
	word, _, ok := bytes.Cut(key, []byte{'"'})
	return ok && slices.Contains(firstKeys, string(word))
}

// text reads a line that is no JSON. After `iperf3: error - ` it tells of one.
func (p *parser) text(line []byte) {
	for _, kind := range []string{"error", "parameter error", "interrupt"} {
		if bytes.HasPrefix(line, []byte("iperf3: "+kind+" - ")) {
			p.word = string(line)
		}
	}
}

// document reads the document that a text begins with: its first n bytes. Ended is false if that is not known, because it has no end.
func (p *parser) document(text []byte) (n int, ended bool) {
	one := document{}
	state := whole
	for n = 1; state == whole; {
		var key string
		var value []byte
		if key, value, n, state = member(text, n); state == whole || state == cut && key == "intervals" {
			one.value(key, value)
		}
	}
	one.run.cut = one.run.cut || state != done
	if one.useful() {
		p.add(one)
	}
	return n, state == done
}

// document is one of -J, or a line of --json-stream.
type document struct {
	run   invocation
	event string
	data  []byte
}

// useful reports whether the document is one of iperf.
func (o *document) useful() bool {
	return o.event != "" && o.data != nil || strings.HasPrefix(o.run.start.Version, "iperf 3")
}

// value reads the value of a key.
func (o *document) value(key string, value []byte) {
	ok := true
	switch key {
	case "start":
		ok = decode(value, &o.run.start)
	case "intervals":
		o.run.intervals = append(o.run.intervals, value)
	case "end":
		ok = decode(named(value), &o.run.end)
	case "error":
		ok = decode(value, &o.run.failure)
	case "event":
		ok = decode(value, &o.event)
	case "data":
		o.data = value
	}
	o.run.cut = o.run.cut || !ok
}

// decode decodes a value. What in it is of another type than iperf's is left out.
func decode(value []byte, into any) bool {
	err := json.Unmarshal(value, into)
	_, isType := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || isType
}

// named returns an object in which no two members have one name. Up to 3.10, the sums of both directions of a bidirectional test have, that
// of the client's data first: the later one gets the name that it has from 3.11 on.
func named(object []byte) []byte {
	seen, out := make(map[string]bool), []byte{'{'}
	for n := 1; ; {
		key, value, next, state := member(object, n)
		switch {
		case state == done:
			return append(out, '}')
		case state != whole:
			return object
		case seen[key]:
			key += "_bidir_reverse"
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), key...), '"', ':')
		out, seen[key], n = append(out, value...), true, next
	}
}

// add adds a document to what is known.
func (p *parser) add(o document) {
	p.word = ""
	if o.event == "" || o.run.start.Version != "" {
		p.begin(o.run)
		return
	}
	ok := true
	switch o.event {
	case "start":
		p.begin(invocation{})
		ok = decode(o.data, &p.last.start)
	case "interval":
		p.last.each = append(p.last.each, o.data)
	case "end":
		ok = decode(o.data, &p.last.end)
	case "error":
		ok = decode(o.data, &p.last.failure)
	}
	p.last.cut = p.last.cut || !ok
}

// begin begins a run. The one before it is kept if it came to its end.
func (p *parser) begin(r invocation) {
	p.finish()
	p.last = r
	p.last.begun = true
}

func (p *parser) finish() {
	if p.last.begun && p.last.end != nil && p.last.failure == "" && !p.last.cut {
		p.whole = p.last
	}
}

// report returns what the last run says. If it failed, or was cut, the numbers of one before it that was not are better than its own.
func (p *parser) report() report.Report {
	r, later := &p.last, ""
	if p.whole.begun && (p.last.failure != "" || p.last.end == nil || p.last.cut) {
		r, later = &p.whole, "a later run has not ended"
	}
	version := report.Clip(strings.TrimPrefix(r.start.Version, "iperf "))
	metrics, missing := r.metrics()
	switch {
	case p.last.failure != "":
		return report.Failure(name, version, metrics, p.last.failure)
	case p.word != "":
		return report.Failure(name, version, metrics, p.word)
	case !p.last.begun:
		return report.Of(name, "", nil, "no JSON of iperf 3 in the text: use its option -J")
	case len(metrics) == 0:
		return report.Of(name, version, nil, "iperf has printed no result")
	case later != "":
		missing = later
	case r.cut:
		missing = strings.TrimSuffix("the JSON has no end; "+missing, "; ")
	}
	return report.Of(name, version, metrics, missing)
}
