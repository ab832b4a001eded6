package statistics

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/changes"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/points"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge/otava"
)

// The methods that find changes.
const (
	segmentsMethod = "segments"
	otavaMethod    = "otava"
)

// changesFlags are the flags of changes.
type changesFlags struct {
	input      string
	method     string
	confidence float64
	otava      otava.Options
	replay     bool
	fail       bool

	series  session.SeriesSelector // without an input
	metrics []string
}

// Changes is the verb changes.
func Changes(s *session.Session) *cobra.Command {
	var flags changesFlags
	cmd := &cobra.Command{
		Use:         "changes --input FILE | --task TASK",
		Short:       "Find where series of results changed",
		Annotations: session.ExtraFormats("csv", "jsonl"),
		Long: `Finds where the levels of series of results changed: of a file, for which no
platform is needed, or of the runs of a task.

The input is CSV, - for standard input. Its header names the columns series,
time and value, and higher_is_better if you want verdicts. The rows of a series
are in order of time (RFC 3339); rows of several series may alternate. A row
whose value is empty, NaN or infinite has no result. higher_is_better is true,
false or empty, and the same in all rows of a series that give it.

Rows of a series count from 0, and rows without a result count. For each change
there are the first row of the new level and its time; the kind, step or drift;
the levels before and after; the magnitude, which is after/before - 1, with its
interval; p; and the rows between which the change may lie. The verdict is
regression, improvement, or change where higher_is_better is not given.

With --replay: the rows are added one by one. Each change has the row with which
it was first seen and, if it was taken back, the row with which it was
withdrawn. The changes that were not withdrawn are those without --replay.

With --method otava: the changes that Apache Otava 0.8.0 finds, without
intervals. Its replay takes long for long series.

With --task: the changes that the platform finds in the series of a task, as
baictl history shows them with their points. A series is named by its metric,
its labels, its unit and its cell: "rate {op=read} (MB/s), cell size=1K". Rows
are points: runs with a value, in the order of baictl history; none is missing.
Where the machines differ no test is made: such a change has the kind
environment, the verdict change and p 1, and no interval. Metrics system.* are
in tables only if --metric names them. --method and its flags, --confidence and
--replay are for files.

With -o json or yaml: {"method", "series": [{"series", "points", "missing",
"notes", "changes": [{"index", "time", "kind", "direction", "verdict", "before",
"after", "magnitude", "interval", "level", "p", "range"}]}]}, which does not
change. All series are there. points are the rows with a value, missing those
without. interval and range are lists of two; level is the confidence of the
interval. Where there is no magnitude, as after a level of 0, magnitude and
interval are null, and "shift" and "shift_interval" are the difference
after - before. With --replay, a change has "seen" and "withdrawn", which is
null for one that stands. With --method otava, interval and level are null, and
range has the row of the change twice. With --task, a change has "run", which is
the ID of the run at index, "version_before" and "version_after", which are the
labels version of the runs before and at index, and "subjects", a list of what
else differs between these runs: machine, image, data, code, descriptor or
platform; and beside "series" there are "excluded", the number of runs that do
not count, and "truncated", whether there are older runs than those that
--limit takes.

With -o jsonl: a line for each series. With -o csv: a line for each change, with
the columns series, index, time, kind, direction, verdict, before, after,
magnitude, low, high, shift, shift_low, shift_high, level, p, first, last, seen,
withdrawn, and with --task run, version_before, version_after, subjects. With
-o name: the series with a change that stands.

The exit code is 0; with --fail 6, if a series has a regression that stands; 2
for a file that cannot be read, with the line and the column of the fault.`,
		Example: `  baictl changes --input results.csv
  baictl changes --input results.csv --fail -o json
  zcat results.csv.gz | baictl changes --input - --replay -o wide
  baictl changes --task checksums --metric rate --fail`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd, s) },
	}
	flags.register(cmd)
	flags.series.TaskFlags(cmd, s)
	flags.series.RunFlags(cmd)
	cmd.Flags().StringArrayVar(&flags.metrics, "metric", nil, "of --task: only the metric with this `NAME`; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("metric", flags.series.Metrics(s)) // fails for flags that do not exist
	return cmd
}

func (f *changesFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.input, "input", "", "`FILE` with the series as CSV; - is standard input")
	set.StringVar(&f.method, "method", segmentsMethod, "`METHOD` that finds the changes: segments or otava")
	set.Float64Var(&f.confidence, "confidence", 0.95, "confidence of intervals: a `LEVEL` of at least 0.5, and less than 1")
	set.Float64Var(&f.otava.P, "p", 0.001, "of --method otava: p-values of changes are below this `LIMIT`")
	set.IntVar(&f.otava.Window, "window", 50, "of --method otava: `ROWS` of a window of its search")
	set.Float64Var(&f.otava.MinMagnitude, "min-magnitude", 0,
		"of --method otava: changes are larger than this `SIZE`, as 0.05 for 5 % (default 0)")
	set.BoolVar(&f.replay, "replay", false, "add the rows one by one, and show changes that were taken back")
	set.BoolVar(&f.fail, "fail", false, "exit with 6 if a series has a regression that stands")
	// These fail for flags that do not exist.
	_ = cmd.MarkFlagFilename("input", "csv")
	_ = cmd.RegisterFlagCompletionFunc("method",
		cobra.FixedCompletions([]string{segmentsMethod, otavaMethod}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *changesFlags) run(cmd *cobra.Command, s *session.Session) error {
	if err := f.checkSource(cmd); err != nil {
		return err
	}
	if f.input == "" {
		return f.runTask(cmd, s)
	}
	method, err := f.chosen(cmd)
	if err != nil {
		return err
	}
	series, err := readSeries(s, f.input)
	if err != nil {
		return err
	}
	all, err := f.analyse(cmd.Context(), method, series)
	if err != nil {
		return err
	}
	if err := (changesPrinter{Session: s, method: method.Name, replay: f.replay}).write(all); err != nil {
		return err
	}
	return f.failure(fileName(f.input), all)
}

// failure returns the error of --fail, nil without it or without a regression.
func (f *changesFlags) failure(source string, all []changes.SeriesReport) error {
	if n, in := changes.Regressions(all); f.fail && n > 0 {
		return &exitcode.RegressionError{Source: source, Regressions: n, Series: in, Of: len(all)}
	}
	return nil
}

// chosen returns the method of the flags. It refuses flags of another method.
func (f *changesFlags) chosen(cmd *cobra.Command) (changes.Method, error) {
	method, others := changes.Method{}, []string{"confidence"}
	var err error
	switch f.method {
	case segmentsMethod:
		others = []string{"p", "window", "min-magnitude"}
		method, err = changes.Segments(f.confidence)
	case otavaMethod:
		method, err = changes.Otava(f.otava)
	default:
		return method, session.UsageErrorf(cmd, "--method %q: use %s or %s", f.method, segmentsMethod, otavaMethod)
	}
	for _, name := range others {
		if cmd.Flags().Changed(name) {
			return method, session.UsageErrorf(cmd, "--%s has no effect with --method %s: leave it out", name, f.method)
		}
	}
	switch { // 0 would be the default
	case f.confidence == 0:
		err = errors.New("confidence is 0: want at least 0.5, and less than 1")
	case f.otava.P == 0:
		err = errors.New("p is 0: want more than 0, and at most 1")
	case f.otava.Window == 0:
		err = errors.New("window is 0: want at least 2 rows")
	}
	if err != nil {
		return method, session.UsageErrorf(cmd, "%s", err)
	}
	return method, nil
}

// fileName is the name of an input in messages.
func fileName(input string) string {
	if input == "-" {
		return "standard input"
	}
	return printer.Name(input)
}

// readSeries returns the series of a file, or the error of a user who has to mend it.
func readSeries(s *session.Session, name string) ([]*points.TimeSeries, error) {
	in := s.Env.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &exitcode.UsageError{Message: fmt.Sprintf("read %s: %v", fileName(name), errors.Unwrap(err))}
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	series, err := points.Read(in)
	if fault, ok := errors.AsType[*points.FaultError](err); ok {
		return nil, &exitcode.UsageError{Message: fmt.Sprintf("%s:%v", fileName(name), fault)}
	}
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = path.Err
	}
	if err != nil {
		return nil, &exitcode.UsageError{Message: fmt.Sprintf("read %s: %v", fileName(name), err)}
	}
	return series, nil
}

// analyse returns the answer for each series. It lets go of the rows of each.
func (f *changesFlags) analyse(ctx context.Context, m changes.Method, series []*points.TimeSeries) ([]changes.SeriesReport, error) {
	all := make([]changes.SeriesReport, 0, len(series))
	for i, one := range series {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		find := func() (changes.Finding, error) { return m.Find(one.Values) }
		if f.replay {
			find = func() (changes.Finding, error) { return m.Replay(ctx, one.Values) }
		}
		found, err := find()
		if err != nil {
			return nil, fmt.Errorf("find the changes of series %q: %w", one.Name, err)
		}
		all = append(all, changes.Report(one, found, m.Level, f.replay))
		series[i] = nil
	}
	return all, nil
}

// changesPrinter prints the answers of a method.
type changesPrinter struct {
	*session.Session

	method string
	replay bool

	task  *baiv1.QueryHistoryResponse // nil for a file
	named bool                        // the metrics of the task
}

func (p changesPrinter) write(all []changes.SeriesReport) error {
	switch {
	case p.Structured():
		object := []session.Entry{{Name: "method", Value: p.method}, {Name: "series", Value: all}}
		if p.task != nil {
			object = append(object, session.Entry{Name: "excluded", Value: p.task.GetExcluded()},
				session.Entry{Name: "truncated", Value: p.task.GetTruncated()})
		}
		text, err := session.Object(object...)
		if err != nil {
			return err
		}
		return p.Print(text)
	case p.Output == "jsonl":
		return p.lines(all)
	case p.Output == "csv":
		rows := changes.CSV
		if p.task != nil {
			rows = changes.TaskCSV
		}
		if err := csv.NewWriter(p.Env.Out).WriteAll(rows(all)); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		return nil
	case p.Output == "name":
		return p.names(all)
	case p.task != nil:
		return p.taskTable()
	}
	return p.table(changes.Table(all, p.Output == "wide", p.replay), append([]string{changes.Summary(all, "row")}, changes.Notes(all)...))
}

// lines prints a line of JSON for each series.
func (p changesPrinter) lines(all []changes.SeriesReport) error {
	e := json.NewEncoder(p.Env.Out)
	e.SetEscapeHTML(false)
	for _, r := range all {
		if err := e.Encode(r); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
	return nil
}

// names prints the names of the series with a change that stands.
func (p changesPrinter) names(all []changes.SeriesReport) error {
	for _, r := range all {
		if !slices.ContainsFunc(r.Changes, func(c changes.Change) bool { return c.Stands() }) {
			continue
		}
		if err := session.WriteText(p.Env.Out, printer.Clean(r.Series)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// table prints a table, and below it the numbers and the notes.
func (p changesPrinter) table(t printer.Table, notes []string) error {
	below := ""
	if len(t.Rows) > 0 {
		below = "\n"
		t.Paint = p.paint(t)
		if err := p.PrintTable(t); err != nil {
			return err
		}
	}
	for _, note := range notes {
		below += strings.Join(printer.Wrap(printer.Clean(note), printer.Page), "\n") + "\n"
	}
	return session.WriteText(p.Env.Out, below)
}

// paint returns the colours of verdicts.
func (p changesPrinter) paint(t printer.Table) func(row, column int, text string) string {
	return func(row, column int, text string) string {
		switch {
		case t.Columns[column].Title != changes.VerdictTitle:
			return text
		case t.Rows[row][column] == changes.Regression:
			return p.Screen.Paint(screen.Bad, text)
		case t.Rows[row][column] == changes.Improvement:
			return p.Screen.Paint(screen.Good, text)
		}
		return text
	}
}
