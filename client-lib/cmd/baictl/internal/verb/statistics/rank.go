package statistics

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/comparison"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// rank groups the runs of one side by an attribute, and prints the order of the groups.
func (f compareFlags) rank(cmd *cobra.Command, s *session.Session, args []string) error {
	switch {
	case len(args) != 1:
		return session.UsageErrorf(cmd, "--by groups the runs of one side, not of %d", len(args))
	case cmd.Flags().Changed("min-change"):
		return session.UsageErrorf(cmd, "either --by or --min-change, not both: a ranking says which groups differ")
	case s.Output == benchstatOutput || s.Output == "md" || s.Output == "junit":
		return session.UsageErrorf(cmd, "-o %s has no form for --by: use table, csv, json, yaml or name", s.Output)
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	team, err := s.Team(f.namespace)
	if err != nil {
		return err
	}
	got, err := c.Rank(cmd.Context(), &baiv1.RankRunsRequest{Runs: args[0], By: f.by, Metrics: f.metrics, Namespace: team})
	if err != nil {
		return err
	}
	switch {
	case s.Structured():
		return s.Print(printer.JSON(got))
	case s.Output == "csv":
		if err := csv.NewWriter(s.Env.Out).WriteAll(comparison.RankingCSV(got)); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		return nil
	case s.Output == "name":
		return rankNames(s, got)
	}
	return rankTables(s, got, f.by)
}

// rankNames prints the best group of each series.
func rankNames(s *session.Session, got *baiv1.RankRunsResponse) error {
	for _, one := range got.GetSeries() {
		if err := session.WriteText(s.Env.Out, printer.Clean(one.GetGroups()[0].GetValue())+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// rankTables prints a table for each series, with sentences below it.
func rankTables(s *session.Session, got *baiv1.RankRunsResponse, by string) error {
	for _, one := range got.GetSeries() {
		if err := session.WriteText(s.Env.Out, wrapped([]string{comparison.RankingTitle(one)})); err != nil {
			return err
		}
		if err := s.PrintTable(comparison.RankingTable(one, by)); err != nil {
			return err
		}
		if err := session.WriteText(s.Env.Out, wrapped(comparison.RankingSentences(one))+"\n"); err != nil {
			return err
		}
	}
	return session.WriteText(s.Env.Out, wrapped(append(comparison.RankingNotes(got), printer.Plural(got.GetRuns(), "run")+" compared")))
}

// wrapped is texts in lines, each text on lines of its own.
func wrapped(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(strings.Join(printer.Wrap(text, printer.Page), "\n") + "\n")
	}
	return b.String()
}
