package command

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

func TestAParserThatBreaksARuleHasFoundNothing(t *testing.T) {
	t.Parallel()
	found := []report.Metric{{Name: "a", Value: 1, Unit: "s", Labels: map[string]string{}}}
	for name, tt := range map[string]struct {
		lines printedLines
		end   processEnd
		want  report.Report
	}{
		"metrics are ok":                    {printedLines{Metrics: found, Version: "1.2"}, processEnd{}, report.Report{Kind: Kind, State: report.OK, Version: "1.2", Metrics: found}},
		"so are those it vouches for":       {printedLines{Metrics: found, State: report.OK}, processEnd{}, report.Report{Kind: Kind, State: report.OK, Metrics: found}},
		"a part is kept":                    {printedLines{Metrics: found, State: report.Partial, Reason: "r"}, processEnd{}, report.Report{Kind: Kind, State: report.Partial, Reason: "r", Metrics: found}},
		"a part of nothing is nothing":      {printedLines{State: report.Partial, Reason: "r"}, processEnd{}, report.Report{Kind: Kind, State: report.Empty, Reason: "r", Metrics: []report.Metric{}}},
		"it says that the benchmark failed": {printedLines{Metrics: found, State: report.Failed, Reason: "r"}, processEnd{}, report.Report{Kind: Kind, State: report.Failed, Reason: "r", Metrics: found}},
		"no line":                           {printedLines{}, processEnd{Stderr: []string{"oh"}}, report.Report{Kind: Kind, State: report.Empty, Reason: `the parser printed no metric; its standard error ends with "oh"`, Metrics: []report.Metric{}}},
		"an exit code":                      {printedLines{Metrics: found}, processEnd{Code: 3, Stderr: []string{"a", `b"`}}, report.Report{Kind: Kind, State: report.Failed, Reason: `ended with exit code 3; its standard error ends with "a", "b\""`, Metrics: []report.Metric{}}},
		"a signal":                          {printedLines{Metrics: found}, processEnd{Code: 137, Signal: "SIGKILL"}, report.Report{Kind: Kind, State: report.Failed, Reason: "ended by SIGKILL", Metrics: []report.Metric{}}},
		"it was killed":                     {printedLines{Metrics: found}, processEnd{Code: 137, Signal: "SIGKILL", Problem: "has not ended"}, report.Report{Kind: Kind, State: report.Failed, Reason: "has not ended", Metrics: []report.Metric{}}},
		"a line that is none":               {printedLines{Metrics: found, Fault: "line 2"}, processEnd{Code: 137, Problem: "line 2"}, report.Report{Kind: Kind, State: report.Failed, Reason: "line 2", Metrics: []report.Metric{}}},
		"ok without a metric":               {printedLines{State: report.OK}, processEnd{}, report.Report{Kind: Kind, State: report.Failed, Reason: "says that all is there, and prints no metric", Metrics: []report.Metric{}}},
		"empty with a metric":               {printedLines{Metrics: found, State: report.Empty, Reason: "r"}, processEnd{}, report.Report{Kind: Kind, State: report.Failed, Reason: "says that there are no metrics, and prints some", Metrics: []report.Metric{}}},
	} {
		if diff := cmp.Diff(tt.want, conclude(tt.lines, tt.end)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheLastLinesOfStandardErrorAreQuoted(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"b", "c", "d\ufffd"}, lastLines("a\nb\n \n\tc\r\nd\xff")); diff != "" {
		t.Error(diff)
	}
}
