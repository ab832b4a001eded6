package junit_test

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/junit"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/result"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// rule says what an element of Jenkins' schema may have.
type rule struct {
	required, optional []string // attributes
	children           []string
	numbers            []string // attributes that are numbers
}

// schema is the part of Jenkins' schema that readers agree on, by the name of the element.
func schema() map[string]rule {
	return map[string]rule{
		"testsuites": {optional: []string{"name", "time", "tests", "failures", "errors", "disabled"}, children: []string{"testsuite"}, numbers: []string{"time", "tests", "failures", "errors"}},
		"testsuite": {
			required: []string{"name", "tests"}, optional: []string{"failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
			children: []string{"properties", "testcase", "system-out", "system-err"}, numbers: []string{"tests", "failures", "errors", "skipped", "time"},
		},
		"properties": {children: []string{"property"}},
		"property":   {required: []string{"name", "value"}},
		"testcase": {
			required: []string{"name"}, optional: []string{"classname", "time", "assertions", "status"},
			children: []string{"skipped", "error", "failure", "system-out", "system-err"}, numbers: []string{"time"},
		},
		"skipped":    {optional: []string{"message", "type"}},
		"failure":    {optional: []string{"message", "type"}},
		"system-out": {},
	}
}

// check reports each element that the schema does not allow in its place.
func check(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	parents := []string{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			if len(parents) == 0 && name != "testsuites" || len(parents) > 0 && !slices.Contains(schema()[parents[len(parents)-1]].children, name) {
				t.Errorf("element %s is not allowed in %v", name, parents)
			}
			checkAttributes(t, e)
			parents = append(parents, name)
		case xml.EndElement:
			parents = parents[:len(parents)-1]
		}
	}
}

func checkAttributes(t *testing.T, e xml.StartElement) {
	t.Helper()
	r, ok := schema()[e.Name.Local]
	if !ok {
		t.Errorf("the schema has no element %s", e.Name.Local)
	}
	var names []string
	for _, a := range e.Attr {
		names = append(names, a.Name.Local)
		if !slices.Contains(r.required, a.Name.Local) && !slices.Contains(r.optional, a.Name.Local) {
			t.Errorf("element %s has no attribute %s", e.Name.Local, a.Name.Local)
		}
		if _, err := strconv.ParseFloat(a.Value, 64); err != nil && slices.Contains(r.numbers, a.Name.Local) {
			t.Errorf("%s of %s is %q, want a number", a.Name.Local, e.Name.Local, a.Value)
		}
	}
	for _, want := range r.required {
		if !slices.Contains(names, want) {
			t.Errorf("element %s lacks %s", e.Name.Local, want)
		}
	}
}

// report is what a reader takes from a document.
type report struct {
	Suites []struct {
		Name       string `xml:"name,attr"`
		Tests      int    `xml:"tests,attr"`
		Failures   int    `xml:"failures,attr"`
		Skipped    int    `xml:"skipped,attr"`
		Time       string `xml:"time,attr"`
		Timestamp  string `xml:"timestamp,attr"`
		Properties []struct {
			Name  string `xml:"name,attr"`
			Value string `xml:"value,attr"`
		} `xml:"properties>property"`
		Cases []struct {
			Name    string `xml:"name,attr"`
			Class   string `xml:"classname,attr"`
			Time    string `xml:"time,attr"`
			Skipped *struct {
				Message string `xml:"message,attr"`
			} `xml:"skipped"`
			Failure *struct {
				Type    string `xml:"type,attr"`
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
			Out string `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// ended returns the run of a cell that has ended.
func ended(id string, repetition int32, outcome baiv1.Outcome, class baiv1.FailureClass) *baiv1.CellRun {
	return &baiv1.CellRun{RunId: id, Repetition: repetition, Phase: baiv1.Phase_PHASE_FINISHED, Outcome: outcome, FailureClass: class}
}

// sizes is a set with runs of each kind.
func sizes() junit.Input {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	at := func(s float64) *timestamppb.Timestamp {
		return timestamppb.New(begin.Add(time.Duration(s * float64(time.Second))))
	}
	warmup := ended("w1", 1, baiv1.Outcome_OUTCOME_SUCCEEDED, 0)
	warmup.Warmup = true
	return junit.Input{
		Set: &baiv1.Set{
			Id: "s1", Name: "v1.2 <sizes>", Owner: "ann", Repetitions: 3, Warmup: 1, CreateTime: at(0), EndTime: at(90.5),
			Failures: []*baiv1.SetFailure{{Cell: "x=0.5", Message: "too \x1b[31mlarge"}, {RunId: "f1", Cell: "x=1", Message: "exit"}},
		},
		Cells: []*baiv1.Cell{
			{Name: "x=1", Runs: []*baiv1.CellRun{
				warmup, ended("f1", 1, baiv1.Outcome_OUTCOME_FAILED, baiv1.FailureClass_FAILURE_CLASS_USER),
				ended("c1", 2, baiv1.Outcome_OUTCOME_CANCELED, 0),
				{RunId: "r1", Repetition: 3, Phase: baiv1.Phase_PHASE_RUNNING},
			}},
			{Name: "x=0.5", Runs: []*baiv1.CellRun{ended("g1", 1, baiv1.Outcome_OUTCOME_SUCCEEDED, 0), ended("g2", 2, baiv1.Outcome_OUTCOME_FAILED, 0)}},
		},
		Runs: map[string]*baiv1.Run{
			"f1": {Reason: "NonZeroExit", Message: "exit code 3 & \"more\"\nline", StartTime: at(1), EndTime: at(3.25)},
			"w1": {StartTime: at(0), EndTime: at(1)},
		},
		Metrics: []*result.Metric{{Name: "latency", Unit: "ms", Cells: []result.InCell{
			{Cell: &baiv1.CellResult{Name: "x=1"}, Result: &baiv1.MetricResult{Median: 2.5, N: 6, Interval: &baiv1.Interval{Low: 2, High: 3}}},
			{Cell: &baiv1.CellResult{Name: "x=0.5"}},
		}}},
	}
}

func TestEachRunOfASetIsATestCase(t *testing.T) {
	text, err := junit.Marshal(sizes())
	if err != nil {
		t.Fatal(err)
	}
	check(t, text)
	var got report
	if err := xml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Suites[0]
	if s.Name != "v1.2 <sizes>" || s.Tests != 8 || s.Failures != 3 || s.Skipped != 3 || s.Time != "90.500" || s.Timestamp != "2026-01-02T03:00:00" {
		t.Errorf("the suite is %+v", s)
	}
	var lines []string
	for _, c := range s.Cases {
		line := c.Class + " | " + c.Name + " | " + c.Time + " | " + c.Out
		if c.Skipped != nil {
			line += " | skipped: " + c.Skipped.Message
		}
		if c.Failure != nil {
			line += " | " + c.Failure.Type + ": " + c.Failure.Message + ": " + c.Failure.Text
		}
		lines = append(lines, line)
	}
	want := []string{
		"v1_2 <sizes>.x=1 | x=1: warm-up 1 | 1.000 | run w1",
		`v1_2 <sizes>.x=1 | x=1: repetition 1 | 2.250 | run f1 | NonZeroExit: NonZeroExit (user): exit code 3 & "more" line: run f1 failed: see baictl why f1`,
		"v1_2 <sizes>.x=1 | x=1: repetition 2 | 0 | run c1 | skipped: canceled",
		"v1_2 <sizes>.x=1 | x=1: repetition 3 | 0 | run r1 | skipped: not ended: running",
		"v1_2 <sizes>.x=0_5 | x=0.5: warm-up 1 | 0 |  | Refused: too \ufffd[31mlarge: the run was refused",
		"v1_2 <sizes>.x=0_5 | x=0.5: repetition 1 | 0 | run g1",
		"v1_2 <sizes>.x=0_5 | x=0.5: repetition 2 | 0 | run g2 | failed: failed: run g2 failed: see baictl why g2",
		"v1_2 <sizes>.x=0_5 | x=0.5: repetition 3 | 0 |  | skipped: not submitted",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("test cases (-want +got):\n%s", diff)
	}
}

func TestTheCellsOfASuiteHaveTheirOwnNumbersOfRuns(t *testing.T) {
	text, err := junit.Marshal(junit.Input{
		Set:   &baiv1.Set{Id: "s1", Repetitions: 3, Warmup: 1},
		Cells: []*baiv1.Cell{{Name: "a", Repetitions: 1}, {Name: "b", Repetitions: 3, Warmup: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got report
	if err := xml.Unmarshal([]byte(text), &got); err != nil || got.Suites[0].Tests != 5 {
		t.Errorf("%v, %s", err, text)
	}
}

func TestMediansAreProperties(t *testing.T) {
	text, err := junit.Marshal(sizes())
	if err != nil {
		t.Fatal(err)
	}
	var got report
	if err := xml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range got.Suites[0].Properties {
		all[p.Name] = p.Value
	}
	if diff := cmp.Diff(map[string]string{"set": "s1", "owner": "ann", "latency (ms): x=1": "2.5 [2, 3] n=6"}, all); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

func TestASetWithoutRunsIsADocumentToo(t *testing.T) {
	text, err := junit.Marshal(junit.Input{Set: &baiv1.Set{Id: "s1"}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, text)
}

func TestARefusedRunIsAFailureAtItsOwnRepetition(t *testing.T) {
	in := junit.Input{
		Set: &baiv1.Set{Id: "s1", Repetitions: 3, Warmup: 1, Failures: []*baiv1.SetFailure{
			{Cell: "x=1", Repetition: 2, Message: "second"},
			{Cell: "x=1", Repetition: 1, Warmup: true, Message: "warm-up"},
			{Cell: "x=1", Message: "of an older platform"},
		}},
		Cells: []*baiv1.Cell{{Name: "x=1"}},
	}
	want := []string{"x=1: warm-up 1: warm-up", "x=1: repetition 1: of an older platform", "x=1: repetition 2: second", "x=1: repetition 3: skipped: not submitted"}
	if diff := cmp.Diff(want, casesOf(t, in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// casesOf returns the test cases of a document, one a line, with the messages of those that did not succeed.
func casesOf(t *testing.T, in junit.Input) []string {
	t.Helper()
	text, err := junit.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	check(t, text)
	var got report
	if err := xml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range got.Suites[0].Cases {
		line := c.Name
		if c.Failure != nil {
			line += ": " + c.Failure.Message
		}
		if c.Skipped != nil {
			line += ": skipped: " + c.Skipped.Message
		}
		lines = append(lines, line)
	}
	return lines
}

func TestARerunHasATestCaseForEachRunThatItMakes(t *testing.T) {
	got := casesOf(t, junit.Input{
		Set: &baiv1.Set{Id: "s1", Repetitions: 5, Warmup: 2},
		Cells: []*baiv1.Cell{
			{Name: "x=1", Repetitions: 5, Warmup: 2, Selected: &baiv1.RunNumbers{Repetitions: []int32{3, 5}, Warmups: []int32{2}}, Runs: []*baiv1.CellRun{
				{RunId: "a", Repetition: 3, Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED},
			}},
			{Name: "x=2", Repetitions: 5, Warmup: 2, Selected: &baiv1.RunNumbers{}},
		},
	})
	want := []string{"x=1: warm-up 2: skipped: not submitted", "x=1: repetition 3", "x=1: repetition 5: skipped: not submitted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEachRefusedRunIsAFailureAlsoIfTheSetDoesNotListIt(t *testing.T) {
	got := casesOf(t, junit.Input{
		Set: &baiv1.Set{Id: "s1", Repetitions: 2, Warmup: 1, Failures: []*baiv1.SetFailure{{Cell: "x=1", Repetition: 1, Message: "too large"}}},
		Cells: []*baiv1.Cell{
			{Name: "x=1", Repetitions: 2, Warmup: 1, Refused: &baiv1.RunNumbers{Repetitions: []int32{1, 2}}},
			{Name: "x=2", Repetitions: 2, Warmup: 1, Refused: &baiv1.RunNumbers{Warmups: []int32{1}}},
		},
	})
	unlisted := "refused; baictl set get shows the reasons of the first failures of the set"
	want := []string{
		"x=1: warm-up 1: skipped: not submitted", "x=1: repetition 1: too large", "x=1: repetition 2: " + unlisted,
		"x=2: warm-up 1: " + unlisted, "x=2: repetition 1: skipped: not submitted", "x=2: repetition 2: skipped: not submitted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
