package set

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func get(s *session.Session) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "get SET",
		Short: "Show a set and its cells",
		Long: `Shows a set, its first failures, and its cells with the numbers of their runs,
without warm-ups.

With -o json or yaml: the set, with its descriptor and "cells": [{"id", "name",
"parameters": [{"name", "value"}], "runs": [{"runId", "repetition", "warmup",
"phase", "outcome", "failureClass"}]}]; values are TOML. With -o name: its ID.`,
	}
	takeSet(s, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return session.UsageErrorf(cmd, "--limit must not be negative")
		}
		c, err := s.Client()
		if err != nil {
			return err
		}
		return printSet(cmd.Context(), s, c, args[0], limit)
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so `MANY` cells; 0 means all")
	return cmd
}

func printSet(ctx context.Context, s *session.Session, c *bai.Client, name string, limit int) error {
	got, err := c.Set(ctx, name)
	if err != nil {
		return err
	}
	if s.Output == "name" {
		return printOne(s, got)
	}
	cells, more, err := readCells(ctx, c, got.GetId(), limit)
	if err != nil {
		return err
	}
	if s.Structured() {
		text, err := session.Merge(printer.JSON(got), session.Entry{Name: "cells", Value: session.Array(cells)})
		if err != nil {
			return err
		}
		if err := s.Print(text); err != nil {
			return err
		}
	} else if err := printText(s, got, cells); err != nil {
		return err
	}
	if more {
		s.Screen.Note(fmt.Sprintf("baictl: showing %d of %d cells (--limit 0 shows all)", limit, got.GetCellCount()))
	}
	return nil
}

// readCells returns the cells of a set, and whether there are more than limit.
func readCells(ctx context.Context, c *bai.Client, id string, limit int) (cells []*baiv1.Cell, more bool, err error) {
	for cell, err := range c.Cells(ctx, id) {
		if err != nil {
			return nil, false, err
		}
		if limit > 0 && len(cells) == limit {
			return cells, true, nil
		}
		cells = append(cells, cell)
	}
	return cells, false, nil
}

func printText(s *session.Session, got *baiv1.Set, cells []*baiv1.Cell) error {
	if err := session.WriteText(s.Env.Out, describe(got, s.Screen)+"\n"); err != nil {
		return err
	}
	return s.PrintTable(cellTable(got, cells))
}

// describe describes a set, a line for each field that is set.
func describe(got *baiv1.Set, on *screen.Screen) string {
	width := printer.Unbound // scripts look for its lines
	if on.IsTerminal() {
		width = on.Width()
	}
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			text.WriteString(printer.Hang(fmt.Sprintf("%-12s ", name), printer.Clean(value), width) + "\n")
		}
	}
	line("set", got.GetId())
	line("name", got.GetName())
	line("description", got.GetDescription())
	line("status", printer.SetStatus(got))
	line("message", got.GetMessage())
	line("runs", printer.SetCounts(got))
	line("cells", shape(got))
	line("order", got.GetOrder())
	if n := got.GetMaxParallel(); n > 0 {
		line("parallel", fmt.Sprintf("%d at most", n))
	}
	line("on failure", got.GetOnFailure())
	line("stop when", stopWhen(got))
	line("stop message", got.GetStopMessage())
	line("failures", classes(got.GetFailureClasses()))
	line("owner", got.GetOwner())
	line("namespace", got.GetNamespace())
	line("descriptor", got.GetDescriptorFile())
	line("labels", printer.Labels(got.GetLabels()))
	line("rerun of", got.GetRerunOfSet())
	line("canceled by", got.GetCanceledBy())
	line("schedule", got.GetScheduleId())
	line("firing", printer.Time(got.GetFiringTime()))
	line("submitted", printer.Time(got.GetCreateTime()))
	line("ends about", printer.Time(got.GetEstimatedEndTime()))
	line("ended", printer.Time(got.GetEndTime()))
	for _, f := range got.GetFailures() {
		line("failed", strings.TrimSuffix(strings.TrimSpace(f.GetRunId()+" "+f.GetCell())+": "+f.GetMessage(), ": "))
	}
	return text.String()
}

// shape is how many runs each cell has: "6, each with 2 repetitions and 1 warm-up", or "6 in
// 2 entries, each with …".
func shape(got *baiv1.Set) string {
	text := fmt.Sprint(got.GetCellCount())
	switch n := got.GetEntryCount(); n {
	case 0:
	case 1:
		text += " in 1 entry"
	default:
		text += fmt.Sprintf(" in %d entries", n)
	}
	return text + ", each with " + printer.CellRuns(got, "warm-up")
}

// stopWhen is when a cell has enough repetitions: "latency ±2%, 6 to 30 repetitions".
func stopWhen(got *baiv1.Set) string {
	w := got.GetStopWhen()
	if w == nil {
		return ""
	}
	return fmt.Sprintf("%s ±%s%%, %d to %d repetitions", w.GetMetric(), strconv.FormatFloat(100*w.GetHalfWidth(), 'g', 6, 64), w.GetMin(),
		w.GetMax())
}

// classes is how many runs failed by the class of the failure: "1 infra, 2 user".
func classes(all map[string]int32) string {
	parts := make([]string, 0, len(all))
	for _, class := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%d %s", all[class], class))
	}
	return strings.Join(parts, ", ")
}
