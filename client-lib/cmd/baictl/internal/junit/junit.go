// Package junit writes the runs of a set in the form that continuous integration reads:
// JUnit's XML, as the schema of Jenkins' xUnit plugin has it.
package junit

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/result"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Input is all that a document is made of.
type Input struct {
	Set     *baiv1.Set
	Cells   []*baiv1.Cell         // all cells, with their runs
	Runs    map[string]*baiv1.Run // by ID: runs that are missing have no times and no reasons
	Metrics []*result.Metric      // whose medians are properties
}

type document struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Time     string   `xml:"time,attr"`
	Suite    suite    `xml:"testsuite"`
}

type suite struct {
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Time       string     `xml:"time,attr"`
	Timestamp  string     `xml:"timestamp,attr,omitempty"`
	Properties []property `xml:"properties>property"`
	Cases      []testCase `xml:"testcase"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Skipped *skipped `xml:"skipped"`
	Failure *failure `xml:"failure"`
	Out     string   `xml:"system-out,omitempty"`
}

type skipped struct {
	Message string `xml:"message,attr"`
}

type failure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Marshal returns a document with one test suite, the set, and a test case for each run
// that the set has or will have. Runs that failed or were refused are failures. Runs that
// were canceled, have not ended or were not submitted are skipped. The set's facts and the
// medians of its metrics are properties of the suite.
func Marshal(in Input) (string, error) {
	name := printer.Clean(cmp.Or(in.Set.GetName(), in.Set.GetId()))
	s := suite{Name: name, Properties: properties(in)}
	if t := in.Set.GetCreateTime(); t != nil {
		s.Timestamp = t.AsTime().UTC().Format("2006-01-02T15:04:05")
	}
	refused := refusalsOf(in.Set)
	for _, cell := range in.Cells {
		s.Cases = append(s.Cases, casesOf(in, name, cell, refused.of(cell))...)
	}
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
	}
	s.Time = duration(in.Set.GetCreateTime().AsTime(), in.Set.GetEndTime().AsTime())
	d := document{Name: name, Tests: s.Tests, Failures: s.Failures, Time: s.Time, Suite: s}
	text, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return "", fmt.Errorf("make the JUnit report of set %s: %w", in.Set.GetId(), err)
	}
	return xml.Header + string(text) + "\n", nil
}

// properties are the facts of a set and the medians of its cells.
func properties(in Input) []property {
	var all []property
	add := func(name, value string) {
		if value != "" {
			all = append(all, property{printer.Clean(name), printer.Clean(value)})
		}
	}
	add("set", in.Set.GetId())
	add("owner", in.Set.GetOwner())
	add("namespace", in.Set.GetNamespace())
	add("descriptor", in.Set.GetDescriptorFile())
	add("labels", printer.Labels(in.Set.GetLabels()))
	add("status", printer.SetStatus(in.Set))
	add("message", in.Set.GetMessage())
	for _, m := range in.Metrics {
		for _, c := range m.Cells {
			add(m.Label()+": "+c.Cell.GetName(), c.Text())
		}
	}
	return all
}

// refusals are the runs that were refused, by the name of their cell.
type refusals map[string]*refusedRuns

// unlisted is the message of a refused run that is not among the failures that a set lists.
const unlisted = "refused; baictl set get shows the reasons of the first failures of the set"

// of returns the refused runs of a cell, with those whose messages the set does not list.
func (r refusals) of(cell *baiv1.Cell) *refusedRuns {
	in := r[cell.GetName()]
	if cell.GetRefused() == nil {
		return in
	}
	if in == nil {
		in = &refusedRuns{known: map[runKey]string{}}
	}
	add := func(numbers []int32, warmup bool) {
		for _, n := range numbers {
			if at := (runKey{warmup, n}); in.known[at] == "" {
				in.known[at] = unlisted
			}
		}
	}
	add(cell.GetRefused().GetWarmups(), true)
	add(cell.GetRefused().GetRepetitions(), false)
	return in
}

// refusedRuns are the messages of the refused runs of a cell: of those whose place in the
// cell is known, and of those that an older platform stored without it.
type refusedRuns struct {
	known   map[runKey]string
	unknown []string
}

func refusalsOf(set *baiv1.Set) refusals {
	all := refusals{}
	for _, f := range set.GetFailures() {
		if f.GetRunId() != "" {
			continue
		}
		in := all[f.GetCell()]
		if in == nil {
			in = &refusedRuns{known: map[runKey]string{}}
			all[f.GetCell()] = in
		}
		if f.GetRepetition() == 0 {
			in.unknown = append(in.unknown, f.GetMessage())
			continue
		}
		in.known[runKey{f.GetWarmup(), f.GetRepetition()}] = f.GetMessage()
	}
	return all
}

// take returns the message of a run that was refused, and reports whether it was. A message
// without a place is that of the first run without another one.
func (r *refusedRuns) take(at runKey) (message string, refused bool) {
	if r == nil {
		return "", false
	}
	if message, refused = r.known[at]; refused || len(r.unknown) == 0 {
		return message, refused
	}
	message, r.unknown = r.unknown[0], r.unknown[1:]
	return message, true
}

// runKey tells the runs of a cell apart.
type runKey struct {
	warmup     bool
	repetition int32
}

// casesOf returns the test cases of a cell: its warm-up runs, then its repetitions.
func casesOf(in Input, class string, cell *baiv1.Cell, refused *refusedRuns) []testCase {
	runs := map[runKey]*baiv1.CellRun{}
	for _, r := range cell.GetRuns() {
		runs[runKey{r.GetWarmup(), r.GetRepetition()}] = r
	}
	undot := strings.NewReplacer(".", "_") // readers take a dot for the end of a package
	class = undot.Replace(class) + "." + undot.Replace(printer.Clean(cell.GetName()))
	var all []testCase
	for _, p := range runsOf(in.Set, cell) {
		kind := "repetition"
		if p.warmup {
			kind = "warm-up"
		}
		c := testCase{Name: fmt.Sprintf("%s: %s %d", printer.Clean(cell.GetName()), kind, p.repetition), Class: class, Time: "0"}
		c.end(runs[p], in, p, refused)
		all = append(all, c)
	}
	return all
}

// runsOf returns the runs that a set makes of a cell: those that were selected, or else all.
func runsOf(set *baiv1.Set, cell *baiv1.Cell) (all []runKey) {
	warmups, repetitions := cell.GetSelected().GetWarmups(), cell.GetSelected().GetRepetitions()
	if cell.GetSelected() == nil {
		n, m := cell.GetWarmup(), cell.GetRepetitions()
		if m == 0 { // an older platform
			n, m = set.GetWarmup(), set.GetRepetitions()
		}
		warmups, repetitions = upTo(n), upTo(m)
	}
	for _, n := range warmups {
		all = append(all, runKey{warmup: true, repetition: n})
	}
	for _, n := range repetitions {
		all = append(all, runKey{repetition: n})
	}
	return all
}

// upTo returns the numbers from 1 to n.
func upTo(n int32) []int32 {
	all := make([]int32, n)
	for i := range n {
		all[i] = i + 1
	}
	return all
}

// end adds how a run has ended, or that it was refused or not submitted.
func (c *testCase) end(run *baiv1.CellRun, in Input, at runKey, refused *refusedRuns) {
	if run != nil {
		c.describe(run, in.Runs[run.GetRunId()])
		return
	}
	if message, found := refused.take(at); found {
		c.Failure = &failure{Type: "Refused", Message: printer.Clean(message), Text: "the run was refused"}
		return
	}
	c.Skipped = &skipped{Message: "not submitted"}
}

// describe adds how a run has ended. Without a record there are no times and no reason.
func (c *testCase) describe(at *baiv1.CellRun, record *baiv1.Run) {
	c.Out = "run " + at.GetRunId()
	if record.GetStartTime() != nil && record.GetEndTime() != nil {
		c.Time = duration(record.GetStartTime().AsTime(), record.GetEndTime().AsTime())
	}
	switch {
	case at.GetPhase() != baiv1.Phase_PHASE_FINISHED:
		c.Skipped = &skipped{Message: "not ended: " + printer.Word(at.GetPhase())}
	case at.GetOutcome() == baiv1.Outcome_OUTCOME_CANCELED:
		c.Skipped = &skipped{Message: "canceled"}
	case at.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED:
		why := printer.Clean(exitcode.FailureText(record.GetReason(), at.GetFailureClass(), record.GetMessage()))
		c.Failure = &failure{
			Type:    cmp.Or(printer.Clean(record.GetReason()), printer.Word(at.GetFailureClass()), "failed"),
			Message: cmp.Or(why, "failed"),
			Text:    "run " + at.GetRunId() + " failed: see baictl why " + at.GetRunId(),
		}
	}
}

// duration is the time from one time to a later one, in s; 0 if there is no end.
func duration(from, to time.Time) string {
	return fmt.Sprintf("%.3f", max(0, to.Sub(from).Seconds()))
}
