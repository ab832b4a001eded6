package perftest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/table"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const (
	maxTables   = 1024 // that are kept: more than there are tests
	maxFailures = 4    // lines that are kept
)

// result is the table of one test.
type result struct {
	test, side string
	columns    []table.Column
	rows       table.Rows
}

func (r *result) sameAs(other result) bool { return r.test == other.test && r.side == other.side }

// parser keeps the last complete table of each test, and the one that is being read.
type parser struct {
	known      []table.Column
	headers    table.Headers
	test, side string
	open       bool // last is below its header
	last       result
	whole      []result
	full       bool     // tables were left out
	failures   []string // since the last table was complete
	begun      bool     // a test has begun, and has no complete table
	ruled      bool     // the line before was a rule below rows
	cut        []string // tests whose table another test followed before it had ended
}

func (p *parser) line(line []byte) {
	if p.ruled {
		p.end(line)
	}
	switch {
	case len(line) < 4:
	case p.open && table.IsRow(line):
		if bytes.IndexByte(line, ',') < 0 { // samples of --report-unsorted have one
			p.last.rows.Add(line)
		}
	case line[0] == '-':
		p.rule(line)
	case line[0] == ' ' && p.inTest(line):
	case isFailure(line) && len(p.failures) < maxFailures:
		p.failures = append(p.failures, string(bytes.TrimSpace(line)))
	}
}

// inTest reads a title, a header, or the line above the results of one side.
func (p *parser) inTest(line []byte) bool {
	if test, ok := title(line); ok {
		p.test, p.side, p.open, p.begun = test, "", false, true
		return true
	}
	if side, ok := bytes.CutSuffix(line, []byte(" results: ")); ok {
		p.side = strings.ToLower(report.Clip(string(side)))
		return true
	}
	if !isHeader(line) {
		return false
	}
	columns := p.headers.Of(line, p.header)
	if columns == nil {
		return false
	}
	p.last.test, p.last.side, p.last.columns = p.test, p.side, columns
	p.last.rows.Reset()
	p.open, p.begun = true, true
	return true
}

func (p *parser) header(line []byte) []table.Column { return header(line, p.known) }

// rule reads a line of dashes. It ends a table with rows, unless it is that above the title of the next test.
func (p *parser) rule(line []byte) {
	p.ruled = p.open && !p.last.rows.None() && bytes.HasPrefix(line, []byte("----------"))
}

// end ends the table above a rule; next is the line below it.
func (p *parser) end(next []byte) {
	p.ruled, p.open = false, false
	if _, ok := title(next); ok {
		if len(p.cut) < maxTables {
			p.cut = append(p.cut, p.last.test)
		}
		return
	}
	p.begun, p.failures = false, nil
	i := slices.IndexFunc(p.whole, p.last.sameAs)
	switch {
	case i >= 0:
		p.whole[i], p.last = p.last, p.whole[i]
	case len(p.whole) == maxTables:
		p.full = true
	default:
		p.whole, p.last = append(p.whole, p.last), result{}
	}
}

// failures are how a line begins with which the tools, or the driver, say that they end without a result.
//
//nolint:gochecknoglobals // a constant
var failures = []string{
	"Couldn't ", "Failed ", "Failed: ", "failed to ", "Unable to ", "Did not detect devices",
	"No IB devices found", "Error: ", "Error occur",
	"Error opening ", "Error when trying ", "Can't produce a report", "Problem in ", "Problems with warm up",
	"Parser function exited with Error",
	"Completion with error", "Unexpected CM event", "unexpected CM event", "Invalid ", "Did not get Message for 120 Seconds",
	"Found Incompatibility issue", "Cannot Allocate", "poll CQ failed",
}

// isFailure reports whether a line tells of a failure. A wrong index of a partition key is none: the tool takes another.
func isFailure(line []byte) bool {
	text := bytes.TrimLeft(line, " ")
	if len(text) == 0 {
		return false
	}
	for _, f := range failures {
		if text[0] == f[0] && len(text) >= len(f) && string(text[:len(f)]) == f {
			return !bytes.HasPrefix(text, []byte("Unable to validat"))
		}
	}
	for _, form := range [][2]string{
		{"IB device ", " not found"}, {"Port number ", " state is Down"}, {"mlx", ": got completion with error:"},
	} {
		if text[0] == form[0][0] && bytes.HasPrefix(text, []byte(form[0])) && bytes.HasSuffix(bytes.TrimRight(text, " "), []byte(form[1])) {
			return true
		}
	}
	return false
}

// report returns what the tables say: a table that has not ended counts if there is no other of the same test.
func (p *parser) report() report.Report {
	if p.ruled {
		p.end(nil)
	}
	missing := p.missing()
	if p.open && !p.last.rows.None() && !slices.ContainsFunc(p.whole, p.last.sameAs) {
		p.whole = append(p.whole, p.last)
	}
	v := reader{}
	for i := range p.whole {
		v.read(&p.whole[i], p.sides(p.whole[i].test))
	}
	if len(p.failures) > 0 {
		return report.Failure(name, "", v.set.List(), strings.Join(p.failures, "; "))
	}
	return report.Of(name, "", v.set.List(), report.Clip(strings.Join(append(missing, v.missing...), "; ")))
}

// missing names the tests without a complete table.
func (p *parser) missing() []string {
	var tests, missing []string
	for _, test := range p.cut {
		if !slices.ContainsFunc(p.whole, func(r result) bool { return r.test == test }) {
			tests = append(tests, test)
		}
	}
	if p.begun {
		tests = append(tests, p.test)
	}
	slices.Sort(tests)
	for _, test := range slices.Compact(tests) {
		if test == "" {
			test = "the test"
		}
		missing = append(missing, test+" has not come to the end of its table")
	}
	if p.full {
		missing = append(missing, fmt.Sprintf("tests beyond the first %d", maxTables))
	}
	return missing
}

// sides reports whether a test has tables of both sides.
func (p *parser) sides(test string) bool {
	return slices.ContainsFunc(p.whole, func(r result) bool { return r.test == test && r.side != "" })
}

// reader reads the rows of tables.
type reader struct {
	set     table.Metrics
	table   *result
	best    [3]report.Metric // the headlines: bandwidth, latency, flows
	average bool             // the table has an average latency
	missing []string
}

func (v *reader) read(t *result, sides bool) {
	v.table, v.best = t, [3]report.Metric{}
	v.average = slices.ContainsFunc(t.columns, func(c table.Column) bool { return c.Name == "latency_average" })
	t.rows.Each(v.row)
	if t.rows.Full {
		v.missing = append(v.missing, "rows of "+t.test)
	}
	for i, name := range []string{"bandwidth", "latency", "flow_rate"} {
		if m := v.best[i]; m.Name != "" {
			m.Name, m.Labels = name, v.labels()
			m.Headline = t.side != "" || !sides
			v.set.Put(m)
		}
	}
}

func (v *reader) labels() map[string]string {
	labels := make(map[string]string)
	if v.table.test != "" {
		labels[labelTest] = v.table.test
	}
	if v.table.side != "" {
		labels[labelSide] = v.table.side
	}
	return labels
}

func (v *reader) row(words []string) {
	if len(words) != len(v.table.columns) {
		v.missing = append(v.missing, "the row of "+words[0]+" bytes is incomplete")
		return
	}
	labels := v.labels()
	for i, c := range v.table.columns {
		switch c.Title {
		case titleBytes:
			labels[labelBytes] = words[i]
		case titleFlows:
			labels[labelFlows] = words[i]
		case titleLevel:
			labels[labelLevel] = words[i]
		}
	}
	for i, c := range v.table.columns {
		if c.Name != "" {
			v.put(c, words[i], maps.Clone(labels))
		}
	}
}

func (v *reader) put(c table.Column, word string, labels map[string]string) {
	m, ok := c.Metric(word, labels)
	if !ok {
		v.missing = append(v.missing, fmt.Sprintf("%s is %q", c.Title, word))
		return
	}
	if m.Name == "bandwidth_peak" && m.Value == 0 {
		return // the tool has not computed it
	}
	v.set.Put(m)
	switch {
	case m.Name == "bandwidth_average":
		table.Best(&v.best[0], m)
	case m.Name == "latency_average", m.Name == "latency_typical" && !v.average:
		table.Best(&v.best[1], m)
	case m.Name == "flows_per_second":
		table.Best(&v.best[2], m)
	}
}
