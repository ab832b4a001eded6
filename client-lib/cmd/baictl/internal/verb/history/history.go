// Package history has the verbs for the runs of a task over time.
package history

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// History is the verb history.
func History(s *session.Session) *cobra.Command {
	var flags session.SeriesSelector
	var metrics []string
	cmd := &cobra.Command{
		Use:         "history [METRIC...] --task TASK",
		Short:       "Show metrics over the runs of a task, and where they changed",
		Annotations: session.ExtraFormats("csv", "svg"),
		Long: `Shows the values of metrics over the runs of a task, the oldest first, and below
them the levels and the changes between these. docs/statistics.md says how
changes are found.

A value is the median of a run's samples, with its 95 % interval. Runs are in
the order of their firings or, without one, of the label version_time, a time in
RFC 3339, or else of their submission; the version is the label version. Runs
that did not succeed, warm-ups, and runs without a summary do not count.

The column CHANGE marks the first run of a new level: regression or improvement
or, if the metric has no direction, up or down. Where the machines differ from
those of the run before, it has machine, and no test is made. With -o wide:
sizes of changes, numbers of points and samples, machines, nodes, descriptors,
images and IDs.

A metric with several units, labels or cells of a set has a table for each.
Metrics system.* are shown if they are named.

With -o json or yaml: the message of the API, QueryHistoryResponse. With -o csv:
a row for each point, with the columns metric, unit, labels, cell, direction,
point, time, run, name, version, value, low, high, level, samples, complete,
kind, verdict, magnitude, p, machine, nodes, image, descriptor_sha256; level is
the confidence of the interval, and kind to p are those of a change. Both have
metrics system.*, too. With -o name: the metrics.

With -o svg: a plot of one series, with a dot for each run, a line for each
level, and a dashed line for each change.`,
		Example: `  baictl history rate --task checksums
  baictl history --task checksums --since 30d --label branch=main
  baictl history rate --task checksums -o svg > rate.svg`,
		Args: session.Arguments(0, -1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd, s, &flags, append(slices.Clone(args), metrics...))
		},
	}
	cmd.ValidArgsFunction = flags.Metrics(s)
	flags.TaskFlags(cmd, s)
	flags.RunFlags(cmd)
	cmd.Flags().StringArrayVar(&metrics, "metric", nil, "the same as METRIC")
	_ = cmd.RegisterFlagCompletionFunc("metric", flags.Metrics(s)) // fails for flags that do not exist
	return cmd
}

func run(cmd *cobra.Command, s *session.Session, flags *session.SeriesSelector, metrics []string) error {
	req, err := flags.Query(cmd, s, metrics, time.Now())
	if err != nil {
		return err
	}
	req.WithoutPoints = s.Output == "name"
	c, err := s.Client()
	if err != nil {
		return err
	}
	got, err := c.History(cmd.Context(), req)
	if err != nil {
		return err
	}
	p := historyPrinter{Session: s, got: got, task: flags.Task, metrics: metrics}
	switch {
	case s.Structured():
		return s.Print(printer.JSON(got))
	case s.Output == "csv":
		return writeCSV(s, series.CSV(series.Histories(got)))
	case s.Output == "svg":
		return p.svg(cmd)
	case s.Output == "name":
		return printNames(s, got.GetSeries())
	}
	return p.tables()
}

func writeCSV(s *session.Session, rows [][]string) error {
	if err := csv.NewWriter(s.Env.Out).WriteAll(rows); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func printNames[S series.Identity](s *session.Session, all []S) error {
	for _, name := range series.MetricNames(all) {
		if err := session.WriteText(s.Env.Out, printer.Clean(name)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// historyPrinter prints the history of a task.
type historyPrinter struct {
	*session.Session

	got     *baiv1.QueryHistoryResponse
	task    string
	metrics []string // that the user named
}

// shown returns the series that are shown to people, and the metrics that are left out.
func (p historyPrinter) shown() (all []series.History, system []string) {
	if all = series.Histories(p.got); len(p.metrics) == 0 {
		all, system = series.WithoutSystem(all)
	}
	return all, system
}

// svg prints a plot of the only series.
func (p historyPrinter) svg(cmd *cobra.Command) error {
	all, _ := p.shown()
	if len(all) == 0 {
		return &bai.NotFoundError{What: "metric", Message: p.reasonForNone()}
	}
	if len(all) > 1 {
		return session.UsageErrorf(cmd,
			"-o svg shows one series, and the task has %s: name its METRIC, and choose labels and cells by --label",
			strings.Join(firstFew(series.Names(all)), "; "))
	}
	return session.WriteText(p.Env.Out, all[0].Chart().SVG())
}

// maxNames is how many series a message names.
const maxNames = 5

func firstFew(names []string) []string {
	if more := len(names) - maxNames; more > 0 {
		return append(slices.Clone(names[:maxNames]), fmt.Sprintf("%d more", more))
	}
	return names
}

// reasonForNone is the reason why there is nothing to show.
func (p historyPrinter) reasonForNone() string {
	if len(p.metrics) > 0 {
		return fmt.Sprintf("no run of task %s has a value of metric %s", printer.Clean(p.task),
			printer.Clean(strings.Join(p.metrics, " or ")))
	}
	return "no run of task " + printer.Clean(p.task) + " has results yet"
}

// tables prints a table for each series, with sentences below it.
func (p historyPrinter) tables() error {
	all, system := p.shown()
	notes := series.RunNotes(p.got)
	if len(system) > 0 {
		notes = append(notes, "left out: "+strings.Join(system, ", ")+" (see --metric)")
	}
	if len(all) == 0 {
		p.Screen.Note("baictl: " + p.reasonForNone())
	}
	for _, h := range all {
		if err := p.table(h); err != nil {
			return err
		}
	}
	return session.WriteText(p.Env.Out, sentences(notes))
}

// table prints one series, and an empty line below it.
func (p historyPrinter) table(h series.History) error {
	t := h.Table(p.Output == "wide")
	t.Paint = p.paint(t)
	if err := session.WriteText(p.Env.Out, printer.Clean(h.Title())+"\n"); err != nil {
		return err
	}
	if err := p.PrintTable(t); err != nil {
		return err
	}
	var text strings.Builder
	for _, line := range h.Sentences() {
		text.WriteString(printer.Hang(fmt.Sprintf("%-7s", line[0]), printer.Clean(line[1]), printer.Page) + "\n")
	}
	return session.WriteText(p.Env.Out, text.String()+sentences(h.Notes())+"\n")
}

// paint returns the colours of changes.
func (p historyPrinter) paint(t printer.Table) func(row, column int, text string) string {
	return func(row, column int, text string) string {
		switch {
		case t.Columns[column].Title != series.ChangeTitle:
			return text
		case strings.HasPrefix(t.Rows[row][column], "regression"):
			return p.Screen.Paint(screen.Bad, text)
		case strings.HasPrefix(t.Rows[row][column], "improvement"):
			return p.Screen.Paint(screen.Good, text)
		}
		return text
	}
}

// sentences are texts on a page, each on lines of its own, without empty ones.
func sentences(all []string) string {
	var text strings.Builder
	for _, one := range all {
		if one == "" {
			continue
		}
		text.WriteString(strings.Join(printer.Wrap(printer.Clean(one), printer.Page), "\n") + "\n")
	}
	return text.String()
}
