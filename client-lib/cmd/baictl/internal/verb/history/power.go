package history

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// powerFlags are the flags of power.
type powerFlags struct {
	series  session.SeriesSelector
	metrics []string
	runs    []int32
	effect  session.Percent
}

// Power is the verb power.
func Power(s *session.Session) *cobra.Command {
	var flags powerFlags
	cmd := &cobra.Command{
		Use:         "power --task TASK",
		Short:       "Show which changes runs of a task can show",
		Annotations: session.ExtraFormats("csv"),
		Long: `Shows how small a change may be that a comparison of old and new runs of a task
shows, by the spread of the runs on the newest level of its history (see
baictl history). docs/statistics.md has the formulas.

For each number of runs on each side there is the smallest increase that is
shown with a probability of 80 %, in a test at 5 %, and the time that the runs
of both sides take, one after another, without the time that they wait, and what
they cost where prices of machines are known (docs/cost.md). none
means that so few runs show no change, however large it is. With -o wide there
is also the interval of the change, since the spread itself is known from few
runs. With --effect: the number of runs on each side that shows this change,
and the numbers for the least and the largest spread that the history may have.

Metrics system.* are shown if --metric names them.

With -o json or yaml: the message of the API, PlanPowerResponse. With -o csv: a
row for each series and number of runs, with the columns metric, unit, labels,
cell, points, lacking, spread, absolute, runs_a_side, change, low, high, level,
hours, effect, needed, needed_low, needed_high, cost, currency. Shares are not
percents: 0.02 is 2 %. Both have metrics system.*, too. With -o name: the
metrics.`,
		Example: `  baictl power --task checksums --metric rate
  baictl power --task checksums --metric rate --effect 2% --runs 5,10`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd, s) },
	}
	flags.series.TaskFlags(cmd, s)
	cmd.Flags().StringArrayVar(&flags.metrics, "metric", nil, "only the metric with this `NAME`; may be repeated")
	cmd.Flags().Int32SliceVar(&flags.runs, "runs", []int32{3, 5, 10, 20}, "`NUMBERS` of runs on each side, at most 20")
	cmd.Flags().Var(&flags.effect, "effect", "find the number of runs that shows this `CHANGE`: 2% or 0.02")
	_ = cmd.RegisterFlagCompletionFunc("metric", flags.series.Metrics(s)) // fails for flags that do not exist
	return cmd
}

func (f *powerFlags) run(cmd *cobra.Command, s *session.Session) error {
	team, err := f.series.Team(cmd, s)
	if err != nil {
		return err
	}
	if f.effect == 0 && cmd.Flags().Changed("effect") {
		return session.UsageErrorf(cmd, "--effect is 0: no number of runs shows that nothing changed")
	}
	if len(f.runs) == 0 {
		return session.UsageErrorf(cmd, "--runs is empty: give numbers of runs, as 5,10")
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	got, err := c.Power(cmd.Context(), &baiv1.PlanPowerRequest{
		Task: f.series.Task, Namespace: team, Metrics: f.metrics, Runs: f.runs, Effect: float64(f.effect),
	})
	if err != nil {
		return err
	}
	switch {
	case s.Structured():
		return s.Print(printer.JSON(got))
	case s.Output == "csv":
		return writeCSV(s, series.PowerCSV(got, float64(f.effect)))
	case s.Output == "name":
		return printNames(s, got.GetSeries())
	}
	return f.tables(s, got)
}

// tables prints a table for each series, with sentences below it.
func (f *powerFlags) tables(s *session.Session, got *baiv1.PlanPowerResponse) error {
	all, system := series.Powers(got), []string(nil)
	if len(f.metrics) == 0 {
		all, system = series.WithoutSystem(all)
	}
	if len(all) == 0 {
		p := historyPrinter{task: f.series.Task, metrics: f.metrics}
		return &bai.NotFoundError{What: "metric", Message: p.reasonForNone()}
	}
	for _, p := range all {
		if err := f.table(s, p); err != nil {
			return err
		}
	}
	notes := series.PowerNotes(got)
	if len(system) > 0 {
		notes = append(notes, "left out: "+strings.Join(slices.Clone(system), ", ")+" (see --metric)")
	}
	return session.WriteText(s.Env.Out, sentences(notes))
}

// table prints one series, and an empty line below it. There is no table where the spread is
// not known.
func (f *powerFlags) table(s *session.Session, p series.Power) error {
	if err := session.WriteText(s.Env.Out, sentences([]string{p.Title()})); err != nil {
		return err
	}
	if p.GetLacking() == 0 && len(p.GetDetectable()) > 0 {
		if err := s.PrintTable(p.Table(s.Output == "wide")); err != nil {
			return err
		}
	}
	answer := ""
	if f.effect != 0 {
		answer = p.Answer(f.effect.Text() + " %")
	}
	return session.WriteText(s.Env.Out, sentences([]string{answer})+"\n")
}
