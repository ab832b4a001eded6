// Package author has the verbs for authors of descriptors.
package author

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/sarif"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Validate is the verb validate.
func Validate(s *session.Session) *cobra.Command {
	var v validation
	cmd := &cobra.Command{
		Use:         "validate FILE...",
		Short:       "Check descriptors without a platform",
		Annotations: session.ExtraFormats("sarif"),
		Long: `Checks descriptors without a platform and says all that is wrong with them, each
fault as file:line:column: key: what is wrong (how to mend it), on standard
error. baictl explain says more about a fault by its code, which -o wide shows.
Warnings alone leave a descriptor valid, unless with --strict.

` + session.Sources + `
A folder stands for all *.toml files in it and below, but for those that are
clearly something else (as pyproject.toml is).

With -o json or yaml: {"files": [{"file", "valid", "skipped", "faults": [...]}]}
on standard output. With -o sarif: SARIF 2.1.0, for editors and continuous
integration. With -o name: the valid files.`,
		Example: `  baictl validate benchmark.toml
  baictl validate --strict -o sarif benchmarks/ > faults.sarif
  baictl validate benchmark.toml --set hardware.gpus=4`,
		Args:              session.Arguments(1, -1, "a descriptor's FILE"),
		ValidArgsFunction: s.StoredDescriptors(input.Stored),
		RunE:              func(cmd *cobra.Command, args []string) error { return v.run(cmd, s, args) },
	}
	v.set.Register(cmd)
	cmd.PersistentFlags().BoolVar(&v.strict, "strict", false, "take warnings for errors")
	cmd.PersistentFlags().StringVar(&v.script, "script", "", "`DIR` with code that would be sent along: see that it can be")
	return session.WithNoun(cmd)
}

type validation struct {
	set    session.OverrideFlags
	strict bool
	script string
}

// A checked file with its faults.
type checkedFile struct {
	name    string
	skipped bool
	faults  []*baiv1.Fault
	set     string // how many cells and runs its sweep makes; "" without one
}

func (v checkedFile) valid() bool { return !v.skipped && input.CountErrors(v.faults) == 0 }

func (v validation) run(cmd *cobra.Command, s *session.Session, names []string) error {
	set, err := s.Overrides(cmd, v.set)
	if err != nil {
		return err
	}
	if _, err := session.CheckPack(v.script); err != nil {
		return err
	}
	var all []checkedFile
	for _, entry := range input.Expand(names) {
		one, err := v.check(cmd.Context(), s, entry, set)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	if err := printChecked(s, all); err != nil {
		return err
	}
	return summary(all)
}

func (v validation) check(ctx context.Context, s *session.Session, entry input.Entry, set []*baiv1.Override) (checkedFile, error) {
	if len(entry.Fault) > 0 {
		return checkedFile{name: entry.Name, faults: entry.Fault}, nil
	}
	doc, faults, err := s.Reader("").Read(ctx, entry.Name)
	if err != nil || len(faults) > 0 {
		return checkedFile{name: doc.Name, faults: faults}, err
	}
	if entry.Found && input.IsForeign(doc.Text) {
		return checkedFile{name: doc.Name, skipped: true}, nil
	}
	checked := doc.Check(set, v.strict)
	one := checkedFile{name: doc.Name, faults: s.Locate(checked.Faults)}
	if plan := checked.Plan(); plan != nil {
		one.set = size(plan)
	}
	return one, nil
}

func printChecked(s *session.Session, all []checkedFile) error {
	switch s.Output {
	case "json", "yaml":
		return printCheckedObjects(s, all)
	case "sarif":
		return printSARIF(s, all)
	}
	for _, v := range all {
		printFaults(s, v.faults)
		if line := v.line(s.Output); line != "" {
			s.Screen.Line(s.Screen.Fold(printer.Clean(line)))
		}
	}
	return nil
}

func printFaults(s *session.Session, faults []*baiv1.Fault) {
	if s.Output != "wide" {
		s.PrintFaults(faults)
		return
	}
	for _, f := range faults {
		text := printer.Fault(f)
		if f.GetCode() != "" {
			text += " " + f.GetCode()
		}
		s.Screen.Note(text)
	}
}

// line is the output for a valid file.
func (v checkedFile) line(output string) string {
	switch {
	case v.skipped && output != "name":
		return v.name + ": no descriptor, skipped"
	case !v.valid():
		return ""
	case output == "name":
		return v.name
	}
	text := v.name + ": valid"
	if v.set != "" {
		text += ", " + v.set
	}
	if len(v.faults) > 0 {
		text += ", " + printer.Plural(len(v.faults), "warning")
	}
	return text
}

func printSARIF(s *session.Session, all []checkedFile) error {
	var faults []*baiv1.Fault
	for _, v := range all {
		faults = append(faults, v.faults...)
	}
	text, err := sarif.Marshal(s.Env.Version, faults)
	if err != nil {
		return err
	}
	return session.WriteText(s.Env.Out, text)
}

func printCheckedObjects(s *session.Session, all []checkedFile) error {
	files := make([]json.RawMessage, len(all))
	for i, v := range all {
		file, err := session.Object(session.Entry{Name: "file", Value: v.name}, session.Entry{Name: "valid", Value: v.valid()},
			session.Entry{Name: "skipped", Value: v.skipped}, session.Entry{Name: "faults", Value: session.Array(v.faults)})
		if err != nil {
			return err
		}
		files[i] = file
	}
	text, err := session.Object(session.Entry{Name: "files", Value: files})
	if err != nil {
		return err
	}
	return s.Print(text)
}

// summary is nil if every file is valid, and there is one.
func summary(all []checkedFile) error {
	e := &exitcode.FaultsError{}
	for _, v := range all {
		if v.skipped {
			continue
		}
		e.Of++
		e.Faults += input.CountErrors(v.faults)
		if !v.valid() {
			e.Files++
		}
	}
	switch {
	case e.Of == 0:
		return &exitcode.UsageError{Message: fmt.Sprintf("there is no descriptor among %s", printer.Plural(len(all), "file"))}
	case e.Files == 0:
		return nil
	}
	return e
}
