// Package runs has the verbs that show and end runs.
package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A listing is which runs a user wants to see, and how.
type listFlags struct {
	choice session.RunSelector
	sort   string
	limit  int
	watch  bool
}

// List is the verb list.
func List(s *session.Session) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Long: `Lists the runs of --owner, newest first. With -o json or yaml: {"runs": [...]},
without descriptors.

With --watch it goes on: on a terminal the list is kept current until Ctrl-C,
elsewhere a line, a JSON object or a YAML document is written for each run
whenever its status changes.`,
		Example: `  baictl list --phase running,queued
  baictl list --label model=resnet --since 7d --outcome failed -o wide
  baictl list -A --watch`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd, s) },
	}
	l.choice.Flags(cmd, "submitted ")
	flags := cmd.PersistentFlags()
	flags.StringVar(&l.sort, "sort", "newest", "`ORDER`: newest or oldest first")
	flags.IntVar(&l.limit, "limit", 50, "at most so `MANY`; 0 means all")
	flags.BoolVarP(&l.watch, "watch", "w", false, "continue, and show changes")
	// Fails for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"newest", "oldest"}, cobra.ShellCompDirectiveNoFileComp))
	return session.WithNoun(cmd)
}

func (l listFlags) run(cmd *cobra.Command, s *session.Session) error {
	if l.limit < 0 {
		return session.UsageErrorf(cmd, "--limit must not be negative")
	}
	if l.sort != "newest" && l.sort != "oldest" {
		return session.UsageErrorf(cmd, "--sort %q: want newest or oldest", l.sort)
	}
	filter, err := l.choice.Filter(cmd, s, time.Now())
	if err != nil {
		return err
	}
	filter.Since, filter.Until, filter.Oldest = l.choice.Since, l.choice.Until, l.sort == "oldest"
	filter.Page = 500
	if l.limit > 0 {
		filter.Page = min(l.limit+1, 500)
	}
	if l.watch {
		return l.follow(cmd, s, filter)
	}
	return l.once(cmd.Context(), s, filter)
}

func (l listFlags) once(ctx context.Context, s *session.Session, filter bai.Filter) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	runs, more, err := l.read(ctx, c, filter)
	if err != nil {
		return err
	}
	if err := l.print(s, runs, filter.Owner); err != nil {
		return err
	}
	if more {
		s.Screen.Note(fmt.Sprintf("baictl: showing %d; more match (--limit 0 shows all)", l.limit))
	}
	return nil
}

// read returns the runs, and whether more match.
func (l listFlags) read(ctx context.Context, c *bai.Client, filter bai.Filter) (runs []*baiv1.Run, more bool, err error) {
	for run, err := range c.List(ctx, filter) {
		if err != nil {
			return nil, false, err
		}
		if l.limit > 0 && len(runs) == l.limit {
			return runs, true, nil
		}
		runs = append(runs, run)
	}
	return runs, false, nil
}

func (l listFlags) print(s *session.Session, runs []*baiv1.Run, owner string) error {
	switch s.Output {
	case "json", "yaml":
		text, err := session.Object(session.Entry{Name: "runs", Value: session.Array(runs)})
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		for _, run := range runs {
			if err := session.WriteText(s.Env.Out, run.GetId()+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	if len(runs) == 0 {
		s.Screen.Note("baictl: no runs" + noMatchText(owner))
		return nil
	}
	return s.PrintTable(table(s, runs, time.Now()))
}

func noMatchText(owner string) string {
	if owner == "" {
		return " match"
	}
	return fmt.Sprintf(" of %s match (baictl list -A lists those of all owners)", printer.Clean(owner))
}

// statusColumn is where a table of runs has the status.
const statusColumn = 2

func table(s *session.Session, runs []*baiv1.Run, now time.Time) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "ID"},
		{Title: "NAME", Flex: true},
		{Title: "STATUS"},
		{Title: "REASON", Flex: true},
		{Title: "TOOK", Right: true},
		{Title: "AGE", Right: true},
	}}
	wide := s.Output == "wide"
	if wide {
		for _, title := range []string{"OWNER", "NAMESPACE", "ATTEMPT", "DESCRIPTOR", "LABELS", "MESSAGE"} {
			t.Columns = append(t.Columns, printer.Column{Title: title, Flex: true})
		}
	}
	for _, r := range runs {
		row := []string{
			r.GetId(), r.GetName(), printer.Status(r), r.GetReason(), printer.Span(r.GetStartTime(), r.GetEndTime()),
			printer.Age(now.Sub(r.GetCreateTime().AsTime())),
		}
		if wide {
			row = append(row, r.GetOwner(), r.GetNamespace(), fmt.Sprint(r.GetAttempt()), r.GetDescriptorFile(),
				printer.Labels(r.GetLabels()), r.GetMessage())
		}
		t.Rows = append(t.Rows, row)
	}
	t.Paint = func(row, column int, text string) string {
		if column != statusColumn {
			return text
		}
		return s.Screen.Paint(follow.Style(printer.Status(runs[row])), text)
	}
	return t
}
