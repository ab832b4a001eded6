// Package account has the verbs that account for a run: why it went as it did,
// and how it is repeated.
package account

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/timeline"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Why is the verb why.
func Why(s *session.Session) *cobra.Command {
	return session.WithNoun(&cobra.Command{
		Use:   "why RUN",
		Short: "Tell why a run took the time and the end that it did",
		Long: `Tells everything that happened to a run, in order: what, why, how long after the
submission and after what came before; then how long each phase took, and how
much of that was waiting: for the platform, for a slot, for the cluster. Reports
of progress are left out but for the first and the last of a row. -o wide adds
times and the kinds of the events.

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
	changes, err := past(ctx, c, run)
	if err != nil {
		return err
	}
	story := timeline.Tell(run, changes, time.Now())
	switch s.Output {
	case "json", "yaml":
		text, err := storyObject(run, story)
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		return session.Put(s.Env.Out, run.GetId()+"\n")
	}
	return session.Put(s.Env.Out, tell(s, run, story))
}

// past returns what happened to a run so far.
func past(ctx context.Context, c *bai.Client, run *baiv1.Run) ([]*baiv1.Change, error) {
	if run.GetRevision() == 0 {
		return nil, nil
	}
	var all []*baiv1.Change
	for change, err := range c.Watch(ctx, run.GetId(), 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, change)
		if change.GetRevision() >= run.GetRevision() {
			break
		}
	}
	return all, nil
}

func tell(s *session.Session, run *baiv1.Run, story timeline.Story) string {
	width := s.Screen.Width()
	if s.Output == "wide" {
		width = show.Unbound
	}
	var b strings.Builder
	for i, line := range show.Wrap(headline(run, story), cmp.Or(width, show.Page)-2) {
		b.WriteString([]string{"", "  "}[min(i, 1)] + line + "\n")
	}
	b.WriteString("\n" + stepTable(s, story).Render(width))
	if len(story.Stays) > 0 {
		b.WriteString("\n" + stayTable(story).Render(width) + waited(story) + "\n")
	}
	return b.String()
}

func headline(run *baiv1.Run, story timeline.Story) string {
	text := "run " + run.GetId()
	if run.GetName() != "" {
		text += " (" + show.Clean(run.GetName()) + ")"
	}
	if !story.Ended {
		return text + " is " + show.Status(run) + ", " + show.Precise(story.Total) + " after it was submitted"
	}
	text += " " + show.Status(run) + " after " + show.Precise(story.Total)
	if run.GetAttempt() > 1 {
		text += fmt.Sprintf(", in attempt %d", run.GetAttempt())
	}
	if because := verdict.Because(run.GetReason(), run.GetFailureClass(), run.GetMessage()); because != "" {
		text += ": " + show.Clean(because)
	}
	return text
}

// eventColumn is where a table of steps has what happened.
const eventColumn = 2

func stepTable(s *session.Session, story timeline.Story) show.Table {
	t := show.Table{Columns: []show.Column{{Title: "SINCE", Right: true}, {Title: "AFTER", Right: true}, {Title: "PHASE"}, {Title: "WHAT", Flex: true, Wrap: true}}}
	wide := s.Output == "wide"
	if wide {
		t.Columns = append([]show.Column{{Title: "TIME"}, {Title: "EVENT"}}, t.Columns...)
	}
	for _, step := range story.Steps {
		c := step.Change
		row := []string{show.Precise(step.Since), show.Precise(step.After), show.Word(c.GetPhase()), what(step)}
		if wide {
			row = append([]string{show.Time(c.GetTime()), c.GetKind()}, row...)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Paint = func(row, column int, text string) string {
		if wide || column != eventColumn {
			return text
		}
		c := story.Steps[row].Change
		return s.Screen.Paint(follow.Style(show.Status(&baiv1.Run{Phase: c.GetPhase(), Outcome: c.GetOutcome()})), text)
	}
	return t
}

func what(step timeline.Step) string {
	text := follow.Tells(step.Change)
	if step.More > 0 {
		text += fmt.Sprintf("  (%d reports between)", step.More)
	}
	return strings.TrimSpace(text)
}

func stayTable(story timeline.Story) show.Table {
	t := show.Table{Columns: []show.Column{{Title: "PHASE"}, {Title: "ATTEMPT", Right: true}, {Title: "TOOK", Right: true}, {Title: "OF ALL", Right: true}, {Title: ""}}}
	for _, stay := range story.Stays {
		note := " "
		switch {
		case stay.Waiting && stay.Open:
			note = "waiting, goes on"
		case stay.Open:
			note = "goes on"
		case stay.Waiting:
			note = "waiting"
		}
		t.Rows = append(t.Rows, []string{show.Word(stay.Phase), fmt.Sprint(stay.Attempt), show.Precise(stay.Took), share(stay.Took, story.Total), note})
	}
	return t
}

func share(part, all time.Duration) string {
	if all <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(all))
}

func waited(story timeline.Story) string {
	return fmt.Sprintf("waited %s of %s (%s)", show.Precise(story.Waited), show.Precise(story.Total), share(story.Waited, story.Total))
}

func storyObject(run *baiv1.Run, story timeline.Story) (json.RawMessage, error) {
	steps := make([]json.RawMessage, len(story.Steps))
	for i, step := range story.Steps {
		text, err := session.Object(session.Entry{Name: "sinceSeconds", Value: step.Since.Seconds()}, session.Entry{Name: "afterSeconds", Value: step.After.Seconds()},
			session.Entry{Name: "more", Value: step.More}, session.Entry{Name: "change", Value: show.JSON(step.Change)})
		if err != nil {
			return nil, err
		}
		steps[i] = text
	}
	phases := make([]json.RawMessage, len(story.Stays))
	for i, stay := range story.Stays {
		text, err := session.Object(session.Entry{Name: "phase", Value: show.Word(stay.Phase)}, session.Entry{Name: "attempt", Value: stay.Attempt},
			session.Entry{Name: "fromSeconds", Value: stay.From.Seconds()}, session.Entry{Name: "seconds", Value: stay.Took.Seconds()},
			session.Entry{Name: "waiting", Value: stay.Waiting}, session.Entry{Name: "open", Value: stay.Open})
		if err != nil {
			return nil, err
		}
		phases[i] = text
	}
	return session.Object(session.Entry{Name: "run", Value: run.GetId()}, session.Entry{Name: "steps", Value: steps}, session.Entry{Name: "phases", Value: phases},
		session.Entry{Name: "seconds", Value: story.Total.Seconds()}, session.Entry{Name: "waitedSeconds", Value: story.Waited.Seconds()})
}
