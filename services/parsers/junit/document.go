package junit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// result of a test.
type result int

// The results. One that is greater hides another: a test that failed, and then broke when it cleaned up, has failed.
const (
	passed result = iota
	skipped
	broke
	failed
)

// counts of tests.
type counts struct{ tests, failures, errors, skipped float64 }

func (c *counts) add(o counts) {
	c.tests += o.tests
	c.failures += o.failures
	c.errors += o.errors
	c.skipped += o.skipped
}

// suite is an element that is open: a suite, or the root of several.
type suite struct {
	name     string
	declared counts   // what it says about itself
	has      counts   // what its tests are, and those of the suites in it
	time     *float64 // what it says
	times    float64  // what the suites and tests in it say
	timed    bool     // one of those says something
}

// document is one document, as far as it was read.
type document struct {
	suites    []suite // the open ones, the root first
	durations []report.Metric
	taken     map[string]int // where the duration of a test is
	cases     int
	odd       string // a time that is none
	current   *testcase
}

type testcase struct {
	class, name string
	time        *float64
	result      result
}

// most is more than any number of tests or seconds. What is greater is a mistake, and sums of such would be infinite.
const most = 1e12

// begin opens an element.
func (d *document) begin(element string, attributes map[string]string) {
	switch element {
	case "testsuites", "testsuite":
		n := func(key string) float64 { v, _ := report.Number(attributes[key]); return min(max(v, 0), most) }
		d.suites = append(d.suites, suite{
			name: attributes["name"], time: d.time(attributes),
			declared: counts{
				tests: n("tests"), failures: n("failures"), errors: n("errors"),
				skipped: max(n("skipped"), n("skips"), n("disabled")),
			},
		})
	case "testcase":
		d.current = &testcase{class: attributes["classname"], name: attributes["name"], time: d.time(attributes)}
		if d.current.class == "" {
			d.current.class = d.suites[len(d.suites)-1].name
		}
	case "failure":
		d.say(failed)
	case "error":
		d.say(broke)
	case "skipped":
		d.say(skipped)
	}
}

// say notes a result of the test that is open.
func (d *document) say(r result) {
	if d.current != nil {
		d.current.result = max(d.current.result, r)
	}
}

// time returns the time that an element says. Surefire groups its digits by commas.
func (d *document) time(attributes map[string]string) *float64 {
	text, ok := attributes["time"]
	if !ok || text == "" {
		return nil
	}
	v, ok := report.Number(strings.ReplaceAll(text, ",", ""))
	if !ok || v < 0 || v > most {
		d.odd = text
		return nil
	}
	return &v
}

// end closes an element.
func (d *document) end(element string) {
	switch element {
	case "testsuites", "testsuite":
		last := len(d.suites) - 1
		if last > 0 {
			inner := d.suites[last].closed()
			outer := &d.suites[last-1]
			outer.has.add(inner.has)
			outer.took(inner.time)
			d.suites = d.suites[:last]
		} else {
			d.suites[0] = d.suites[0].closed()
		}
	case "testcase":
		if d.current != nil {
			d.close(d.current)
			d.current = nil
		}
	}
}

// closed returns a suite with the counts and the time that it has at its end.
func (s suite) closed() suite {
	if s.has.tests == 0 {
		s.has = s.declared
	}
	if s.time == nil && s.timed {
		s.time = &s.times
	}
	return s
}

func (s *suite) took(time *float64) {
	if time != nil {
		s.times += *time
		s.timed = true
	}
}

// close counts a test, and notes its duration.
func (d *document) close(t *testcase) {
	s := &d.suites[len(d.suites)-1]
	one := counts{tests: 1}
	switch t.result {
	case failed:
		one.failures = 1
	case broke:
		one.errors = 1
	case skipped:
		one.skipped = 1
	case passed:
	}
	s.has.add(one)
	s.took(t.time)
	if t.result == skipped || t.time == nil {
		return
	}
	d.duration(t.class+"\x00"+t.name, report.Metric{
		Name: "test_duration", Value: *t.time, Unit: report.Seconds, Direction: report.Lower,
		Labels: map[string]string{labelClass: t.class, labelName: t.name},
	})
}

// duration notes the duration of a test.
func (d *document) duration(id string, m report.Metric) {
	i, ok := d.taken[id]
	switch {
	case ok:
		d.durations[i] = m
	case len(d.durations) < maxCases:
		d.taken[id] = len(d.durations)
		d.durations = append(d.durations, m)
		d.cases++
	default:
		d.cases++
	}
}

// metrics returns the metrics of a document. One that is not complete has none that is a headline; its suites count as far as they were
// read.
func (d *document) metrics(complete bool) []report.Metric {
	all := slices.Clone(d.suites)
	for len(all) > 1 {
		last := len(all) - 1
		all[last-1].has.add(all[last].has)
		all[last-1].times += all[last].times
		all[last-1].timed = all[last-1].timed || all[last].timed
		all = all[:last]
	}
	return append(all[0].metrics(complete), d.durations...)
}

func (s suite) metrics(complete bool) []report.Metric {
	all := []report.Metric{
		{Name: "tests", Value: s.has.tests, Unit: report.Count},
		{Name: "failures", Value: s.has.failures, Unit: report.Count, Direction: report.Lower, Headline: complete},
		{Name: "errors", Value: s.has.errors, Unit: report.Count, Direction: report.Lower},
		{Name: "skipped", Value: s.has.skipped, Unit: report.Count},
	}
	if s.time != nil {
		all = append(all, report.Metric{
			Name: "duration", Value: *s.time, Unit: report.Seconds,
			Direction: report.Lower, Headline: complete,
		})
	}
	return all
}

// unescape replaces the entities of XML, and references to characters. Others stay as they are.
func unescape(text string) string {
	if !strings.Contains(text, "&") {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "&")
		b.WriteString(before)
		if !ok {
			return strings.ToValidUTF8(b.String(), "\uFFFD")
		}
		entity, after, ok := strings.Cut(rest, ";")
		if r := entityOf(entity); ok && r != "" {
			b.WriteString(r)
			text = after
		} else {
			b.WriteByte('&')
			text = rest
		}
	}
}

func entityOf(entity string) string {
	switch entity {
	case "amp":
		return "&"
	case "lt":
		return "<"
	case "gt":
		return ">"
	case "quot":
		return `"`
	case "apos":
		return "'"
	}
	digits, ok := strings.CutPrefix(entity, "#")
	if !ok || len(digits) > 8 {
		return ""
	}
	base := 10
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 21)
	if err != nil {
		return ""
	}
	return string(rune(n))
}
