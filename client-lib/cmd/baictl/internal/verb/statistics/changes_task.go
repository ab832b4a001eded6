package statistics

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/changes"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// checkSource refuses flags unless they name a file or a task, and those of the other one.
func (f *changesFlags) checkSource(cmd *cobra.Command) error {
	ofTask := append(session.SeriesFlagNames(), "metric")
	ofFile := []string{"input", "method", "confidence", "p", "window", "min-magnitude", "replay"}
	changed := func(names []string) string { // the first one
		i := slices.IndexFunc(names, cmd.Flags().Changed)
		if i < 0 {
			return ""
		}
		return names[i]
	}
	switch {
	case f.input == "" && f.series.Task == "":
		return session.UsageErrorf(cmd, "--input or --task is missing: name a CSV file, - for standard input, or the task of runs")
	case f.input != "" && f.series.Task != "":
		return session.UsageErrorf(cmd, "--input and --task exclude each other: name a file or a task")
	case f.input != "" && changed(ofTask) != "":
		return session.UsageErrorf(cmd, "--%s has no effect with --input: it is for --task", changed(ofTask))
	case f.input == "" && changed(ofFile) != "":
		return session.UsageErrorf(cmd, "--%s has no effect with --task: it is for --input", changed(ofFile))
	}
	return nil
}

// runTask prints the changes of a task.
func (f *changesFlags) runTask(cmd *cobra.Command, s *session.Session) error {
	req, err := f.series.Query(cmd, s, f.metrics, time.Now())
	if err != nil {
		return err
	}
	req.WithoutPoints = true
	c, err := s.Client()
	if err != nil {
		return err
	}
	got, err := c.History(cmd.Context(), req)
	if err != nil {
		return err
	}
	all := changes.OfTask(got)
	if err := (changesPrinter{Session: s, method: got.GetMethod(), task: got, named: len(f.metrics) > 0}).write(all); err != nil {
		return err
	}
	return f.failure("task "+printer.Clean(f.series.Task), all)
}

// taskTable prints the changes of a task. Metrics system.* are left out unless they were named.
func (p changesPrinter) taskTable() error {
	shown, system := p.task.GetSeries(), []string(nil)
	if !p.named {
		shown, system = series.WithoutSystem(shown)
	}
	h := &baiv1.QueryHistoryResponse{Series: shown}
	all := changes.OfTask(h)
	notes := append([]string{changes.Summary(all, "point")}, changes.Notes(all)...)
	notes = append(notes, series.RunNotes(p.task)...)
	if len(system) > 0 {
		notes = append(notes, "left out: "+strings.Join(system, ", ")+" (see --metric)")
	}
	return p.table(changes.TaskTable(h, p.Output == "wide"), notes)
}
