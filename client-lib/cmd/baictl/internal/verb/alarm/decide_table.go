package alarm

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// incidentsTable has a line for each incident.
func incidentsTable(all []*baiv1.Incident, wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "STATE"},
		{Title: "SINCE"},
		{Title: "TASK", Flex: true},
		{Title: "METRIC", Flex: true},
		{Title: "CHANGE", Right: true},
		{Title: "CAUSE"},
		{Title: "ID"},
	}}
	if wide {
		t.Columns = append(t.Columns, printer.Column{Title: "WHEN"}, printer.Column{Title: "VERSION"}, printer.Column{Title: "SILENT"},
			printer.Column{Title: "BY"}, printer.Column{Title: "NAMESPACE"}, printer.Column{Title: "MESSAGE"})
	}
	for _, i := range all {
		row := []string{i.GetState(), date(since(i)), i.GetTask(), metric(i), change(i), i.GetCause(), shortID(i.GetId())}
		if wide {
			silent := ""
			if i.GetSilent() {
				silent = "silent"
			}
			row[1], row[6] = printer.Time(since(i)), i.GetId()
			row = append(row, i.GetRule().GetWhen(), i.GetFirstBad().GetVersion(), silent, i.GetAck().GetUser(),
				i.GetNamespace(), i.GetMessage())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// mutesTable has a line for each mute.
func mutesTable(all []*baiv1.Mute, wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{{Title: "ID"}, {Title: "MUTED", Flex: true}, {Title: "UNTIL"}, {Title: "BY"}}}
	if wide {
		t.Columns = append(t.Columns, printer.Column{Title: "CREATED"}, printer.Column{Title: "NAMESPACE"})
	}
	t.Columns = append(t.Columns, printer.Column{Title: "REASON", Flex: true, Wrap: true})
	for _, m := range all {
		row := []string{shortID(m.GetId()), subject(m), minute(m.GetUntil()), m.GetUser()}
		if wide {
			row[0], row[2] = m.GetId(), printer.Time(m.GetUntil())
			row = append(row, printer.Time(m.GetCreateTime()), m.GetNamespace())
		}
		t.Rows = append(t.Rows, append(row, m.GetReason()))
	}
	return t
}

// noticesTable has a line for each notice.
func noticesTable(all []*baiv1.Notice, wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "STATUS"},
		{Title: "AT"},
		{Title: "RECEIVER", Flex: true},
		{Title: "BECAME"},
		{Title: "INCIDENTS"},
	}}
	if wide {
		t.Columns = append(t.Columns, printer.Column{Title: "TRIES", Right: true}, printer.Column{Title: "RETRY"},
			printer.Column{Title: "ID"}, printer.Column{Title: "MESSAGE"})
	}
	t.Columns = append(t.Columns, printer.Column{Title: "ANSWER", Flex: true, Wrap: true})
	for _, n := range all {
		became := n.GetBecame()
		if n.GetTest() {
			became = "test"
		}
		row := []string{n.GetStatus(), minute(n.GetStatusTime()), n.GetReceiver(), became, incidents(n, shortID)}
		if wide {
			row[1], row[4] = printer.Time(n.GetStatusTime()), incidents(n, func(id string) string { return id })
			row = append(row, fmt.Sprint(n.GetAttempts()), printer.Time(n.GetRetryTime()), n.GetId(), n.GetMessage())
		}
		t.Rows = append(t.Rows, append(row, n.GetAnswer()))
	}
	return t
}

// incidents are the incidents of a notice, or the runs and sets that ended: the worst one, and how many more.
func incidents(n *baiv1.Notice, form func(string) string) string {
	ids := append(slices.Clone(n.GetIncidentIds()), n.GetEndedIds()...)
	if len(ids) == 0 {
		return ""
	}
	text := form(ids[0])
	if more := len(ids) - 1 + int(n.GetMore()); more > 0 {
		text += fmt.Sprintf(" +%d", more)
	}
	return text
}

// incidentsCSV is a header and a row for each incident.
func incidentsCSV(all []*baiv1.Incident) [][]string {
	rows := [][]string{{
		"id", "namespace", "task", "metric", "unit", "labels", "cell", "when", "state", "since", "opened", "kind",
		"direction", "before", "after",
		"magnitude", "low", "high", "level", "p", "limit", "cause", "last_good_run", "last_good_version", "first_bad_run",
		"first_bad_version", "silent",
		"acknowledged_by", "reason", "until", "message",
	}}
	for _, i := range all {
		row := []string{
			i.GetId(), i.GetNamespace(), i.GetTask(), i.GetMetric(), i.GetUnit(), printer.Labels(i.GetLabels()),
			i.GetCell(), i.GetRule().GetWhen(),
			i.GetState(), timeUTC(since(i)), timeUTC(i.GetOpenTime()), i.GetKind(), i.GetDirection(),
		}
		row = append(row, numbers(i)...)
		rows = append(rows, append(row, i.GetCause(), i.GetLastGood().GetRunId(), i.GetLastGood().GetVersion(), i.GetFirstBad().GetRunId(),
			i.GetFirstBad().GetVersion(), strconv.FormatBool(i.GetSilent()), i.GetAck().GetUser(), i.GetAck().GetReason(),
			timeUTC(i.GetAck().GetUntil()), i.GetMessage()))
	}
	return rows
}

// numbers are the columns before to limit. One that there is not is empty.
func numbers(i *baiv1.Incident) []string {
	exact := func(x float64, known bool) string {
		if !known || math.IsNaN(x) {
			return ""
		}
		return printer.Exact(x)
	}
	when := i.GetRule().GetWhen()
	valued := when != "failed" && when != "missing"
	iv := i.GetInterval()
	return []string{
		exact(i.GetBefore(), valued), exact(i.GetAfter(), valued), exact(i.GetMagnitude(), i.Magnitude != nil),
		exact(iv.GetLow(), iv != nil),
		exact(iv.GetHigh(), iv != nil), exact(iv.GetLevel(), iv != nil), exact(i.GetP(), i.P != nil),
		exact(i.GetRule().GetLimit(), when == "above" || when == "below" || when == "beyond"),
	}
}

func timeUTC(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

// mutesCSV is a header and a row for each mute.
func mutesCSV(all []*baiv1.Mute) [][]string {
	rows := [][]string{{"id", "namespace", "task", "labels", "user", "created", "until", "reason"}}
	for _, m := range all {
		rows = append(rows, []string{
			m.GetId(), m.GetNamespace(), m.GetTask(), printer.Labels(m.GetLabels()), m.GetUser(), timeUTC(m.GetCreateTime()),
			timeUTC(m.GetUntil()), m.GetReason(),
		})
	}
	return rows
}

// noticesCSV is a header and a row for each notice.
func noticesCSV(all []*baiv1.Notice) [][]string {
	rows := [][]string{{
		"id", "receiver", "namespace", "status", "status_time", "created", "retry", "became", "incidents", "more",
		"attempts", "test", "message", "answer",
	}}
	for _, n := range all {
		rows = append(rows, []string{
			n.GetId(), n.GetReceiver(), n.GetNamespace(), n.GetStatus(), timeUTC(n.GetStatusTime()),
			timeUTC(n.GetCreateTime()), timeUTC(n.GetRetryTime()),
			n.GetBecame(), strings.Join(n.GetIncidentIds(), " "), fmt.Sprint(n.GetMore()), fmt.Sprint(n.GetAttempts()),
			strconv.FormatBool(n.GetTest()),
			n.GetMessage(), n.GetAnswer(),
		})
	}
	return rows
}
