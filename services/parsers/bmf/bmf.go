// Package bmf reads the Bencher Metric Format, the JSON of Bencher.
package bmf

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "bmf"

// Labels of metrics.
const (
	labelBenchmark = "benchmark"
	labelBound     = "bound" // lower or upper; the value itself has no such label
)

// Kind returns the parser of the Bencher Metric Format: {"benchmark": {"measure": {"value": 1, "lower_value": 1, "upper_value": 1}}}, after
// its schema https://bencher.dev/bmf.json.
//
// The metric of a measure has its name, in small letters and with "_" in place of what is no letter. The measures that Bencher has itself
// have its units: nanoseconds, operations per second, bytes, seconds. That of another measure is not known: it is "1". A value is a
// headline if it is the only one of one of Bencher's measures, or the only one at all.
func Kind() report.Kind {
	labels := []string{labelBenchmark, labelBound}
	return report.Kind{
		Name: name, Tool: "Bencher and what writes its format",
		Metrics: []report.Definition{
			{
				Name: "latency", Unit: report.Seconds, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "time of an operation",
			},
			{
				Name: "throughput", Unit: report.PerSecond, Direction: report.Higher, Headline: true, Labels: labels,
				Meaning: "operations per second",
			},
			{
				Name: "file_size", Unit: report.Bytes, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "size of a file that was built",
			},
			{
				Name: "build_time", Unit: report.Seconds, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "time of the build",
			},
			{
				Name: "instructions", Unit: report.Count, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "instructions executed",
			},
			{
				Name: "estimated_cycles", Unit: report.Count, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "cycles estimated from instructions and memory accesses",
			},
			{Name: "*", Unit: report.Count, Headline: true, Labels: labels, Meaning: "a measure of one's own, in its own unit"},
		},
		Document: true, Looks: looks, Parse: report.DocumentParser(name, parse),
	}
}

// looks holds the beginning of a text to the schema: every value that it has is a number at the third level, with one of three keys.
func looks(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\uFEFF")), " \t\r\n")
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	fits, others := 0, 0
	document.Walk(head, func(way []document.Step, leaf []byte) {
		if bound, ok := boundOf(way); ok && bound != "" && isNumber(leaf) {
			fits++
		} else {
			others++
		}
	})
	return fits > 0 && others == 0
}

func isNumber(leaf []byte) bool {
	_, ok := report.Number(string(leaf))
	return ok
}

// boundOf reports whether a value is at the third level of objects, and which of the three of a measure it is; bound is "" for other keys.
func boundOf(way []document.Step) (bound string, ok bool) {
	if len(way) != 3 || way[0].Index >= 0 || way[1].Index >= 0 || way[2].Index >= 0 {
		return "", false
	}
	switch string(way[2].Key) {
	case "value":
		return "value", true
	case "lower_value":
		return "lower", true
	case "upper_value":
		return "upper", true
	}
	return "", true
}

func parse(text []byte, _ report.Options) report.Report {
	var last collector
	cut := document.All(text, func(doc []byte) {
		if c := read(doc); len(c.metrics) > 0 {
			last = c
		}
	})
	if cut >= 0 {
		if c := read(text[cut:]); len(last.metrics) == 0 && len(c.metrics) > 0 {
			last = c
		}
		last.lack("the JSON ends early")
		last.unsure = true
	}
	last.headlines()
	return report.Of(name, "", last.metrics, strings.Join(last.missing, "; "))
}

// read returns the metrics of a document. One with values elsewhere than at the third level is of another format.
func read(doc []byte) collector {
	const usual, most = 40, 1 << 16 // bytes of a document for each value, or more; values for which there is memory at the beginning
	size := min(len(doc)/usual, most)
	c := collector{
		metrics:  make([]report.Metric, 0, size),
		taken:    make(map[seriesKey]int, size),
		measures: make(map[string]measure), numbers: make(map[string]int, size/3),
	}
	c.numberOf("") // of c.benchmark
	foreign := false
	document.Walk(doc, func(way []document.Step, leaf []byte) {
		bound, ok := boundOf(way)
		switch {
		case !ok && string(leaf) != "{}":
			foreign = true
		case ok && bound != "":
			c.value(way, bound, leaf)
		}
	})
	if foreign {
		return collector{}
	}
	return c
}

// collector makes metrics of values.
type collector struct {
	metrics   []report.Metric
	taken     map[seriesKey]int // where the metric of a name and labels is
	measures  map[string]measure
	numbers   map[string]int // of the names of benchmarks and metrics: they are faster keys
	benchmark string         // the last one
	number    int            // of that
	missing   []string
	unsure    bool // more values would follow
}

// seriesKey identifies a metric among those of a document, by numbers of names. A bound has its first letter.
type seriesKey struct {
	benchmark, metric int
	bound             byte
}

func (c *collector) lack(what string) { c.missing = append(c.missing, what) }

func (c *collector) value(way []document.Step, bound string, leaf []byte) {
	if c.benchmark != string(way[0].Key) {
		c.benchmark = strings.ToValidUTF8(string(way[0].Key), "\uFFFD")
		c.number = c.numberOf(c.benchmark)
	}
	known, ok := c.measures[string(way[1].Key)]
	if !ok {
		known = measureOf(string(way[1].Key))
		known.number = c.numberOf(known.metric.Name)
		c.measures[string(way[1].Key)] = known
	}
	v, ok := report.Number(string(leaf))
	if !ok {
		if len(c.missing) < 3 {
			c.lack(report.Clip(fmt.Sprintf("%s of %s of %s is no number: %s", bound, way[1].Key, c.benchmark, leaf)))
		}
		return
	}
	m := known.metric
	m.Value = v / known.over
	m.Labels = map[string]string{labelBenchmark: c.benchmark}
	if bound != "value" {
		m.Labels[labelBound] = bound
	}
	id := seriesKey{c.number, known.number, bound[0]}
	if i, ok := c.taken[id]; ok {
		c.metrics[i] = m
		return
	}
	c.taken[id] = len(c.metrics)
	c.metrics = append(c.metrics, m)
}

// numberOf returns the number of a name.
func (c *collector) numberOf(name string) int {
	n, ok := c.numbers[name]
	if !ok {
		n = len(c.numbers)
		c.numbers[name] = n
	}
	return n
}

// measure is one of Bencher's measures, or of somebody's own.
type measure struct {
	metric report.Metric // without its value
	over   float64       // how many of the measure's units the metric's unit has
	number int           // of its name
}

func measureOf(called string) measure {
	m := report.Metric{Name: snake(called), Unit: report.Count}
	over := 1.0
	switch m.Name {
	case "latency":
		m.Unit, m.Direction, over = report.Seconds, report.Lower, 1e9
	case "throughput":
		m.Unit, m.Direction = report.PerSecond, report.Higher
	case "file_size":
		m.Unit, m.Direction = report.Bytes, report.Lower
	case "build_time":
		m.Unit, m.Direction = report.Seconds, report.Lower
	case "instructions", "estimated_cycles":
		m.Direction = report.Lower
	}
	return measure{metric: m, over: over}
}

// headlines marks the values that are the only ones of one of Bencher's measures, and the only one at all.
func (c *collector) headlines() {
	isValue := func(m report.Metric) bool { return len(m.Labels) == 1 } // a bound has two
	count, values := make(map[string]int), 0
	for _, m := range c.metrics {
		if isValue(m) {
			count[m.Name]++
			values++
		}
	}
	for i, m := range c.metrics {
		single := values == 1 || m.Direction != "" && count[m.Name] == 1
		c.metrics[i].Headline = single && isValue(m) && !c.unsure
	}
}

// snake returns the name of a metric: "build-time" and "Build Time" become build_time.
func snake(called string) string {
	s := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, called), "_")
	if s == "" {
		return "measure"
	}
	return s
}
