package series

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// ChangeTitle is the title of the column that marks changes.
const ChangeTitle = "CHANGE"

// column is a column of a table with its values.
type column struct {
	printer.Column

	value  func(point int32) string
	needed bool // also where each value is empty
}

// Table is the points of a series for people, the oldest first. Columns without a value are
// left out.
func (h History) Table(wide bool) printer.Table {
	columns := h.narrowColumns()
	if wide {
		columns = h.wideColumns()
	}
	t := printer.Table{Rows: make([][]string, len(h.GetPoints()))}
	for _, c := range columns {
		values, empty := make([]string, len(t.Rows)), true
		for i := range values {
			values[i] = c.value(int32(i)) //nolint:gosec // a message has fewer points
			empty = empty && values[i] == ""
		}
		if empty && !c.needed {
			continue
		}
		t.Columns = append(t.Columns, c.Column)
		for i := range t.Rows {
			t.Rows[i] = append(t.Rows[i], values[i])
		}
	}
	return t
}

func (h History) narrowColumns() []column {
	all := h.commonColumns(outcome)
	all[0].value = func(p int32) string { return shortTime(h.run(p).GetTime()) }
	if h.isDaily() {
		all[0].value = func(p int32) string { return date(h.run(p).GetTime()) }
	}
	return all
}

// isDaily reports whether no two consecutive points are of one day.
func (h History) isDaily() bool {
	for i := 1; i < len(h.GetPoints()); i++ {
		if date(h.run(int32(i-1)).GetTime()) == date(h.run(int32(i)).GetTime()) { //nolint:gosec // a message has fewer points
			return false
		}
	}
	return true
}

// commonColumns are those of both tables. The text marks changes.
func (h History) commonColumns(text func(*baiv1.HistoryChange) string) []column {
	changes := h.changesAt()
	return []column{
		{printer.Column{Title: "TIME"}, func(p int32) string { return printer.Time(h.run(p).GetTime()) }, true},
		{printer.Column{Title: "RUN", Flex: true}, func(p int32) string { return runName(h.run(p)) }, true},
		{printer.Column{Title: "VERSION", Flex: true}, func(p int32) string { return h.run(p).GetVersion() }, false},
		{printer.Column{Title: "VALUE", Right: true}, func(p int32) string { return printer.Number(h.GetPoints()[p].GetValue()) }, true},
		{
			printer.Column{Title: "INTERVAL"},
			func(p int32) string { return intervalText(h.GetPoints()[p].GetInterval(), printer.Number) },
			false,
		},
		{printer.Column{Title: ChangeTitle}, func(p int32) string { return mark(changes[p], text) }, false},
	}
}

func (h History) wideColumns() []column {
	return slices.Concat(
		[]column{{printer.Column{Title: "POINT", Right: true}, func(p int32) string { return strconv.Itoa(int(p)) }, true}},
		h.commonColumns(func(c *baiv1.HistoryChange) string { return outcome(c) + " " + changeSize(c, false) }),
		[]column{
			{
				printer.Column{Title: "SAMPLES", Right: true},
				func(p int32) string { return printer.Number(float64(h.GetPoints()[p].GetSamples())) }, true,
			},
			{printer.Column{Title: "INCOMPLETE"}, h.incompleteText, false},
			{printer.Column{Title: "MACHINE"}, func(p int32) string { return short(h.run(p).GetMachine()) }, false},
			{printer.Column{Title: "NODES"}, func(p int32) string { return strings.Join(h.run(p).GetNodes(), ",") }, false},
			{printer.Column{Title: "DESCRIPTOR"}, func(p int32) string { return short(h.run(p).GetDescriptorSha256()) }, false},
			{printer.Column{Title: "IMAGE"}, func(p int32) string { return h.run(p).GetImage() }, false},
			{printer.Column{Title: "RUN ID"}, func(p int32) string { return h.run(p).GetRunId() }, true},
		},
	)
}

func (h History) incompleteText(point int32) string {
	if h.run(point).GetComplete() {
		return ""
	}
	return "incomplete"
}

// short is the beginning of a digest.
func short(digest string) string { return digest[:min(12, len(digest))] }

// shortTime is a time to the minute, in this machine's zone; empty for none.
func shortTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format("2006-01-02 15:04")
}

func date(t *timestamppb.Timestamp) string { return t.AsTime().Local().Format("2006-01-02") }

// runName is the name of a run, or else its ID.
func runName(r *baiv1.HistoryRun) string { return cmp.Or(r.GetName(), r.GetRunId()) }

// intervalText is "[101, 102]", empty for none.
func intervalText(i *baiv1.Interval, form func(float64) string) string {
	if i == nil || math.IsNaN(i.GetLow()) || math.IsNaN(i.GetHigh()) {
		return ""
	}
	return "[" + form(i.GetLow()) + ", " + form(i.GetHigh()) + "]"
}

// mark is the text of a change, empty for none.
func mark(c *baiv1.HistoryChange, text func(*baiv1.HistoryChange) string) string {
	if c == nil {
		return ""
	}
	return text(c)
}

// outcome is the verdict on a change, or its direction where nothing says which is better.
func outcome(c *baiv1.HistoryChange) string {
	switch {
	case c.GetKind() == Environment:
		return "machine"
	case c.GetVerdict() == "change":
		return c.GetDirection()
	}
	return c.GetVerdict()
}

// changeSize is the magnitude of a change, or the difference where there is no magnitude:
// "-6.6 % [-8.3, -4.9]".
func changeSize(c *baiv1.HistoryChange, ends bool) string {
	m := c.GetMagnitude()
	if math.IsNaN(m) || math.IsInf(m, 0) {
		return printer.Signed(c.GetAfter() - c.GetBefore())
	}
	form := printer.PercentForm(m)
	text := form(m) + " %"
	if interval := intervalText(c.GetInterval(), form); ends && interval != "" {
		text += " " + interval
	}
	return text
}

// Sentences returns texts about the levels and the changes between them, in order of time, each
// with the word that it begins with.
func (h History) Sentences() [][2]string {
	var all [][2]string
	changes := h.changesAt()
	for _, l := range h.GetLevels() {
		if c := changes[l.GetFirst()]; c != nil {
			all = append(all, [2]string{"change", h.changeSentence(c)})
		}
		all = append(all, [2]string{"level", h.levelSentence(l)})
	}
	return all
}

func (h History) levelSentence(l *baiv1.HistoryLevel) string {
	text := strings.TrimSuffix(printer.Number(l.GetMedian())+" "+h.GetUnit(), " ")
	first, last := h.run(l.GetFirst()), h.run(l.GetLast())
	if l.GetFirst() == l.GetLast() {
		return fmt.Sprintf("%s: run %s (%s)", text, runName(first), date(first.GetTime()))
	}
	dates := date(first.GetTime())
	if end := date(last.GetTime()); end != dates {
		dates += " to " + end
	}
	return fmt.Sprintf("%s: %d runs, %s to %s (%s)", text, l.GetLast()-l.GetFirst()+1, runName(first), runName(last), dates)
}

func (h History) changeSentence(c *baiv1.HistoryChange) string {
	run := h.run(c.GetIndex())
	if c.GetKind() == Environment {
		return fmt.Sprintf("other machines since run %s (%s): %s, not tested", runName(run), date(run.GetTime()), changeSize(c, true)) +
			h.differences(c)
	}
	text := fmt.Sprintf("%s since run %s (%s): %s, p=%.2g", outcome(c), runName(run), date(run.GetTime()), changeSize(c, true), c.GetP())
	if c.GetKind() == "drift" {
		text += ", gradual"
	}
	if first, last := h.run(c.GetRangeFirst()), h.run(c.GetRangeLast()); c.GetRangeFirst() != c.GetRangeLast() {
		text += fmt.Sprintf("; it may be any run from %s to %s", runName(first), runName(last))
	}
	return text + h.differences(c)
}

// differences says what differs at a change: "; version v1.2 to v1.3; image and descriptor
// differ".
func (h History) differences(c *baiv1.HistoryChange) string {
	text := ""
	if versions := Versions(c); versions != "" {
		text = "; version " + versions
	}
	subjects := slices.DeleteFunc(slices.Clone(c.GetSubjects()),
		func(s string) bool { return c.GetKind() == Environment && s == "machine" })
	switch len(subjects) {
	case 0:
		return text
	case 1:
		return text + "; " + subjects[0] + " differs, too"
	}
	last := len(subjects) - 1
	return text + "; " + strings.Join(subjects[:last], ", ") + " and " + subjects[last] + " differ, too"
}

// Versions is "v1.2 to v1.3", "v1.3" where both are equal, or empty where there are none.
func Versions(c *baiv1.HistoryChange) string {
	before, after := c.GetVersionBefore(), c.GetVersionAfter()
	if before == after {
		return after
	}
	return cmp.Or(before, "none") + " to " + cmp.Or(after, "none")
}

// Notes are sentences about the whole series.
func (h History) Notes() []string {
	notes := slices.Clone(h.GetNotes())
	incomplete := 0
	for i := range h.GetPoints() {
		if !h.run(int32(i)).GetComplete() { //nolint:gosec // a message has fewer points
			incomplete++
		}
	}
	if incomplete > 0 {
		notes = append(notes, fmt.Sprintf("%s without all samples (see -o wide)", printer.Plural(incomplete, "point")))
	}
	return notes
}

// RunNotes are sentences about the runs of a history.
func RunNotes(all *baiv1.QueryHistoryResponse) []string {
	var notes []string
	if n := int(all.GetExcluded()); n > 0 {
		notes = append(notes, fmt.Sprintf("%s left out: a run counts once it has succeeded and its samples are summarised; warm-ups do not count", printer.Plural(n, "run")))
	}
	if all.GetTruncated() {
		notes = append(notes, "there are older runs (see --limit and --until)")
	}
	return notes
}
