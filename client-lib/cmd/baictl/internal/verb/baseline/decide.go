package baseline

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// newest returns the newest revision, an empty one without any.
func newest(b *baiv1.Baseline) *baiv1.BaselineRevision {
	if len(b.GetRevisions()) == 0 {
		return &baiv1.BaselineRevision{}
	}
	return b.GetRevisions()[0]
}

// sentence is "baseline main is nightly-42: 1 run, revision 3".
func sentence(b *baiv1.Baseline) string {
	r := newest(b)
	return printer.Clean(fmt.Sprintf("baseline %s is %s: %s, revision %d", b.GetName(), r.GetOperand(),
		printer.Plural(r.GetRunCount(), "run"), r.GetRevision()))
}

// describe describes a baseline, a line for each field that is set, and one for each run.
func describe(b *baiv1.Baseline, width int) string {
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			text.WriteString(printer.Hang(fmt.Sprintf("%-12s ", name), printer.Clean(value), width) + "\n")
		}
	}
	r := newest(b)
	line("baseline", b.GetName())
	line("namespace", b.GetNamespace())
	line("set to", r.GetOperand())
	line("revision", fmt.Sprint(r.GetRevision()))
	line("by", r.GetOwner())
	line("at", printer.Time(r.GetCreateTime()))
	line("reason", r.GetReason())
	line("set", r.GetSetId())
	line("runs", fmt.Sprint(r.GetRunCount()))
	for _, id := range r.GetRunIds() {
		line("", id)
	}
	return text.String()
}

// table has a line for each baseline.
func table(all []*baiv1.Baseline, wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "NAME"},
		{Title: "SET TO", Flex: true},
		{Title: "RUNS", Right: true},
		{Title: "BY"},
		{Title: "AT"},
	}}
	if wide {
		t.Columns = append(t.Columns, printer.Column{Title: "REVISION", Right: true}, printer.Column{Title: "NAMESPACE"})
	}
	t.Columns = append(t.Columns, printer.Column{Title: "REASON", Flex: true, Wrap: true})
	for _, b := range all {
		r := newest(b)
		row := []string{b.GetName(), r.GetOperand(), fmt.Sprint(r.GetRunCount()), r.GetOwner(), at(r, wide)}
		if wide {
			row = append(row, fmt.Sprint(r.GetRevision()), b.GetNamespace())
		}
		t.Rows = append(t.Rows, append(row, r.GetReason()))
	}
	return t
}

// at is when a revision was made, to the minute or exactly.
func at(r *baiv1.BaselineRevision, exact bool) string {
	if exact || r.GetCreateTime() == nil {
		return printer.Time(r.GetCreateTime())
	}
	return r.GetCreateTime().AsTime().Local().Format("2006-01-02 15:04")
}

// revisions has a line for each revision.
func revisions(b *baiv1.Baseline) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "REVISION", Right: true},
		{Title: "SET TO", Flex: true},
		{Title: "RUNS", Right: true},
		{Title: "BY"},
		{Title: "AT"},
		{Title: "REASON", Flex: true, Wrap: true},
	}}
	for _, r := range b.GetRevisions() {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(r.GetRevision()), r.GetOperand(), fmt.Sprint(r.GetRunCount()), r.GetOwner(), at(r, false), r.GetReason(),
		})
	}
	return t
}
