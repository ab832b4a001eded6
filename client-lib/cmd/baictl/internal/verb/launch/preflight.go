package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors/suite"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Preflight is the verb preflight.
func Preflight(s *session.Session) *cobra.Command {
	var set session.OverrideFlags
	var script string
	cmd := &cobra.Command{
		Use:   "preflight FILE",
		Short: "Check before a run whether its needs are met",
		Long: `Compares the needs of a descriptor with the resources that the platform can
reach now: permissions, kinds of objects, nodes with their GPUs, CPUs and
memory, quotas, disk, secrets, this machine's programs where it runs no images,
and where data may be read from. Each is ok, a warning (it may be missing, or
could not be seen) or a fault (a run would fail), with what to do about it.

It looks at what there is, not at what is free at the moment, and changes
nothing. Programs in code that is sent along (--script, ml.script) are taken to
be there.

Exit codes: 0 where there is no fault, 2 where the descriptor asks for what is
not there, 3 where the platform itself lacks something.

` + session.Sources + `

With -o json or yaml: {"file", "ready", "faults", "warnings", "checks":
[{"topic", "subject", "grade", "message", "remedy", "failureClass"}]}. With
-o name: topic/subject of all that is not ok.`,
		Example: `  baictl preflight resnet.toml
  baictl preflight resnet.toml --set hardware.gpus=8 -o json
  baictl preflight resnet.toml --script ./code`,
		Args:              session.Arguments(1, 1, "a descriptor's FILE"),
		ValidArgsFunction: s.StoredDescriptors(input.Stored),
		RunE: func(cmd *cobra.Command, args []string) error {
			overrides, err := s.Overrides(cmd, set)
			if err != nil {
				return err
			}
			code, err := session.CheckPack(script)
			if err != nil {
				return err
			}
			return preflight(cmd.Context(), s, args[0], overrides, code)
		},
	}
	set.Register(cmd)
	cmd.PersistentFlags().StringVar(&script, "script", "", "`DIR` with code that would be sent along, or an archive of it")
	return session.WithNoun(cmd)
}

func preflight(ctx context.Context, s *session.Session, name string, set []*baiv1.Override, code bool) error {
	doc, faults, err := s.Reader("").Read(ctx, name)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return s.FailWithFaults(faults)
	}
	if suite.Is(doc.Text) {
		return &exitcode.UsageError{Message: fmt.Sprintf("%s is a suite: check its descriptors one by one", doc.Name)}
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	team, err := s.Team("")
	if err != nil {
		return err
	}
	res, err := c.Preflight(ctx, bai.Draft{Text: doc.Text, File: doc.Name, Namespace: team, Overrides: set, WithScript: code})
	if err != nil {
		return s.FailIfInvalid(err)
	}
	s.PrintFaults(res.GetWarnings())
	missing := missingOf(doc.Name, res.GetChecks())
	if err := printChecks(s, doc.Name, res.GetChecks(), missing); err != nil {
		return err
	}
	if missing.Faults > 0 {
		return missing
	}
	return nil
}

// missingOf counts the failed checks. The fault is the platform's if all of them are.
func missingOf(file string, checks []*baiv1.Check) *exitcode.MissingError {
	e := &exitcode.MissingError{File: file, Platform: true}
	for _, c := range checks {
		switch c.GetGrade() {
		case baiv1.Grade_GRADE_FAULT:
			e.Faults++
			e.Platform = e.Platform && c.GetFailureClass() == baiv1.FailureClass_FAILURE_CLASS_PLATFORM
		case baiv1.Grade_GRADE_WARNING:
			e.Warnings++
		case baiv1.Grade_GRADE_FINE, baiv1.Grade_GRADE_UNSPECIFIED:
		}
	}
	return e
}

func printChecks(s *session.Session, file string, checks []*baiv1.Check, missing *exitcode.MissingError) error {
	switch s.Output {
	case "json", "yaml":
		text, err := checksObject(file, checks, missing)
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		for _, c := range checks {
			if c.GetGrade() == baiv1.Grade_GRADE_FINE {
				continue
			}
			if err := session.WriteText(s.Env.Out,
				printer.Clean(strings.TrimSuffix(c.GetTopic()+"/"+c.GetSubject(), "/"))+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	return s.PrintTable(checkTable(s, checks))
}

func checksObject(file string, checks []*baiv1.Check, missing *exitcode.MissingError) (json.RawMessage, error) {
	return session.Object(session.Entry{Name: "file", Value: file}, session.Entry{Name: "ready", Value: missing.Faults == 0},
		session.Entry{Name: "faults", Value: missing.Faults}, session.Entry{Name: "warnings", Value: missing.Warnings},
		session.Entry{Name: "checks", Value: session.Array(checks)})
}

func checkTable(s *session.Session, checks []*baiv1.Check) printer.Table {
	t := printer.Table{Columns: []printer.Column{{Title: "GRADE"}, {Title: "TOPIC"}, {Title: "WHAT", Flex: true, Wrap: true}}}
	for _, c := range checks {
		text := c.GetMessage()
		if c.GetSubject() != "" {
			text = c.GetSubject() + ": " + text
		}
		if c.GetRemedy() != "" {
			text += " (" + c.GetRemedy() + ")"
		}
		t.Rows = append(t.Rows, []string{printer.Word(c.GetGrade()), c.GetTopic(), text})
	}
	t.Paint = func(row, column int, text string) string {
		if column != 0 {
			return text
		}
		style := map[baiv1.Grade]screen.Style{
			baiv1.Grade_GRADE_FINE: screen.Good, baiv1.Grade_GRADE_WARNING: screen.Muted, baiv1.Grade_GRADE_FAULT: screen.Bad,
		}
		return s.Screen.Paint(style[checks[row].GetGrade()], text)
	}
	return t
}
