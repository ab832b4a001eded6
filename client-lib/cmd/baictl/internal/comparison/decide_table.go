package comparison

import (
	"fmt"
	"math"
	"strconv"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Verdicts on series.
const (
	Worse   = "worse"
	Better  = "better"
	Same    = "same"
	Unclear = "unclear"
	Changed = "changed"
)

// VerdictTitle is the title of a table's column of verdicts.
const VerdictTitle = "VERDICT"

// Table is the series for people, a line for each.
func Table(c *baiv1.CompareRunsResponse, wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "METRIC", Flex: true},
		{Title: "OLD", Right: true},
		{Title: "NEW", Right: true},
		{Title: "CHANGE"},
		{Title: VerdictTitle},
		{Title: "P", Right: true, Optional: !wide},
		{Title: "RUNS", Optional: !wide},
	}}
	if wide {
		t.Columns = append(t.Columns, printer.Column{Title: "ADJUSTED P", Right: true}, printer.Column{Title: "TEST"})
	}
	for _, s := range c.GetSeries() {
		row := []string{
			Name(s), values(s.GetOld(), wide), values(s.GetNew(), wide), change(s.GetChange()), s.GetVerdict(),
			p(s, s.GetP()), fmt.Sprintf("%d+%d", s.GetOld().GetN(), s.GetNew().GetN()),
		}
		if wide {
			row = append(row, p(s, s.GetAdjustedP()), s.GetTest())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// values is the median of a side; wide, with its interval.
func values(v *baiv1.SideValues, wide bool) string {
	if v.GetN() == 0 {
		return ""
	}
	text := printer.Number(v.GetMedian())
	if i := v.GetInterval(); wide && i != nil {
		text += fmt.Sprintf(" [%s, %s]", printer.Number(i.GetLow()), printer.Number(i.GetHigh()))
	}
	return text
}

// p is a probability, or nothing without a test.
func p(s *baiv1.SeriesComparison, of float64) string {
	switch {
	case s.GetTest() == "" || math.IsNaN(of):
		return ""
	case of < 0.001:
		return strconv.FormatFloat(of, 'e', 0, 64)
	}
	return strconv.FormatFloat(of, 'f', 3, 64)
}

// change is a difference with its interval: "+6.6 % [+4.9, +8.3]".
func change(d *baiv1.Difference) string {
	if d == nil {
		return ""
	}
	form, unit := printer.Signed, ""
	if d.GetRelative() {
		form, unit = printer.PercentForm(d.GetValue()), " %"
	}
	return fmt.Sprintf("%s%s [%s, %s]", form(d.GetValue()), unit, form(d.GetInterval().GetLow()), form(d.GetInterval().GetHigh()))
}
