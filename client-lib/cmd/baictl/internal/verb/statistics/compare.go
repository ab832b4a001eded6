// Package statistics has the verbs that compare runs and find changes in series: those that judge by statistics.
package statistics

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/comparison"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/points"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
)

// benchstatOutput is the output that is benchstat's.
const benchstatOutput = "benchstat"

// compareFlags are the flags of compare.
type compareFlags struct {
	metrics   []string
	minChange session.Percent
	namespace string
	by        string

	rerunFlags
}

// Compare is the verb compare.
func Compare(s *session.Session) *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use:         "compare OLD NEW | compare RUNS --by ATTRIBUTE",
		Short:       "Say whether results got better or worse",
		Annotations: session.ExtraFormats("csv", "md", "junit", benchstatOutput),
		Long: `Compares the results of two sides, metric by metric. A side is one of

  RUN                ID or name of a run
  SET                ID or name of a set
  baseline:NAME      a baseline (see baictl baseline)
  TASK@RANGE         runs of a task: resnet@-14d, or @2026-03-01..2026-03-08
  FILE, LABEL=FILE   results in a file; - is standard input

The cells of a sweep are compared each, in sets, baselines and ranges.

For each metric there are the medians, the change with its interval, and a
verdict: worse, better, same, or unclear; changed if the metric has no
direction. A run is one value, however many samples it has: 4 runs a side are
compared by themselves, fewer by the spread of the task's history. same is said
if the whole interval of the change is at most --min-change. If it is unclear, a
sentence says how many runs would show what. Metrics system.* are compared if
--metric names them. docs/statistics.md has the formulas.

Below it is what else differs: machine, image, data, code, descriptor, platform.

A file has the output of go test -bench, whose lines are runs; CSV with the
columns series, time and value, whose rows are runs; or the Bencher Metric
Format. Both sides are files, or none is. No platform is needed for them.

With -o benchstat: the tables of benchstat. Of files with the output of go test
-bench these are what benchstat OLD NEW prints, byte for byte; further files are
columns, LABEL=PATH heads a column, a file alone is summarised. Lines that
cannot be read are left out, with a warning on standard error.

With -o json or yaml: CompareRunsResponse of the API. With -o csv: a line for
each metric. With -o md: a comment for a review. With -o junit: a test case for
each metric, which has failed if it got worse. With -o name: the metrics that
got worse.

The exit code is 6 if a metric got worse, but for -o benchstat.

With --rerun: the newest run of each side is submitted again and again, as it
was, in pairs of old and new in a random order, one run after the other, until
the verdict on each metric stands, or no pair is left of --max-runs, or a
further one would cost more than --max-cost. The verdict is that of the pairs
alone, whose test may look after each of them (docs/statistics.md). The runs are
yours, and no part of the history of their task. Without --metric: all metrics
that the benchmark emits; the fewer, the sooner. After Ctrl-C the run goes on;
the same command goes on with the same runs, also with a larger --max-runs.

With --by: the runs of one side, or task:TASK for all runs of a task, grouped by
an attribute: hardware.instance_type, machine, node, version, image, data, code,
descriptor, platform, cell, or label.KEY. The groups are ranked by the medians
of their runs; LIKE PLACES names the groups that the tests cannot tell from it.
With -o json or yaml: RankRunsResponse of the API. With -o csv: a line for each
group. With -o name: the first group.`,
		Example: `  baictl compare nightly-41 nightly-42
  baictl compare baseline:main nightly-42 --min-change 2% -o md
  baictl compare resnet@-14d..-7d resnet@-7d
  baictl compare nightly-41 nightly-42 --rerun --metric rate --max-runs 30
  baictl compare task:resnet --by hardware.instance_type --metric cost.amount
  go test -bench . -count 10 > other.txt; baictl compare base.txt other.txt`,
		Args:              session.Arguments(1, -1, "a side"),
		ValidArgsFunction: s.Runs,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return flags.run(cmd, s, args) }
	set := cmd.Flags()
	set.StringArrayVar(&flags.metrics, "metric", nil, "only the metric with this `NAME`; may be repeated")
	set.Var(&flags.minChange, "min-change", "largest change that does not matter, such as 2% (default: every change matters)")
	set.StringVar(&flags.by, "by", "", "rank the runs of one side by this `ATTRIBUTE`, such as hardware.instance_type")
	flags.register(cmd)
	set.StringVar(&flags.namespace, "namespace", "", "`TEAM` of tasks and baselines (default: that of the context, or \"default\")")
	return cmd
}

func (f compareFlags) run(cmd *cobra.Command, s *session.Session, args []string) error {
	files := 0
	for _, arg := range args {
		if isFile(arg) {
			files++
		}
	}
	if err := f.check(cmd, s.Output, files); err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("by"):
		return f.rank(cmd, s, args)
	case s.Output == benchstatOutput && (files > 0 || len(args) != 2):
		return printBenchstat(cmd, s, args)
	case len(args) != 2:
		return session.UsageErrorf(cmd, "two sides are compared, OLD and NEW, not %d", len(args))
	case files == 1:
		return session.UsageErrorf(cmd, "one side is a file, and the other one is none: %s", strings.Join(args, ", "))
	}
	compareSides := func() (*baiv1.CompareRunsResponse, error) { return f.compare(cmd, s, args[0], args[1], files > 0) }
	if f.rerun {
		compareSides = func() (*baiv1.CompareRunsResponse, error) { return f.repeatRuns(cmd, s, args[0], args[1]) }
	}
	c, err := compareSides()
	if err != nil {
		return err
	}
	if s.Output == benchstatOutput {
		return writeBenchstat(s, comparison.Benchstat(c))
	}
	if err := (comparePrinter{s, f.minChange}).write(c); err != nil {
		return err
	}
	if worse := comparison.WorseSeries(c); len(worse) > 0 {
		return &exitcode.WorseError{New: c.GetNew().GetOperand(), Old: c.GetOld().GetOperand(), Worse: len(worse), Of: len(c.GetSeries())}
	}
	return nil
}

// isFile reports whether an argument names a file: it is -, LABEL=PATH, which no other side is, or
// one that exists. A folder is none: it may have the name of a run.
func isFile(arg string) bool {
	switch {
	case strings.HasPrefix(arg, "baseline:") || strings.HasPrefix(arg, "task:"):
		return false
	case arg == "-" || strings.Contains(arg, "="): // no name has one
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && !info.IsDir()
}

// splitLabel returns the path of a file, and the label that stands for it: LABEL, or the path.
func splitLabel(arg string) (label, path string) {
	if label, path, labelled := strings.Cut(arg, "="); labelled {
		return cmp.Or(label, path), path
	}
	return arg, arg
}

// compare compares the two sides.
func (f compareFlags) compare(cmd *cobra.Command, s *session.Session, base, other string, files bool) (*baiv1.CompareRunsResponse, error) {
	if files {
		return f.compareFiles(cmd, s, base, other)
	}
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	team, err := s.Team(f.namespace)
	if err != nil {
		return nil, err
	}
	return c.Compare(cmd.Context(),
		&baiv1.CompareRunsRequest{Old: base, New: other, Namespace: team, Metrics: f.metrics, MinChange: float64(f.minChange)})
}

// compareFiles compares the results of two files.
func (f compareFlags) compareFiles(cmd *cobra.Command, s *session.Session, base, other string) (*baiv1.CompareRunsResponse, error) {
	_, from := splitLabel(base)
	if _, path := splitLabel(other); from == "-" && path == "-" {
		return nil, session.UsageErrorf(cmd, "- is given more than once: standard input can be read once")
	}
	comparer, err := compare.New(compare.Settings{MinChange: float64(f.minChange)})
	if err != nil {
		return nil, session.UsageErrorf(cmd, "--min-change %s: want at least 0, and less than 100%%", &f.minChange)
	}
	before, err := readSide(s, base)
	if err != nil {
		return nil, err
	}
	after, err := readSide(s, other)
	if err != nil {
		return nil, err
	}
	c, err := comparison.Compare(comparer, before, after, f.metrics)
	if mismatch, ok := errors.AsType[*comparison.MismatchError](err); ok {
		err = &exitcode.UsageError{Message: mismatch.Message}
	}
	return c, err
}

// readSide reads the results of a file.
func readSide(s *session.Session, arg string) (comparison.Side, error) {
	label, name := splitLabel(arg)
	in := s.Env.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return comparison.Side{}, unreadable(err)
		}
		defer file.Close() //nolint:errcheck // only read
		in = file
	}
	side, err := comparison.Read(label, in, s.Env.Err)
	if err == nil {
		return side, nil
	}
	if fault, ok := errors.AsType[*points.FaultError](err); ok {
		return side, &exitcode.UsageError{Message: fmt.Sprintf("%s:%v", fileName(name), fault)}
	}
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return side, unreadable(path)
	}
	return side, &exitcode.UsageError{Message: fmt.Sprintf("read %s: %v", fileName(name), err)}
}

// comparePrinter prints a comparison.
type comparePrinter struct {
	*session.Session

	minChange session.Percent
}

func (p comparePrinter) write(c *baiv1.CompareRunsResponse) error {
	switch {
	case p.Structured():
		return p.Print(printer.JSON(c))
	case p.Output == "csv":
		if err := csv.NewWriter(p.Env.Out).WriteAll(comparison.CSV(c)); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		return nil
	case p.Output == "md":
		return session.WriteText(p.Env.Out, comparison.Markdown(c))
	case p.Output == "junit":
		text, err := comparison.JUnit(c)
		return cmp.Or(err, session.WriteText(p.Env.Out, text))
	case p.Output == "name":
		for _, name := range comparison.WorseSeries(c) {
			if err := session.WriteText(p.Env.Out, name+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	return p.table(c)
}

// table prints a table, and below it the numbers of verdicts and sentences.
func (p comparePrinter) table(c *baiv1.CompareRunsResponse) error {
	t := comparison.Table(c, p.Output == "wide")
	t.Paint = func(row, column int, text string) string {
		switch {
		case t.Columns[column].Title != comparison.VerdictTitle:
			return text
		case t.Rows[row][column] == comparison.Worse:
			return p.Screen.Paint(screen.Bad, text)
		case t.Rows[row][column] == comparison.Better:
			return p.Screen.Paint(screen.Good, text)
		}
		return text
	}
	if err := p.PrintTable(t); err != nil {
		return err
	}
	below, sentences := "\n", append([]string{comparison.Summary(c)}, comparison.Sentences(c)...)
	if p.minChange == 0 && comparison.MayBeSame(c) {
		sentences = append(sentences, "without --min-change no series is the same: say which change does not matter, such as 1%")
	}
	for _, text := range sentences {
		below += strings.Join(printer.Wrap(text, printer.Page), "\n") + "\n"
	}
	return session.WriteText(p.Env.Out, below)
}
