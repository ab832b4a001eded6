package k6

import (
	"slices"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Kinds of metrics, in k6's words.
const (
	trend   = "trend"
	counter = "counter"
	gauge   = "gauge"
	rate    = "rate"
)

// Values of the key contains of a metric.
const (
	timeValues = "time" // milliseconds
	dataValues = "data" // bytes
	anyValues  = "default"
)

// builtin is a metric that k6 has itself.
type builtin struct {
	name, kind, contains string
	better, rateBetter   report.Direction
	headline             bool
	meaning              string
}

func builtins() []builtin {
	const lower, higher = report.Lower, report.Higher
	return []builtin{
		{
			name: "http_req_duration", kind: trend, contains: timeValues, better: lower, headline: true,
			meaning: "time of an HTTP request; p(95) is the headline",
		},
		{
			name: "http_req_blocked", kind: trend, contains: timeValues, better: lower,
			meaning: "time before an HTTP request had a connection",
		},
		{name: "http_req_connecting", kind: trend, contains: timeValues, better: lower, meaning: "time to connect"},
		{name: "http_req_tls_handshaking", kind: trend, contains: timeValues, better: lower, meaning: "time of TLS handshakes"},
		{name: "http_req_sending", kind: trend, contains: timeValues, better: lower, meaning: "time to send an HTTP request"},
		{name: "http_req_waiting", kind: trend, contains: timeValues, better: lower, meaning: "time to the first byte of the answer"},
		{name: "http_req_receiving", kind: trend, contains: timeValues, better: lower, meaning: "time to receive the answer"},
		{name: "http_req_failed", kind: rate, better: lower, meaning: "part of HTTP requests that failed"},
		{name: "http_reqs", kind: counter, rateBetter: higher, headline: true, meaning: "HTTP requests"},
		{
			name: "iteration_duration", kind: trend, contains: timeValues, better: lower, headline: true,
			meaning: "time of an iteration; a headline in tests without HTTP",
		},
		{
			name: "iterations", kind: counter, rateBetter: higher, headline: true,
			meaning: "iterations; their rate is a headline in tests without HTTP",
		},
		{name: "dropped_iterations", kind: counter, better: lower, rateBetter: lower, meaning: "iterations that could not be started"},
		{name: "group_duration", kind: trend, contains: timeValues, better: lower, meaning: "time of a group"},
		{name: "checks", kind: rate, better: higher, meaning: "part of checks that succeeded"},
		{name: "data_received", kind: counter, contains: dataValues, meaning: "bytes received"},
		{name: "data_sent", kind: counter, contains: dataValues, meaning: "bytes sent"},
		{name: "vus", kind: gauge, meaning: "virtual users at work"},
		{name: "vus_max", kind: gauge, meaning: "virtual users that were ready"},
		{name: "grpc_req_duration", kind: trend, contains: timeValues, better: lower, meaning: "time of a gRPC request"},
		{name: "ws_connecting", kind: trend, contains: timeValues, better: lower, meaning: "time to connect a WebSocket"},
		{name: "ws_session_duration", kind: trend, contains: timeValues, meaning: "time of a WebSocket's session"},
		{name: "ws_ping", kind: trend, contains: timeValues, better: lower, meaning: "time of a ping"},
	}
}

// isBuiltin reports whether k6 has a metric itself.
func isBuiltin(metric string) bool {
	return slices.ContainsFunc(builtins(), func(b builtin) bool { return b.name == metric })
}

func unitOf(contains string) string {
	switch contains {
	case timeValues:
		return report.Seconds
	case dataValues:
		return report.Bytes
	}
	return report.Count
}

func rateOf(unit string) string {
	switch unit {
	case report.Bytes:
		return report.BytesPerSecond
	case report.Count:
		return report.PerSecond
	}
	return unit + "/s"
}

// value is a metric of k6, with all of its numbers.
type value struct {
	name, tags     string // http_req_duration, expected_response:true
	kind, contains string
	numbers        []number // in milliseconds, bytes and parts of 1
}

// number is one of a metric: its p(95), for one.
type number struct {
	key   string
	value float64
}

func (v *value) number(key string) (float64, bool) {
	for _, n := range v.numbers {
		if n.key == key {
			return n.value, true
		}
	}
	return 0, false
}

// set sets a number. Of two with the same key, the last counts.
func (v *value) set(key string, n float64) {
	for i := range v.numbers {
		if v.numbers[i].key == key {
			v.numbers[i].value = n
			return
		}
	}
	v.numbers = append(v.numbers, number{key, n})
}

// summary is what one test says.
type summary struct {
	values     []value
	thresholds int // that there are
	crossed    int
	version    string
	missing    string // what it lacks, or the one after it
	unsure     bool   // it ends early
}

// collector makes metrics of values.
type collector struct {
	defined map[string]report.Definition
	asked   string // the last name of a definition
	answer  report.Definition
	own     map[string]builtin
	metrics []report.Metric
	taken   map[seriesKey]bool
	missing []string
}

// seriesKey identifies a metric among those of a summary.
type seriesKey struct{ name, stat, tags string }

func newCollector(s summary) *collector {
	own, defined, size := builtins(), definitions(), 1
	for _, v := range s.values {
		size += len(v.numbers)
	}
	c := &collector{
		defined: make(map[string]report.Definition, len(defined)), own: make(map[string]builtin, len(own)),
		metrics: make([]report.Metric, 0, size), taken: make(map[seriesKey]bool, size),
	}
	for _, b := range own {
		c.own[b.name] = b
	}
	for _, d := range defined {
		c.defined[d.Name] = d
	}
	return c
}

// add adds a metric of a value unless it is there. One of a user may have the name that a metric of k6 gets here: it is left out.
func (c *collector) add(v value, stat string, m report.Metric) {
	if d := c.definition(m.Name); d.Name != "" && (d.Unit != m.Unit || d.Direction != m.Direction) {
		c.missing = append(c.missing, report.Clip(m.Name+" was left out: k6 has another metric of this name"))
		return
	}
	if m.Value-m.Value != 0 {
		c.missing = append(c.missing, report.Clip(m.Name+" is not finite"))
		return
	}
	if id := (seriesKey{m.Name, stat, v.tags}); !c.taken[id] {
		c.taken[id] = true
		c.metrics = append(c.metrics, m)
	}
}

// definition returns that of a metric, or none. The numbers of a value ask for the same one after the other.
func (c *collector) definition(name string) report.Definition {
	if name != c.asked {
		c.asked, c.answer = name, c.defined[name]
	}
	return c.answer
}

func (c *collector) value(v value) {
	b, own := c.own[v.name]
	if own {
		v.kind, v.contains = b.kind, b.contains
	}
	switch v.kind {
	case trend, gauge:
		c.stats(v, b)
	case counter:
		c.number(v, "count", "", unitOf(v.contains), b.better)
		c.number(v, "rate", "_rate", rateOf(unitOf(v.contains)), b.rateBetter)
	case rate:
		c.number(v, "rate", "", report.Ratio, b.better)
		c.number(v, "passes", "_passes", report.Count, "")
		c.number(v, "fails", "_fails", report.Count, "")
	}
}

func labelsOf(v value) map[string]string {
	if v.tags == "" {
		return map[string]string{}
	}
	return map[string]string{labelTags: v.tags}
}

func (c *collector) number(v value, key, suffix, unit string, better report.Direction) {
	if n, ok := v.number(key); ok {
		c.add(v, "", report.Metric{Name: v.name + suffix, Value: n, Unit: unit, Direction: better, Labels: labelsOf(v)})
	}
}

// stats adds the numbers of a trend or a gauge.
func (c *collector) stats(v value, b builtin) {
	for _, n := range v.numbers {
		if v.kind == trend && (n.key == "count" || n.key == "rate") { // count may be one of summaryTrendStats; it is no value of the trend
			continue
		}
		if v.contains == timeValues {
			n.value /= 1000
		}
		labels := labelsOf(v)
		labels[labelStat] = n.key
		c.add(v, n.key, report.Metric{Name: v.name, Value: n.value, Unit: unitOf(v.contains), Direction: b.better, Labels: labels})
	}
}

func (c *collector) thresholds(s summary) {
	if s.thresholds > 0 && len(c.metrics) > 0 {
		c.add(value{}, "", report.Metric{
			Name: "thresholds_failed", Value: float64(s.crossed), Unit: report.Count, Direction: report.Lower, Labels: map[string]string{},
		})
	}
}

// headlines marks the time of requests and their rate, or of iterations, if the test has no requests.
func (c *collector) headlines(complete bool) {
	if !complete {
		return
	}
	if !c.headline("http_req_duration", "http_reqs_rate") {
		c.headline("iteration_duration", "iterations_rate")
	}
}

func (c *collector) headline(times, count string) (found bool) {
	for _, stat := range []string{"p(95)", "p(99)", "p(90)", "med", "avg"} {
		if c.mark(times, stat) {
			found = true
			break
		}
	}
	return c.mark(count, "") || found
}

func (c *collector) mark(metric, stat string) bool {
	for i, m := range c.metrics {
		if m.Name == metric && m.Labels[labelStat] == stat && m.Labels[labelTags] == "" {
			c.metrics[i].Headline = true
			return true
		}
	}
	return false
}
