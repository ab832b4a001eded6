package results

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

// Metrics is the verb metrics.
func Metrics(s *session.Session) *cobra.Command {
	var only []string
	var summary bool
	var choice session.RunSelector
	cmd := &cobra.Command{
		Use:         "metrics [RUN]",
		Short:       "Summarise the metrics of a run, or of many runs",
		Annotations: session.ExtraFormats("csv"),
		Long: `Shows for each metric of a run the number of samples, their median, minimum and
maximum, separately for each unit and each set of labels; -o wide adds mean and
standard deviation. Samples that are not numbers (NaN) are counted apart.

Without a RUN it does so for each run that --task, --label and the like name,
run by run, newest first.

With -o json or yaml: one object for each sample; with -o csv: one line for
each. Both say of which run it is. With -o name: the metrics.

With --summary: what the platform computed of all samples of a RUN once it was
over, with percentiles and the 95 % confidence interval of the median (-o wide:
and mean, standard deviation, first and last). -o json and yaml are the whole of
it, with the method; -o csv is one line for each metric.`,
		Example: `  baictl metrics 01kdyt1q880000000000000001
  baictl metrics 01kdyt1q880000000000000001 --summary -o json
  baictl metrics --task resnet --metric throughput --since 30d -o csv`,
		Args:              session.Arguments(0, 1, ""),
		ValidArgsFunction: s.OneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := query(cmd, s, &choice, args)
			if err != nil {
				return err
			}
			q.Metrics = only
			if !summary {
				return metrics(cmd.Context(), s, q)
			}
			if q.Run == "" || !q.Since.IsZero() || !q.Until.IsZero() {
				return session.UsageErrorf(cmd, "--summary is of all samples of one RUN")
			}
			return printSummary(cmd.Context(), s, q)
		},
	}
	choice.Flags(cmd, "measured ")
	cmd.PersistentFlags().StringArrayVar(&only, "metric", nil, "only the metric with this `NAME`; may be repeated")
	cmd.PersistentFlags().BoolVar(&summary, "summary", false, "show the platform's summaries of all samples, once the run was over")
	return session.WithNoun(cmd)
}

// query is which samples a command line means.
func query(cmd *cobra.Command, s *session.Session, choice *session.RunSelector, args []string) (bai.Query, error) {
	filter, err := choice.Filter(cmd, s, time.Now())
	if err != nil {
		return bai.Query{}, err
	}
	given := choice.ChangedFlags(cmd)
	switch {
	case len(args) == 0 && len(given) == 0:
		return bai.Query{}, session.UsageErrorf(cmd, "a RUN is missing, or what names many, as --task or --label")
	case len(args) > 0 && len(given) > 0:
		return bai.Query{}, session.UsageErrorf(cmd, "either a RUN or %s, not both", strings.Join(given, ", "))
	}
	q := bai.Query{Runs: filter, Since: choice.Since, Until: choice.Until}
	if len(args) > 0 {
		q.Run, q.Runs = args[0], bai.Filter{}
	}
	return q, nil
}

func metrics(ctx context.Context, s *session.Session, q bai.Query) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	switch s.Output {
	case "json", "yaml":
		return printSamples(ctx, s, c, q)
	case "csv":
		return printCSV(ctx, s, c, q)
	}
	samples := printer.Samples{ByRun: q.Run == ""}
	for m, err := range c.Samples(ctx, q) {
		if err != nil {
			return err
		}
		samples.Add(m.RunID, m.Sample)
	}
	return printSummaries(s, q, samples.Summaries())
}

func printSamples(ctx context.Context, s *session.Session, c *bai.Client, q bai.Query) error {
	for m, err := range c.Samples(ctx, q) {
		if err != nil {
			return err
		}
		text := printer.JSON(m.Sample)
		if m.RunID != "" {
			if text, err = session.Merge(text, session.Entry{Name: "run", Value: m.RunID}); err != nil {
				return err
			}
		}
		if err := s.PrintOne(s.Env.Out, text); err != nil {
			return err
		}
	}
	return nil
}

func printCSV(ctx context.Context, s *session.Session, c *bai.Client, q bai.Query) error {
	w := csv.NewWriter(s.Env.Out)
	defer w.Flush()
	if err := w.Write([]string{
		"time", "metric", "value", "unit", "step", "labels", "attempt", "role", "index", "container", "stream",
		"sequence", "sub", "run", "direction",
	}); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	for m, err := range c.Samples(ctx, q) {
		if err != nil {
			return err
		}
		if err := w.Write(fields(m)); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
	return nil
}

func fields(m bai.Measured) []string {
	o, step, at := m.GetOrigin(), "", ""
	if m.Step != nil {
		step = strconv.FormatInt(m.GetStep(), 10)
	}
	if m.GetTime() != nil {
		at = m.GetTime().AsTime().UTC().Format(time.RFC3339Nano)
	}
	return []string{
		at, m.GetMetric(), printer.Exact(m.GetValue()), m.GetUnit(), step, printer.Labels(m.GetLabels()),
		fmt.Sprint(o.GetAttempt()), o.GetRole(), fmt.Sprint(o.GetIndex()), o.GetContainer(), o.GetStream(),
		strconv.FormatInt(m.GetSequence(), 10), fmt.Sprint(m.GetSub()), m.RunID, m.GetDirection(),
	}
}

func printSummaries(s *session.Session, q bai.Query, all []printer.Summary) error {
	if s.Output == "name" {
		return printMetricNames(s, all)
	}
	if len(all) == 0 {
		none := "no run with such samples"
		if q.Run != "" {
			none = "run " + printer.Clean(q.Run) + " has no samples"
		}
		s.Screen.Note("baictl: " + none)
		return nil
	}
	for _, m := range all {
		if m.NotNumbers > 0 {
			s.Screen.Note(fmt.Sprintf("baictl: %s of metric %s: not a number", printer.Plural(m.NotNumbers, "sample"),
				printer.Clean(m.Metric)))
		}
	}
	return s.PrintTable(summaryTable(all, q.Run == "", s.Output == "wide"))
}

func printMetricNames(s *session.Session, all []printer.Summary) error {
	var names []string
	for _, m := range all {
		names = append(names, m.Metric)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := session.WriteText(s.Env.Out, printer.Clean(name)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// summaryTable has a column of runs where there may be many, and columns of labels
// and of directions where there are any.
func summaryTable(all []printer.Summary, runs, wide bool) printer.Table {
	labels := slices.ContainsFunc(all, func(m printer.Summary) bool { return m.Labels != "" })
	better := slices.ContainsFunc(all, func(m printer.Summary) bool { return m.Direction != "" })
	t := printer.Table{}
	if runs {
		t.Columns = append(t.Columns, printer.Column{Title: "RUN"})
	}
	t.Columns = append(t.Columns, printer.Column{Title: "METRIC", Flex: true}, printer.Column{Title: "UNIT", Flex: true})
	if labels {
		t.Columns = append(t.Columns, printer.Column{Title: "LABELS", Flex: true})
	}
	if better {
		t.Columns = append(t.Columns, printer.Column{Title: "BETTER"})
	}
	numbers := []string{"N", "MEDIAN", "MIN", "MAX"}
	if wide {
		numbers = append(numbers, "MEAN", "STDDEV")
	}
	for _, title := range numbers {
		t.Columns = append(t.Columns, printer.Column{Title: title, Right: true})
	}
	for _, m := range all {
		var row []string
		if runs {
			row = append(row, m.Run)
		}
		row = append(row, m.Metric, m.Unit)
		if labels {
			row = append(row, m.Labels)
		}
		if better {
			row = append(row, printer.Clean(m.Direction))
		}
		row = append(row, fmt.Sprint(m.N), printer.Number(m.Median), printer.Number(m.Min), printer.Number(m.Max))
		if wide {
			row = append(row, printer.Number(m.Mean), printer.Number(m.StdDev))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
