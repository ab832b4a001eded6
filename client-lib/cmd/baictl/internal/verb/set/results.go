package set

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/parquet"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/result"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// resultFlags are the flags of set results.
type resultFlags struct {
	metrics []string
	by      []string
}

func results(s *session.Session) *cobra.Command {
	var flags resultFlags
	cmd := &cobra.Command{
		Use:         "results SET",
		Short:       "Show the medians of a set's metrics, cell by cell",
		Annotations: session.ExtraFormats("csv", "jsonl", "md", "junit", "svg", "parquet"),
		Long: `Shows for each metric the median of each cell, its 95 % interval and the number
of repetitions: "12.3 [11.9, 12.8] n=6". Repetitions that succeeded count,
warm-ups do not. Each repetition is one value, the median of its samples. If the
metric has a direction, the best cells are marked: the first one, and those that
cannot be told from it. docs/statistics.md has the formulas.

The metric run.duration is the time from the start of the benchmark's process to
the end of the run. Metrics system.* are shown if --metric names them.

With --by size,threads: a table of one metric with a line for each size, and for
each value of further parameters, and a column for each number of threads. With
--by size: the same without columns.

With -o md: the tables as Markdown. With -o json or yaml: {"setId", "results":
[{"cell", "cellId", "parameters": [{"name", "value"}], "metric", "unit",
"labels", "direction", "n", "excluded", "median", "interval": {"low", "high",
"level"}, "lacking", "values": [{"repetition", "value"}], "best", "skipped"}]};
values of parameters are TOML. With -o jsonl: one line for each of the results.
With -o csv: the columns set, cell, cell_id, metric, unit, labels, direction, n,
excluded, lacking, median, low, high, level, best, skipped, and then one for
each parameter, as parameter.NAME if NAME is among these. With -o parquet: the
same columns with types, to a file or a pipe, never to a terminal. All of these
have metrics system.*, too, except -o md. With -o name: the metrics.

With -o junit: a test suite in JUnit's XML, for continuous integration, with a
test case for each run. Failed runs are failures, canceled ones are skipped, and
the medians are properties of the suite.

With -o svg: a plot of one metric. With --by size,threads: medians and intervals
by size, with a line for each number of threads. Without --by it is drawn by the
parameters that vary. Values of size that are no numbers make bars.`,
		Example: `  baictl set results sizes
  baictl set results sizes --metric throughput --by size,threads
  baictl set results sizes -o csv
  baictl set results sizes --metric throughput --by size -o svg > plot.svg
  baictl set results sizes -o parquet > sizes.parquet`,
	}
	takeSet(s, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.validate(cmd, s); err != nil {
			return err
		}
		return printResults(cmd, s, args[0], flags)
	}
	cmd.Flags().StringArrayVar(&flags.metrics, "metric", nil, "only the metric with this `NAME`; may be repeated")
	cmd.Flags().StringSliceVar(&flags.by, "by", nil, "one metric by `PARAM[,PARAM]`: lines, and columns")
	return cmd
}

// validate refuses flags that have no effect.
func (f resultFlags) validate(cmd *cobra.Command, s *session.Session) error {
	switch {
	case len(f.by) > 2:
		return session.UsageErrorf(cmd, "--by takes one or two parameters, not %d", len(f.by))
	case len(f.by) == 2 && f.by[0] == f.by[1]:
		return session.UsageErrorf(cmd, "--by needs two different parameters")
	case s.Output == "parquet" && s.Screen.IsTerminal():
		return session.UsageErrorf(cmd, "-o parquet writes no text: send it to a file or a pipe")
	case len(f.by) > 0 && !slices.Contains([]string{"table", "wide", "md", "svg"}, s.Output):
		return session.UsageErrorf(cmd, "--by is for tables and plots (-o table, wide, md or svg)")
	}
	return nil
}

func printResults(cmd *cobra.Command, s *session.Session, name string, flags resultFlags) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	got, err := c.Set(cmd.Context(), name)
	if err != nil {
		return err
	}
	var cells []*baiv1.CellResult
	for cell, err := range c.SetResults(cmd.Context(), got.GetId(), flags.metrics...) {
		if err != nil {
			return err
		}
		cells = append(cells, cell)
	}
	all, err := result.ByMetric(cells)
	if err != nil {
		return err
	}
	if got.GetState() != baiv1.SetState_SET_STATE_FINISHED {
		s.Screen.Note(fmt.Sprintf("baictl: results so far: %s", printer.Set(got)))
	}
	p := resultPrinter{Session: s, set: got, cells: cells}
	switch {
	case s.Structured():
		return p.object(all)
	case s.Output == "jsonl":
		return p.lines(all)
	case s.Output == "csv":
		return p.csv(all)
	case s.Output == "name":
		return p.names(all)
	case s.Output == "parquet":
		columns, rows := typedTable(got.GetId(), cells, all)
		return parquet.Write(s.Env.Out, session.OwnVersion(s.Env.Version), columns, rows)
	case s.Output == "svg":
		return p.svg(cmd, flags.shown(all), flags)
	case s.Output == "junit":
		return p.junit(cmd.Context(), c, flags.shown(all))
	}
	return p.tables(cmd, all, flags)
}

// resultPrinter prints the results of a set.
type resultPrinter struct {
	*session.Session

	set   *baiv1.Set
	cells []*baiv1.CellResult
}

// shown returns the metrics that are shown: those that are named, or all but those of the
// platform's own measurements.
func (f resultFlags) shown(all []*result.Metric) []*result.Metric {
	if len(f.metrics) == 0 {
		all, _ = result.WithoutSystem(all)
	}
	return all
}

// tables prints a table for each metric, or the pivot table of one.
func (p resultPrinter) tables(cmd *cobra.Command, all []*result.Metric, flags resultFlags) error {
	notes := result.SetNotes(p.cells)
	if len(flags.metrics) == 0 {
		own, system := result.WithoutSystem(all)
		if all = own; len(system) > 0 {
			notes = append(notes, "left out: "+strings.Join(system, ", ")+" (see --metric)")
		}
	}
	if len(all) == 0 {
		p.Screen.Note("baictl: " + p.reasonForNone(flags))
		return p.notes(notes)
	}
	form, err := flags.form(cmd, all)
	if err != nil {
		return err
	}
	for i, m := range all {
		if i > 0 {
			if err := p.text("\n"); err != nil {
				return err
			}
		}
		if err := p.table(m.Title(), form(m), m.Notes()); err != nil {
			return err
		}
	}
	if len(notes) == 0 {
		return nil
	}
	if err := p.text("\n"); err != nil {
		return err
	}
	return p.notes(notes)
}

// reasonForNone is the reason why there is nothing to show.
func (p resultPrinter) reasonForNone(flags resultFlags) string {
	for _, c := range p.cells {
		if c.GetSucceeded() > 0 && len(flags.metrics) > 0 {
			return fmt.Sprintf("no repetition of set %s has a value of metric %s", p.set.GetId(),
				printer.Clean(strings.Join(flags.metrics, " or ")))
		}
	}
	return "no repetition of set " + p.set.GetId() + " has results yet"
}

// form returns the function that makes the table of a metric.
func (f resultFlags) form(cmd *cobra.Command, all []*result.Metric) (func(*result.Metric) printer.Table, error) {
	if len(f.by) == 0 {
		return (*result.Metric).Table, nil
	}
	by, err := f.parameters(cmd, all)
	if err != nil {
		return nil, err
	}
	return func(m *result.Metric) printer.Table { return m.PivotTable(by[0], by[1]) }, nil
}

// parameters returns the two parameters of --by, "" for one that is not named. There must
// be one metric, and the set must have them.
func (f resultFlags) parameters(cmd *cobra.Command, all []*result.Metric) (by [2]string, err error) {
	if len(all) > 1 {
		return by, session.UsageErrorf(cmd, "--by shows one metric, and the set has %s: name one by --metric", titles(all))
	}
	names := result.ParameterNames(all[0].Cells)
	for i, name := range f.by {
		if by[i] = result.FindParameter(names, name); by[i] == "" {
			return by, session.UsageErrorf(cmd, "no parameter %q: the set has %s", name, strings.Join(names, ", "))
		}
	}
	return by, nil
}

// titles is "latency (ms), run.duration (s)".
func titles(all []*result.Metric) string {
	texts := make([]string, 0, len(all))
	for _, m := range all {
		texts = append(texts, m.Label())
	}
	return strings.Join(texts, ", ")
}

// table prints a table under its title, with notes below it.
func (p resultPrinter) table(title string, t printer.Table, notes []string) error {
	title = printer.Clean(title) + "\n"
	if p.Output == "md" {
		if err := p.text(title + "\n" + t.Markdown()); err != nil || len(notes) == 0 {
			return err
		}
		return p.text("\n" + listOf(notes))
	}
	if err := p.text(title); err != nil {
		return err
	}
	if err := p.PrintTable(t); err != nil {
		return err
	}
	return p.notes(notes)
}

// notes prints sentences.
func (p resultPrinter) notes(notes []string) error {
	if p.Output == "md" {
		return p.text(listOf(notes))
	}
	for _, note := range notes {
		for _, line := range printer.Wrap(printer.Clean(note), printer.Page) {
			if err := p.text(line + "\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// listOf is a list in Markdown.
func listOf(notes []string) string {
	var text strings.Builder
	for _, note := range notes {
		text.WriteString("* " + printer.Clean(note) + "\n")
	}
	return text.String()
}

func (p resultPrinter) text(text string) error { return session.WriteText(p.Env.Out, text) }

// names prints the names of the metrics.
func (p resultPrinter) names(all []*result.Metric) error {
	last := ""
	for _, m := range all {
		if m.Name == last {
			continue
		}
		if last = m.Name; last != "" {
			if err := p.text(printer.Clean(last) + "\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows returns the results as JSON, metric by metric.
func rows(all []*result.Metric) ([]json.RawMessage, error) {
	list := []json.RawMessage{}
	for _, m := range all {
		for _, c := range m.Cells {
			if c.Result == nil {
				continue
			}
			head, err := session.Object(session.Entry{Name: "cell", Value: c.Cell.GetName()},
				session.Entry{Name: "cellId", Value: c.Cell.GetId()},
				session.Entry{Name: "parameters", Value: session.Array(c.Cell.GetParameters())})
			if err != nil {
				return nil, err
			}
			tail := []session.Entry{{Name: "best", Value: c.Best}}
			if n := c.Cell.GetSkipped(); n > 0 {
				tail = append(tail, session.Entry{Name: "skipped", Value: n})
			}
			row, err := session.Merge(session.Join(head, printer.JSON(c.Result)), tail...)
			if err != nil {
				return nil, err
			}
			list = append(list, row)
		}
	}
	return list, nil
}

// object prints all results as one object.
func (p resultPrinter) object(all []*result.Metric) error {
	list, err := rows(all)
	if err != nil {
		return err
	}
	text, err := session.Object(session.Entry{Name: "setId", Value: p.set.GetId()}, session.Entry{Name: "results", Value: list})
	if err != nil {
		return err
	}
	return p.Print(text)
}

// lines prints a line of JSON for each result.
func (p resultPrinter) lines(all []*result.Metric) error {
	list, err := rows(all)
	if err != nil {
		return err
	}
	for _, row := range list {
		if err := p.text(string(row) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// resultColumns are the first columns of tables for programs. One for each parameter follows.
func resultColumns() []string {
	return []string{
		"set", "cell", "cell_id", "metric", "unit", "labels", "direction", "n", "excluded", "lacking", "median", "low",
		"high", "level", "best", "skipped",
	}
}

// parameterColumns returns the names of the columns after resultColumns: those of the parameters, with "parameter." before one that another
// column has.
func parameterColumns(parameters []string) []string {
	all := resultColumns()
	fixed := len(all)
	for _, name := range parameters {
		for slices.Contains(all, name) {
			name = "parameter." + name
		}
		all = append(all, name)
	}
	return all[fixed:]
}

// inCells returns the cells as those of a metric without values.
func inCells(cells []*baiv1.CellResult) []result.InCell {
	all := make([]result.InCell, 0, len(cells))
	for _, c := range cells {
		all = append(all, result.InCell{Cell: c})
	}
	return all
}

// csv prints a line for each result.
func (p resultPrinter) csv(all []*result.Metric) error {
	names := result.ParameterNames(inCells(p.cells))
	list := [][]string{slices.Concat(resultColumns(), parameterColumns(names))}
	for _, m := range all {
		for _, c := range m.Cells {
			if c.Result != nil {
				list = append(list, p.csvRow(m, c, names))
			}
		}
	}
	w := csv.NewWriter(p.Env.Out)
	if err := w.WriteAll(list); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func (p resultPrinter) csvRow(m *result.Metric, c result.InCell, names []string) []string {
	r := c.Result
	low, high, level := "", "", ""
	if i := r.GetInterval(); i != nil {
		low, high, level = printer.Exact(i.GetLow()), printer.Exact(i.GetHigh()), printer.Exact(i.GetLevel())
	}
	row := []string{
		p.set.GetId(), c.Cell.GetName(), c.Cell.GetId(), m.Name, m.Unit, m.Labels, r.GetDirection(),
		fmt.Sprint(r.GetN()), fmt.Sprint(r.GetExcluded()), fmt.Sprint(r.GetLacking()), printer.Exact(r.GetMedian()), low,
		high, level, fmt.Sprint(c.Best),
		fmt.Sprint(c.Cell.GetSkipped()),
	}
	for _, name := range names {
		row = append(row, result.Content(result.Parameter(c.Cell, name)))
	}
	return row
}
