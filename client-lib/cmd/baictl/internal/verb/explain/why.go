// Package explain has the verbs that account for a run: why it went as it did,
// and how it is repeated.
package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/timeline"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Why is the verb why.
func Why(s *session.Session) *cobra.Command {
	return session.WithNoun(&cobra.Command{
		Use:   "why RUN",
		Short: "Tell why a run took the time and the end that it did",
		Long: `Shows every step of a run, in order: what, why, how long after the submission
and after the step before; then how long each phase took, and how much of that
was waiting: for the platform, for a slot, for the cluster. Reports of progress
are left out but for the first and the last of a row. -o wide adds times and
the kinds of the events.

With -o json or yaml: {"run", "steps": [{"sinceSeconds", "afterSeconds", "more",
"change"}], "phases": [{"phase", "attempt", "fromSeconds", "seconds", "waiting",
"open"}], "seconds", "waitedSeconds"}.`,
		Args:              session.Arguments(1, 1, "a RUN"),
		ValidArgsFunction: s.OneRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return why(cmd.Context(), s, args[0]) },
	})
}

func why(ctx context.Context, s *session.Session, name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	run, err := c.Get(ctx, name)
	if err != nil {
		return err
	}
	changes, err := session.ChangesOf(ctx, c, run)
	if err != nil {
		return err
	}
	history := timeline.Build(run, changes, time.Now())
	switch s.Output {
	case "json", "yaml":
		text, err := historyObject(run, history)
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		return session.WriteText(s.Env.Out, run.GetId()+"\n")
	}
	return session.WriteText(s.Env.Out, renderHistory(s, run, history))
}

func renderHistory(s *session.Session, run *baiv1.Run, history timeline.History) string {
	width := s.Screen.Width()
	if s.Output == "wide" {
		width = printer.Unbound
	}
	var b strings.Builder
	for i, line := range printer.Wrap(headline(run, history), cmp.Or(width, printer.Page)-2) {
		b.WriteString([]string{"", "  "}[min(i, 1)] + line + "\n")
	}
	b.WriteString("\n" + stepTable(s, history).Render(width))
	if len(history.Phases) > 0 {
		b.WriteString("\n" + phaseTable(history).Render(width) + waitedText(history) + "\n")
	}
	return b.String()
}

func headline(run *baiv1.Run, history timeline.History) string {
	text := "run " + run.GetId()
	if run.GetName() != "" {
		text += " (" + printer.Clean(run.GetName()) + ")"
	}
	if !history.Ended {
		return text + " is " + printer.Status(run) + ", " + printer.Precise(history.Total) + " after it was submitted"
	}
	text += " " + printer.Status(run) + " after " + printer.Precise(history.Total)
	if run.GetAttempt() > 1 {
		text += fmt.Sprintf(", in attempt %d", run.GetAttempt())
	}
	if because := exitcode.FailureText(run.GetReason(), run.GetFailureClass(), run.GetMessage()); because != "" {
		text += ": " + printer.Clean(because)
	}
	return text
}

// eventColumn is the column of the event in a table of steps.
const eventColumn = 2

func stepTable(s *session.Session, history timeline.History) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "SINCE", Right: true},
		{Title: "AFTER", Right: true},
		{Title: "PHASE"},
		{Title: "WHAT", Flex: true, Wrap: true},
	}}
	wide := s.Output == "wide"
	if wide {
		t.Columns = append([]printer.Column{{Title: "TIME"}, {Title: "EVENT"}}, t.Columns...)
	}
	for _, step := range history.Steps {
		c := step.Change
		row := []string{printer.Precise(step.Since), printer.Precise(step.After), printer.Word(c.GetPhase()), stepText(step)}
		if wide {
			row = append([]string{printer.Time(c.GetTime()), c.GetKind()}, row...)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Paint = func(row, column int, text string) string {
		if wide || column != eventColumn {
			return text
		}
		c := history.Steps[row].Change
		return s.Screen.Paint(follow.Style(printer.Status(&baiv1.Run{Phase: c.GetPhase(), Outcome: c.GetOutcome()})), text)
	}
	return t
}

func stepText(step timeline.Step) string {
	text := follow.Describe(step.Change)
	if step.More > 0 {
		text += fmt.Sprintf("  (%d reports between)", step.More)
	}
	return strings.TrimSpace(text)
}

func phaseTable(history timeline.History) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "PHASE"},
		{Title: "ATTEMPT", Right: true},
		{Title: "TOOK", Right: true},
		{Title: "OF ALL", Right: true},
		{Title: ""},
	}}
	for _, span := range history.Phases {
		note := " "
		switch {
		case span.Waiting && span.Open:
			note = "waiting, goes on"
		case span.Open:
			note = "goes on"
		case span.Waiting:
			note = "waiting"
		}
		t.Rows = append(t.Rows, []string{
			printer.Word(span.Phase), fmt.Sprint(span.Attempt), printer.Precise(span.Took),
			share(span.Took, history.Total), note,
		})
	}
	return t
}

func share(part, all time.Duration) string {
	if all <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(all))
}

func waitedText(history timeline.History) string {
	return fmt.Sprintf("waited %s of %s (%s)", printer.Precise(history.Waited), printer.Precise(history.Total),
		share(history.Waited, history.Total))
}

func historyObject(run *baiv1.Run, history timeline.History) (json.RawMessage, error) {
	steps := make([]json.RawMessage, len(history.Steps))
	for i, step := range history.Steps {
		text, err := session.Object(session.Entry{Name: "sinceSeconds", Value: step.Since.Seconds()},
			session.Entry{Name: "afterSeconds", Value: step.After.Seconds()},
			session.Entry{Name: "more", Value: step.More}, session.Entry{Name: "change", Value: printer.JSON(step.Change)})
		if err != nil {
			return nil, err
		}
		steps[i] = text
	}
	phases := make([]json.RawMessage, len(history.Phases))
	for i, span := range history.Phases {
		text, err := session.Object(session.Entry{Name: "phase", Value: printer.Word(span.Phase)},
			session.Entry{Name: "attempt", Value: span.Attempt},
			session.Entry{Name: "fromSeconds", Value: span.From.Seconds()}, session.Entry{Name: "seconds", Value: span.Took.Seconds()},
			session.Entry{Name: "waiting", Value: span.Waiting}, session.Entry{Name: "open", Value: span.Open})
		if err != nil {
			return nil, err
		}
		phases[i] = text
	}
	return session.Object(session.Entry{Name: "run", Value: run.GetId()}, session.Entry{Name: "steps", Value: steps},
		session.Entry{Name: "phases", Value: phases},
		session.Entry{Name: "seconds", Value: history.Total.Seconds()},
		session.Entry{Name: "waitedSeconds", Value: history.Waited.Seconds()})
}
