// Package junit reads test results in the XML of JUnit.
package junit

import (
	"bytes"
	"fmt"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "junit"

// Labels of metrics.
const (
	labelClass = "class" // of a test; that of its suite, if the test names none
	labelName  = "name"
)

// maxCases is of how many tests the duration is a metric.
const maxCases = 10_000

// Kind returns the parser of JUnit's XML as Surefire 3.2, pytest 9, gotestsum 1.13 and others write it. They agree on suites, tests and
// their results, but on little else: there is no standard.
//
// Results are counted; what a suite says about itself counts only if it has no tests. The duration is that which the root says, or else the
// sum of its suites, or of the tests. Tests that failed are a number, no failure of the run: the state is ok. A text with several documents
// is that of the last complete one. Output of tests is skipped.
//
// Documents are read by a scanner that knows tags, attributes and the five entities of XML: it is three times as fast as encoding/xml, and
// has nothing that could grow. A document that declares entities, or has elements 1,000 deep, is refused.
func Kind() report.Kind {
	return report.Kind{
		Name: name, Tool: "JUnit and the test tools that write its XML",
		Metrics: []report.Definition{
			{Name: "tests", Unit: report.Count, Meaning: "tests, with those skipped"},
			{Name: "failures", Unit: report.Count, Direction: report.Lower, Headline: true, Meaning: "tests whose checks failed"},
			{Name: "errors", Unit: report.Count, Direction: report.Lower, Meaning: "tests that broke in another way"},
			{Name: "skipped", Unit: report.Count, Meaning: "tests that were not run"},
			{Name: "duration", Unit: report.Seconds, Direction: report.Lower, Headline: true, Meaning: "time of all tests"},
			{
				Name: "test_duration", Unit: report.Seconds, Direction: report.Lower, Labels: []string{labelClass, labelName},
				Meaning: "time of one test that was run; of one that was run several times, the last",
			},
		},
		Document: true, Looks: looks, Parse: report.DocumentParser(name, parse),
	}
}

// looks reports whether the first element of a text is a suite.
func looks(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\uFEFF"))
	for len(head) > 0 {
		head = bytes.TrimLeft(head, " \t\r\n")
		switch {
		case bytes.HasPrefix(head, []byte("<?")):
			_, head, _ = bytes.Cut(head, []byte("?>"))
		case bytes.HasPrefix(head, []byte("<!--")):
			_, head, _ = bytes.Cut(head, []byte("-->"))
		default:
			return isSuite(head)
		}
	}
	return false
}

// isSuite reports whether a text begins with the tag of a suite, or of several.
func isSuite(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte("<testsuite"))
	rest = bytes.TrimPrefix(rest, []byte("s"))
	return ok && len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n>/"), rest[0]) >= 0
}

func parse(text []byte, _ report.Options) report.Report {
	p := parser{}
	if err := p.read(text); err != nil {
		return report.Failure(name, "", nil, err.Error())
	}
	switch {
	case p.open != nil && p.done == nil:
		return report.Of(name, "", p.open.metrics(false), "the XML ends early")
	case p.done == nil:
		return report.Of(name, "", nil, "no test suite in the text")
	case p.open != nil:
		return report.Of(name, "", p.done.metrics(true), "the last document ends early, the one before counts")
	}
	return report.Of(name, "", p.done.metrics(true), p.done.missing())
}

// missing says what a document has that metrics do not have.
func (d *document) missing() string {
	switch {
	case d.cases > maxCases:
		return fmt.Sprintf("the durations of %d of %d tests are left out", d.cases-maxCases, d.cases)
	case d.odd != "":
		return report.Clip(fmt.Sprintf("%q is no time", d.odd))
	}
	return ""
}
