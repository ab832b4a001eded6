package author

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// Diff is the verb diff.
func Diff(s *session.Session) *cobra.Command {
	var set session.OverrideFlags
	var cell string
	cmd := &cobra.Command{
		Use:   "diff FILE RUN",
		Short: "Compare a descriptor with an earlier run",
		Long: `Lists the keys with different values in a descriptor and an earlier run: the
run's value, and the descriptor's. Order, comments and what is a default anyway
are no difference. It exits with 0 whether there are any or not.

A run of a set has the descriptor of its cell: --cell says which cell of a FILE
with [sweep] is compared, else it is the first one, which standard error says.

` + session.Sources + `

With -o json or yaml: {"run", "file", "differences": [{"path", "run", "file"}]}.
With -o name: the keys.`,
		Example: `  baictl diff resnet.toml nightly-7`,
		Args:    session.Arguments(2, 2, "a descriptor's FILE, or a RUN,"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return s.StoredDescriptors(input.Stored)(cmd, args, toComplete)
			}
			return s.OneRun(cmd, args[1:], toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return diff(cmd, s, set, cell, args[0], args[1]) },
	}
	cellFlag(cmd, &cell)
	set.Register(cmd)
	return session.WithNoun(cmd)
}

func diff(cmd *cobra.Command, s *session.Session, flags session.OverrideFlags, cell, file, name string) error {
	set, err := s.Overrides(cmd, flags)
	if err != nil {
		return err
	}
	doc, faults, err := s.Reader("").Read(cmd.Context(), file)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return s.FailWithFaults(faults)
	}
	checked := doc.Check(set, false)
	if checked.Effective == nil {
		return s.FailWithFaults(checked.Faults)
	}
	if _, broken := parser.Diff(checked.Effective, checked.Effective); broken != nil { // it is not TOML
		return s.FailWithFaults(checked.Faults)
	}
	if cell != "" || checked.Plan() != nil {
		one, err := oneCell(s, doc.Name, checked, cell)
		if err != nil {
			return err
		}
		checked.Effective = one.text
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	run, err := c.Get(cmd.Context(), name)
	if err != nil {
		return err
	}
	all, err := parser.Diff([]byte(run.GetDescriptorToml()), checked.Effective)
	if e, ok := errors.AsType[*parser.InvalidError](err); ok {
		e.Faults[0].File = "descriptor of the run"
		return &exitcode.UsageError{Message: fmt.Sprintf("compare %s with run %s: %s", doc.Name, run.GetId(), e.Faults[0])}
	}
	if err != nil {
		return err
	}
	return printDifferences(s, doc.Name, run.GetId(), all)
}

func printDifferences(s *session.Session, file, run string, all []parser.Difference) error {
	switch s.Output {
	case "json", "yaml":
		objects := make([]json.RawMessage, len(all))
		for i, d := range all {
			text, err := session.Object(session.Entry{Name: "path", Value: d.Path}, session.Entry{Name: "run", Value: d.Old},
				session.Entry{Name: "file", Value: d.New})
			if err != nil {
				return err
			}
			objects[i] = text
		}
		text, err := session.Object(session.Entry{Name: "run", Value: run}, session.Entry{Name: "file", Value: file},
			session.Entry{Name: "differences", Value: objects})
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		for _, d := range all {
			if err := session.WriteText(s.Env.Out, printer.Clean(d.Path)+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		s.Screen.Note(printer.Clean(fmt.Sprintf("no differences between %s and run %s", file, run)))
		return nil
	}
	t := printer.Table{Columns: []printer.Column{{Title: "KEY", Flex: true}, {Title: "RUN", Flex: true}, {Title: "FILE", Flex: true}}}
	for _, d := range all {
		t.Rows = append(t.Rows, []string{d.Path, d.Old, d.New})
	}
	return s.PrintTable(t)
}
