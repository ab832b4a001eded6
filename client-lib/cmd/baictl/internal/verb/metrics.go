package verb

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func metricsCommand(s *session) *cobra.Command {
	var only []string
	cmd := &cobra.Command{
		Use:         "metrics RUN",
		Short:       "Summarise what a run measured",
		Annotations: map[string]string{formatsKey: everyFormat + " csv"},
		Long: `Shows for each metric of a run the number of samples, their median, minimum and
maximum, separately for each unit and each set of labels; -o wide adds mean and
standard deviation. Samples that are not numbers (NaN) are counted apart.

With -o json or yaml: one object for each sample; with -o csv: one line for each.
With -o name: the metrics.`,
		Args:              arguments(1, 1, "a RUN"),
		ValidArgsFunction: s.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return s.metrics(cmd.Context(), args[0], only) },
	}
	cmd.PersistentFlags().StringArrayVar(&only, "metric", nil, "only the metric with this `NAME`; may be repeated")
	return withNoun(cmd)
}

func (s *session) metrics(ctx context.Context, run string, only []string) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	switch s.output {
	case "json", "yaml":
		return s.printSamples(ctx, c, run, only)
	case "csv":
		return s.printCSV(ctx, c, run, only)
	}
	var samples show.Samples
	for sample, err := range c.Metrics(ctx, run, only...) {
		if err != nil {
			return err
		}
		samples.Add(sample)
	}
	return s.printSummaries(run, samples.Summaries())
}

func (s *session) printSamples(ctx context.Context, c *bai.Client, run string, only []string) error {
	for sample, err := range c.Metrics(ctx, run, only...) {
		if err != nil {
			return err
		}
		if err := s.printOne(s.env.Out, show.JSON(sample)); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) printCSV(ctx context.Context, c *bai.Client, run string, only []string) error {
	w := csv.NewWriter(s.env.Out)
	defer w.Flush()
	if err := w.Write([]string{"time", "metric", "value", "unit", "step", "labels", "attempt", "role", "index", "container", "stream", "sequence", "sub"}); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	for sample, err := range c.Metrics(ctx, run, only...) {
		if err != nil {
			return err
		}
		if err := w.Write(fields(sample)); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
	return nil
}

func fields(s *baiv1.Sample) []string {
	o, step, at := s.GetOrigin(), "", ""
	if s.Step != nil {
		step = strconv.FormatInt(s.GetStep(), 10)
	}
	if s.GetTime() != nil {
		at = s.GetTime().AsTime().UTC().Format(time.RFC3339Nano)
	}
	return []string{
		at, s.GetMetric(), show.Exact(s.GetValue()), s.GetUnit(), step, show.Labels(s.GetLabels()),
		fmt.Sprint(o.GetAttempt()), o.GetRole(), fmt.Sprint(o.GetIndex()), o.GetContainer(), o.GetStream(),
		strconv.FormatInt(s.GetSequence(), 10), fmt.Sprint(s.GetSub()),
	}
}

func (s *session) printSummaries(run string, all []show.Summary) error {
	if s.output == "name" {
		return s.printMetricNames(all)
	}
	if len(all) == 0 {
		s.screen.Note(fmt.Sprintf("baictl: there are no samples of run %s", show.Clean(run)))
		return nil
	}
	for _, m := range all {
		if m.NotNumbers > 0 {
			s.screen.Note(fmt.Sprintf("baictl: %s of metric %s: not a number", verdict.Plural(m.NotNumbers, "sample"), show.Clean(m.Metric)))
		}
	}
	return s.printTable(summaryTable(all, s.output == "wide"))
}

func (s *session) printMetricNames(all []show.Summary) error {
	var names []string
	for _, m := range all {
		names = append(names, m.Metric)
	}
	for _, name := range slices.Compact(names) {
		if err := put(s.env.Out, show.Clean(name)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// summaryTable has a column of labels where there are any.
func summaryTable(all []show.Summary, wide bool) show.Table {
	labels := slices.ContainsFunc(all, func(m show.Summary) bool { return m.Labels != "" })
	t := show.Table{Columns: []show.Column{{Title: "METRIC", Flex: true}, {Title: "UNIT", Flex: true}}}
	if labels {
		t.Columns = append(t.Columns, show.Column{Title: "LABELS", Flex: true})
	}
	numbers := []string{"N", "MEDIAN", "MIN", "MAX"}
	if wide {
		numbers = append(numbers, "MEAN", "STDDEV")
	}
	for _, title := range numbers {
		t.Columns = append(t.Columns, show.Column{Title: title, Right: true})
	}
	for _, m := range all {
		row := []string{m.Metric, m.Unit}
		if labels {
			row = append(row, m.Labels)
		}
		row = append(row, fmt.Sprint(m.N), show.Number(m.Median), show.Number(m.Min), show.Number(m.Max))
		if wide {
			row = append(row, show.Number(m.Mean), show.Number(m.StdDev))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
