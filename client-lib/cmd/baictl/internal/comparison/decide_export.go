package comparison

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/internal/benchstat"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// CSV is the series as a header and a line for each. A value that a series does not have is
// empty.
func CSV(c *baiv1.CompareRunsResponse) [][]string {
	rows := [][]string{{
		"metric", "unit", "labels", "direction", "cell", "verdict", "reason", "old_n", "old_median", "old_low", "old_high",
		"new_n", "new_median", "new_low", "new_high", "change", "low", "high", "relative", "test", "p", "adjusted_p", "needed", "shows",
	}}
	for _, s := range c.GetSeries() {
		row := []string{
			s.GetMetric(), s.GetUnit(), printer.Labels(s.GetLabels()), s.GetDirection(), s.GetCell(),
			s.GetVerdict(), s.GetReason(),
		}
		row = append(append(row, sideColumns(s.GetOld())...), sideColumns(s.GetNew())...)
		change, relative := []string{"", "", ""}, ""
		if d := s.GetChange(); d != nil {
			change = []string{
				printer.Exact(d.GetValue()), printer.Exact(d.GetInterval().GetLow()),
				printer.Exact(d.GetInterval().GetHigh()),
			}
			relative = strconv.FormatBool(d.GetRelative())
		}
		row = append(append(row, change...), relative, s.GetTest(), probability(s.GetP()), probability(s.GetAdjustedP()))
		rows = append(rows, append(row, neededColumns(s)...))
	}
	return rows
}

func sideColumns(v *baiv1.SideValues) []string {
	columns := []string{strconv.Itoa(int(v.GetN())), "", "", ""}
	if v.GetN() > 0 {
		columns[1] = printer.Exact(v.GetMedian())
	}
	if i := v.GetInterval(); i != nil {
		columns[2], columns[3] = printer.Exact(i.GetLow()), printer.Exact(i.GetHigh())
	}
	return columns
}

// probability is a probability, or nothing for NaN: the test has none.
func probability(p float64) string {
	if math.IsNaN(p) {
		return ""
	}
	return printer.Exact(p)
}

// neededColumns are how many runs would show which change, if that is known.
func neededColumns(s *baiv1.SeriesComparison) []string {
	if s.GetNeeded() == 0 {
		return []string{"", ""}
	}
	return []string{strconv.Itoa(int(s.GetNeeded())), printer.Exact(s.GetShows())}
}

// Markdown is the comparison as a comment of a review.
func Markdown(c *baiv1.CompareRunsResponse) string {
	t := Table(c, true)
	for _, row := range t.Rows {
		for i := range row {
			row[i] = escape(row[i])
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "**%s**, %s compared with %s\n\n%s", escape(Summary(c)), code(c.GetNew().GetOperand()),
		code(c.GetOld().GetOperand()), t.Markdown())
	for i, s := range Sentences(c) {
		if i == 0 {
			text.WriteString("\n")
		}
		text.WriteString("* " + escape(s) + "\n")
	}
	return text.String()
}

// code is a text as code of Markdown.
func code(text string) string { return "`" + strings.ReplaceAll(printer.Clean(text), "`", "'") + "`" }

// escape is a text that is none of Markdown's signs.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`, "@", "@\u200b").Replace(text)
}

// Benchstat is the values of both sides as texts that benchstat reads: a benchmark for each
// series, with a line for each run.
func Benchstat(c *baiv1.CompareRunsResponse) []benchstat.Input {
	var base, other strings.Builder
	for _, s := range c.GetSeries() {
		writeGo(&base, s, s.GetOld().GetValues())
		writeGo(&other, s, s.GetNew().GetValues())
	}
	return []benchstat.Input{
		{Name: label(c.GetOld()) + "=old", Text: strings.NewReader(base.String())},
		{Name: label(c.GetNew()) + "=new", Text: strings.NewReader(other.String())},
	}
}

// label is the head of a column.
func label(s *baiv1.ComparedSide) string {
	return strings.ReplaceAll(printer.Clean(s.GetOperand()), "=", "_")
}

// writeGo writes the values of a series as lines of Go's benchmark format, whose names and units
// have no blanks. Values that do not count are left out.
func writeGo(w *strings.Builder, s *baiv1.SeriesComparison, values []float64) {
	name, unit := s.GetMetric(), "value"
	if labels := printer.Labels(s.GetLabels()); labels != "" {
		name += "/" + labels
	}
	if s.GetCell() != "" {
		name = s.GetCell() + "/" + name
	}
	if s.GetUnit() != "" {
		unit = strings.Join(strings.Fields(s.GetUnit()), "_")
	}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		fmt.Fprintf(w, "BenchmarkRun/%s 1 %s %s\n", strings.Join(strings.Fields(printer.Clean(name)), "_"), printer.Exact(v), unit)
	}
}

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Suite    suite    `xml:"testsuite"`
}

type suite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Cases    []testCase `xml:"testcase"`
	Out      string     `xml:"system-out,omitempty"`
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Skipped *message `xml:"skipped"`
	Failure *message `xml:"failure"`
}

type message struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
}

// JUnit is the comparison as a test suite in JUnit's XML: a test case for each series, which has
// failed if the series got worse, and is skipped if that is unclear.
func JUnit(c *baiv1.CompareRunsResponse) (string, error) {
	name := printer.Clean(c.GetNew().GetOperand() + " against " + c.GetOld().GetOperand())
	s := suite{Name: name, Tests: len(c.GetSeries()), Out: strings.Join(Sentences(c), "\n")}
	for _, one := range c.GetSeries() {
		t := testCase{Name: Name(one), Class: name}
		switch one.GetVerdict() {
		case Worse:
			t.Failure = &message{Type: Worse, Message: change(one.GetChange()) + ", p=" + p(one, one.GetAdjustedP())}
			s.Failures++
		case Unclear:
			t.Skipped = &message{Message: reason(one)}
			s.Skipped++
		}
		s.Cases = append(s.Cases, t)
	}
	b, err := xml.MarshalIndent(suites{Tests: s.Tests, Failures: s.Failures, Suite: s}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write JUnit's XML: %w", err)
	}
	return xml.Header + string(b) + "\n", nil
}
