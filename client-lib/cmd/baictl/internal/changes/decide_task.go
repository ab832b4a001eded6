package changes

import (
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
)

// Occurrence is the part of a change that only a platform knows.
type Occurrence struct {
	Run           string   `json:"run"` // ID of the first run of the new level
	VersionBefore string   `json:"version_before"`
	VersionAfter  string   `json:"version_after"`
	Subjects      []string `json:"subjects"` // what else differs between the runs before and after it
}

// OfTask returns the answer for each series of a task. Index and Range count points.
func OfTask(h *baiv1.QueryHistoryResponse) []SeriesReport {
	all := make([]SeriesReport, 0, len(h.GetSeries()))
	for _, s := range h.GetSeries() {
		r := SeriesReport{
			Series: series.Name(s), Notes: append([]string{}, s.GetNotes()...),
			Changes: make([]Change, 0, len(s.GetChanges())),
		}
		if levels := s.GetLevels(); len(levels) > 0 {
			r.Points = int(levels[len(levels)-1].GetLast()) + 1
		}
		for _, c := range s.GetChanges() {
			r.Changes = append(r.Changes, taskChange(c))
		}
		all = append(all, r)
	}
	return all
}

func taskChange(c *baiv1.HistoryChange) Change {
	out := Change{
		Index: int(c.GetIndex()), Time: c.GetTime().AsTime().Format(time.RFC3339Nano), Kind: changepoint.Kind(c.GetKind()),
		Direction: c.GetDirection(), Verdict: c.GetVerdict(), Before: number(c.GetBefore()), After: number(c.GetAfter()),
		Magnitude: number(c.GetMagnitude()),
		P:         number(c.GetP()), Range: [2]int{int(c.GetRangeFirst()), int(c.GetRangeLast())},
		Occurrence: &Occurrence{
			Run: c.GetRunId(), VersionBefore: c.GetVersionBefore(), VersionAfter: c.GetVersionAfter(),
			Subjects: append([]string{}, c.GetSubjects()...),
		},
	}
	if out.Magnitude == nil {
		out.Difference = &Difference{Shift: number(c.GetShift())}
		if i := c.GetShiftInterval(); i != nil {
			out.ShiftInterval, out.Level = interval(judge.Interval{Low: i.GetLow(), High: i.GetHigh()}), number(i.GetLevel())
		}
		return out
	}
	if i := c.GetInterval(); i != nil {
		out.Interval, out.Level = interval(judge.Interval{Low: i.GetLow(), High: i.GetHigh()}), number(i.GetLevel())
	}
	return out
}

// TaskTable is the changes of a task for people, a line for each. The column of versions is
// left out if there are none.
func TaskTable(h *baiv1.QueryHistoryResponse, wide bool) printer.Table {
	t := printer.Table{Columns: taskColumns(wide)}
	versions := false
	for i, r := range OfTask(h) {
		for j, c := range r.Changes {
			found := h.GetSeries()[i].GetChanges()[j]
			between := series.Versions(found)
			if !wide {
				between = found.GetVersionAfter()
			}
			versions = versions || between != ""
			t.Rows = append(t.Rows, taskRow(r.Series, c, between, wide))
		}
	}
	if !versions {
		return without(t, "VERSION")
	}
	return t
}

func taskColumns(wide bool) []printer.Column {
	columns := tableColumns(wide, false)
	columns[1].Title = "POINT"
	columns = slices.Insert(columns, 3, printer.Column{Title: "VERSION", Flex: true})
	if wide {
		return append(columns, printer.Column{Title: "RUN"}, printer.Column{Title: "ALSO DIFFERENT"})
	}
	return slices.Delete(columns, 1, 2)
}

func taskRow(name string, c Change, versions string, wide bool) []string {
	row := slices.Insert(tableRow(name, c, wide, false), 3, versions)
	if wide {
		return append(row, c.Run, strings.Join(c.Subjects, ", "))
	}
	return slices.Delete(row, 1, 2)
}

// without returns a table without the column of a title.
func without(t printer.Table, title string) printer.Table {
	at := slices.IndexFunc(t.Columns, func(c printer.Column) bool { return c.Title == title })
	t.Columns = slices.Delete(t.Columns, at, at+1)
	for i, row := range t.Rows {
		t.Rows[i] = slices.Delete(row, at, at+1)
	}
	return t
}

// TaskCSV is the columns of CSV, and run, version_before, version_after and subjects.
func TaskCSV(all []SeriesReport) [][]string {
	rows := CSV(all)
	rows[0] = append(rows[0], "run", "version_before", "version_after", "subjects")
	i := 0
	for _, r := range all {
		for _, c := range r.Changes {
			i++
			rows[i] = append(rows[i], c.Run, c.VersionBefore, c.VersionAfter, strings.Join(c.Subjects, " "))
		}
	}
	return rows
}
