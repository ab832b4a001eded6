package results

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// printSummary shows the platform's summaries of a run.
func printSummary(ctx context.Context, s *session.Session, q bai.Query) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	res, err := c.Summaries(ctx, q.Run)
	if err != nil {
		return err
	}
	if len(q.Metrics) > 0 {
		res.Summaries = slices.DeleteFunc(res.GetSummaries(),
			func(m *baiv1.MetricSummary) bool { return !slices.Contains(q.Metrics, m.GetMetric()) })
	}
	switch {
	case s.Structured():
		return s.Print(printer.JSON(res))
	case s.Output == "csv":
		return summaryCSV(s, res)
	case s.Output == "name":
		return summaryNames(s, res)
	}
	if note := remark(res); note != "" {
		s.Screen.Note("baictl: " + note)
	}
	for _, note := range res.GetNotes() {
		s.Screen.Note("baictl: " + printer.Clean(note))
	}
	for _, u := range res.GetUnknown() {
		s.Screen.Note("baictl: " + printer.Clean(u.GetMetric()+" is not known: "+u.GetReason()))
	}
	if len(res.GetSummaries()) == 0 {
		return nil
	}
	return s.PrintTable(summaries(res.GetSummaries(), s.Output == "wide"))
}

// remark is the note that a reader of summaries needs.
func remark(res *baiv1.GetSummariesResponse) string {
	run := printer.Clean(res.GetRunId())
	switch {
	case res.GetPending():
		return "run " + run + " has no summary yet: it is not over, or samples are missing; leave out --summary to see the samples so far"
	case !res.GetComplete():
		return "samples of run " + run + " are missing: this is a summary of the others"
	case len(res.GetSummaries()) == 0:
		return "run " + run + " has no samples"
	}
	return ""
}

func summaryNames(s *session.Session, res *baiv1.GetSummariesResponse) error {
	var names []string
	for _, m := range res.GetSummaries() {
		names = append(names, m.GetMetric())
	}
	for _, name := range slices.Compact(names) {
		if err := session.WriteText(s.Env.Out, printer.Clean(name)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// summaries has columns of labels and of directions where there are any.
func summaries(all []*baiv1.MetricSummary, wide bool) printer.Table {
	labels := slices.ContainsFunc(all, func(m *baiv1.MetricSummary) bool { return len(m.GetLabels()) > 0 })
	t := printer.Table{Columns: []printer.Column{{Title: "METRIC", Flex: true}, {Title: "UNIT", Flex: true}}}
	if labels {
		t.Columns = append(t.Columns, printer.Column{Title: "LABELS", Flex: true})
	}
	better := slices.ContainsFunc(all, func(m *baiv1.MetricSummary) bool { return m.GetDirection() != "" })
	if better {
		t.Columns = append(t.Columns, printer.Column{Title: "BETTER"})
	}
	titles := []string{"N", "MEDIAN", "FROM", "TO", "MIN", "MAX", "P90", "P95", "P99"}
	if wide {
		titles = append(titles, "LEVEL", "MEAN", "SD", "FIRST", "LAST", "NAN")
	}
	for _, title := range titles {
		t.Columns = append(t.Columns, printer.Column{Title: title, Right: true, Optional: strings.HasPrefix(title, "P")})
	}
	for _, m := range all {
		row := []string{m.GetMetric(), m.GetUnit()}
		if labels {
			row = append(row, printer.Labels(m.GetLabels()))
		}
		if better {
			row = append(row, printer.Clean(m.GetDirection()))
		}
		from, to, level := "-", "-", "-"
		if i := m.GetInterval(); i != nil {
			from, to, level = printer.Number(i.GetLow()), printer.Number(i.GetHigh()), printer.Level(i)
		}
		row = append(row, fmt.Sprint(m.GetN()), printer.Number(m.GetMedian()), from, to)
		row = append(row, numbers(printer.Number, m.GetMin(), m.GetMax(), m.GetP90(), m.GetP95(), m.GetP99())...)
		if wide {
			row = append(append(row, level), numbers(printer.Number, m.GetMean(), m.GetSd(), m.GetFirst(), m.GetLast())...)
			row = append(row, fmt.Sprint(m.GetNotNumbers()))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func numbers(form func(float64) string, values ...float64) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = form(v)
	}
	return texts
}

func summaryCSV(s *session.Session, res *baiv1.GetSummariesResponse) error {
	w := csv.NewWriter(s.Env.Out)
	rows := [][]string{{
		"metric", "unit", "labels", "n", "not_numbers", "median", "low", "high", "level", "min", "max", "p90", "p95", "p99",
		"mean", "sd", "first", "last", "run", "direction",
	}}
	for _, m := range res.GetSummaries() {
		row := []string{
			m.GetMetric(), m.GetUnit(), printer.Labels(m.GetLabels()), fmt.Sprint(m.GetN()), fmt.Sprint(m.GetNotNumbers()),
			printer.Exact(m.GetMedian()),
		}
		if i := m.GetInterval(); i != nil {
			row = append(row, numbers(printer.Exact, i.GetLow(), i.GetHigh(), i.GetLevel())...)
		} else {
			row = append(row, "", "", "")
		}
		row = append(row, numbers(printer.Exact, m.GetMin(), m.GetMax(), m.GetP90(), m.GetP95(), m.GetP99(), m.GetMean(), m.GetSd(),
			m.GetFirst(), m.GetLast())...)
		rows = append(rows, append(row, res.GetRunId(), m.GetDirection()))
	}
	if err := w.WriteAll(rows); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
