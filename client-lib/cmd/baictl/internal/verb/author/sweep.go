package author

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

// Sweep is the verb sweep.
func Sweep(s *session.Session) *cobra.Command {
	return session.Parent(&cobra.Command{
		Use:   "sweep",
		Short: "Look at the runs that a [sweep] would make",
		Long: `Looks at the table [sweep] of a descriptor, which makes a set of runs: a cell
for each combination of values, and in each cell some repetitions.`,
	}, preview(s))
}

func preview(s *session.Session) *cobra.Command {
	var set session.OverrideFlags
	cmd := &cobra.Command{
		Use:   "preview FILE",
		Short: "List the cells of a sweep without a platform",
		Long: `Lists the cells of a suite, or of a descriptor with [sweep], each with its ID
and its values, and counts their runs. Nothing is submitted.

` + session.Sources + `

With -o json or yaml: {"cells": [{"id", "name", "parameters": {...}}], "runs",
"warmups", "repetitions", "warmup", "order"}, where runs are those that are
counted and warmups those that come before them, of all cells; repetitions and
warmup are those of each cell, of a suite those of the cells that have the most.
With -o name: the names of the cells, as render --cell takes them.`,
		Example: `  baictl sweep preview sweep.toml
  baictl sweep preview sweep.toml --set sweep.repetitions=10`,
		Args:              session.Arguments(1, 1, "a descriptor's FILE"),
		ValidArgsFunction: s.StoredDescriptors(input.Stored),
		RunE:              func(cmd *cobra.Command, args []string) error { return runPreview(cmd, s, set, args[0]) },
	}
	set.Register(cmd)
	return cmd
}

func runPreview(cmd *cobra.Command, s *session.Session, flags session.OverrideFlags, name string) error {
	set, err := s.Overrides(cmd, flags)
	if err != nil {
		return err
	}
	doc, faults, err := s.Reader("").Read(cmd.Context(), name)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return s.FailWithFaults(faults)
	}
	checked := doc.Check(set, false)
	if checked.Descriptor == nil {
		return s.FailWithFaults(checked.Faults)
	}
	s.PrintFaults(checked.Faults)
	plan := checked.Plan()
	if plan == nil {
		return &exitcode.UsageError{Message: fmt.Sprintf("%s has no [sweep]: it is one run", doc.Name)}
	}
	return printCells(s, plan)
}

func printCells(s *session.Session, plan *sweep.Plan) error {
	switch {
	case s.Structured():
		return printCellObjects(s, plan)
	case s.Output == "name":
		for i := range plan.Cells() {
			if err := session.WriteText(s.Env.Out, printer.Clean(plan.Cell(i).Name)+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	t := printer.Table{Columns: []printer.Column{{Title: "ID"}, {Title: "CELL", Flex: true}}}
	for i := range plan.Cells() {
		c := plan.Cell(i)
		t.Rows = append(t.Rows, []string{c.ID, c.Name})
	}
	if err := s.PrintTable(t); err != nil {
		return err
	}
	return session.WriteText(s.Env.Out, size(plan)+"\n")
}

// size counts the cells and the runs of a plan.
func size(plan *sweep.Plan) string {
	counted, warmups := runs(plan)
	text := printer.Plural(plan.Cells(), "cell") + ", " + printer.Plural(counted, "run")
	if warmups > 0 {
		text += ", " + printer.Plural(warmups, "warm-up")
	}
	return text
}

// runs are the numbers of the runs of a plan that are counted, and of those before them.
func runs(plan *sweep.Plan) (counted, warmups int) {
	for i := range plan.Cells() {
		counted += plan.Repetitions(i)
	}
	return counted, plan.Runs() - counted
}

func printCellObjects(s *session.Session, plan *sweep.Plan) error {
	cells := make([]json.RawMessage, plan.Cells())
	for i := range cells {
		c := plan.Cell(i)
		var parameters []session.Entry
		for _, p := range c.Parameters {
			parameters = append(parameters, session.Entry{Name: p.Name, Value: finite(p.Value)})
		}
		values, err := session.Object(parameters...)
		if err != nil {
			return err
		}
		cells[i], err = session.Object(session.Entry{Name: "id", Value: c.ID}, session.Entry{Name: "name", Value: c.Name},
			session.Entry{Name: "parameters", Value: values})
		if err != nil {
			return err
		}
	}
	settings := plan.Sweep()
	counted, warmups := runs(plan)
	text, err := session.Object(session.Entry{Name: "cells", Value: cells},
		session.Entry{Name: "runs", Value: counted},
		session.Entry{Name: "warmups", Value: warmups},
		session.Entry{Name: "repetitions", Value: settings.Repetitions}, session.Entry{Name: "warmup", Value: settings.Warmup},
		session.Entry{Name: "order", Value: settings.Order})
	if err != nil {
		return err
	}
	return s.Print(text)
}

// finite is a value with the text of TOML in place of numbers that JSON does not have.
func finite(value any) any {
	switch v := value.(type) {
	case float64:
		switch {
		case math.IsNaN(v):
			return "nan"
		case math.IsInf(v, 1):
			return "inf"
		case math.IsInf(v, -1):
			return "-inf"
		}
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = finite(one)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[name] = finite(one)
		}
		return all
	}
	return value
}

// A cellText is the descriptor of one run: of a cell, where the file has [sweep].
type cellText struct {
	descriptor *descriptors.Descriptor
	text       []byte
}

// oneCell is the cell called name of a descriptor that was read, by its name or ID; the first
// one without a name, which a note says.
func oneCell(s *session.Session, file string, checked input.CheckResult, name string) (cellText, error) {
	plan := checked.Plan()
	switch {
	case plan == nil && name != "":
		return cellText{}, &exitcode.UsageError{Message: fmt.Sprintf("%s has no [sweep] and no cell %q", file, name)}
	case plan == nil:
		return cellText{checked.Descriptor, checked.Effective}, nil
	}
	i := 0
	if name == "" {
		s.Screen.Note(printer.Clean(fmt.Sprintf("the cell is %s, the first of %d (--cell NAME takes another)",
			plan.Cell(0).Name, plan.Cells())))
	} else {
		i = slices.IndexFunc(cells(plan), func(c sweep.Cell) bool { return c.Name == name || c.ID == name })
	}
	if i < 0 {
		return cellText{}, &exitcode.UsageError{
			Message: fmt.Sprintf("%s has no cell %q: baictl sweep preview %s lists them", file, name, file),
		}
	}
	text := plan.Descriptor(i)
	d, faults := parser.Parse(file, text)
	if d == nil {
		return cellText{}, fmt.Errorf("read cell %s of %s: %w", plan.Cell(i).Name, file, faults.Err())
	}
	return cellText{d, text}, nil
}

func cells(plan *sweep.Plan) []sweep.Cell {
	all := make([]sweep.Cell, plan.Cells())
	for i := range all {
		all[i] = plan.Cell(i)
	}
	return all
}

// cellFlag is the flag --cell.
func cellFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "cell", "", "the `NAME` or ID of a cell, where FILE has [sweep]; the first one without it")
}
