// Package schedule has the verbs for schedules.
package schedule

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Schedule is the verb schedule.
func Schedule(s *session.Session) *cobra.Command {
	cmd := session.Parent(&cobra.Command{
		Use:   "schedule",
		Short: "Look after schedules",
		Long: `Looks after schedules. A schedule is made by submitting a descriptor with
info.scheduling (baictl submit nightly.toml --name nightly), and changed by
submitting another under its name or ID. Each of its firings is a run, or a set
if the descriptor has a table sweep: baictl list --schedule nightly, baictl set
list --schedule nightly.

A SCHEDULE is named by its ID, or by the name that its owner gave it.`,
	}, list(s), get(s), pause(s), resume(s), trigger(s), backfill(s), remove(s))
	cmd.Aliases = []string{"schedules"}
	return cmd
}

func list(s *session.Session) *cobra.Command {
	var everybody bool
	var namespace string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List schedules and when they fire next",
		Long: `Lists the schedules of --owner, and when they fire next, each in its own zone.

With -o json or yaml: {"schedules": [...]}, without descriptors. With -o name:
their IDs.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			where, err := s.ResolveContext()
			if err != nil {
				return err
			}
			owner := where.Owner
			if everybody {
				owner = ""
			}
			all, err := schedules(cmd.Context(), s, owner, namespace)
			if err != nil {
				return err
			}
			return printList(s, all)
		},
	}
	cmd.Flags().BoolVarP(&everybody, "all", "A", false, "everybody's schedules")
	cmd.Flags().StringVar(&namespace, "namespace", "", "only schedules of this `TEAM`")
	return cmd
}

func schedules(ctx context.Context, s *session.Session, owner, namespace string) ([]*baiv1.Schedule, error) {
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	var all []*baiv1.Schedule
	for one, err := range c.Schedules(ctx, owner, namespace) {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func printList(s *session.Session, all []*baiv1.Schedule) error {
	switch {
	case s.Structured():
		text, err := session.Object(session.Entry{Name: "schedules", Value: session.Array(all)})
		if err != nil {
			return err
		}
		return s.Print(text)
	case s.Output == "name":
		for _, one := range all {
			if err := session.WriteText(s.Env.Out, one.GetId()+"\n"); err != nil {
				return err
			}
		}
		return nil
	case len(all) == 0:
		s.Screen.Note("baictl: no such schedules (make one: baictl submit FILE, with info.scheduling)")
		return nil
	}
	return s.PrintTable(table(all, s.Output == "wide"))
}

func table(all []*baiv1.Schedule, wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "ID"},
		{Title: "NAME", Flex: true},
		{Title: "SCHEDULING", Flex: true},
		{Title: "ZONE", Flex: true, Optional: true},
		{Title: "NEXT"},
	}}
	if wide {
		for _, title := range []string{"CONCURRENCY", "MISSED", "VERSION", "OWNER", "NAMESPACE", "DESCRIPTOR", "DESCRIPTION"} {
			t.Columns = append(t.Columns, printer.Column{Title: title, Flex: true})
		}
	}
	for _, one := range all {
		next := "never"
		switch {
		case one.GetPaused():
			next = "paused"
		case len(one.GetNextFirings()) > 0:
			next = printer.TimeIn(one.GetNextFirings()[0], one.GetTimezone())
		}
		row := []string{one.GetId(), one.GetName(), one.GetScheduling(), one.GetTimezone(), next}
		if wide {
			row = append(row, one.GetConcurrency(), one.GetMissed(), fmt.Sprint(one.GetVersion()), one.GetOwner(), one.GetNamespace(),
				one.GetDescriptorFile(), one.GetDescription())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// complete offers the schedules that there are.
func complete(s *session.Session) session.Completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var all []string
		s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, owner string) {
			for one, err := range c.Schedules(ctx, owner, "") {
				if err != nil {
					return
				}
				all = append(all, cobra.CompletionWithDesc(printer.Title(one), one.GetScheduling()))
			}
		})
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// oneScheduleCommand is a verb about one schedule.
func oneScheduleCommand(s *session.Session, cmd *cobra.Command,
	run func(ctx context.Context, c *bai.Client, name string) error,
) *cobra.Command {
	cmd.Args = session.Arguments(1, 1, "a SCHEDULE")
	cmd.ValidArgsFunction = complete(s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := s.Client()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, args[0])
	}
	return cmd
}

// printOne prints a schedule that was changed.
func printOne(s *session.Session, got *baiv1.Schedule) error {
	switch {
	case s.Structured():
		return s.Print(printer.JSON(got))
	case s.Output == "name":
		return session.WriteText(s.Env.Out, got.GetId()+"\n")
	}
	return session.WriteText(s.Env.Out, printer.Schedule(got)+"\n")
}

const oneScheduleHelp = `

With -o json or yaml: the schedule. With -o name: its ID.`

func pause(s *session.Session) *cobra.Command {
	return oneScheduleCommand(s, &cobra.Command{
		Use:   "pause SCHEDULE",
		Short: "Have a schedule fire no more until it is resumed",
		Long: `Has a schedule fire no more until it is resumed. Runs that go on go on.
Again it changes nothing.` + oneScheduleHelp,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		got, err := c.PauseSchedule(ctx, name)
		if err != nil {
			return err
		}
		return printOne(s, got)
	})
}

func resume(s *session.Session) *cobra.Command {
	return oneScheduleCommand(s, &cobra.Command{
		Use:   "resume SCHEDULE",
		Short: "Have a schedule fire again, from now on",
		Long: `Has a schedule fire again, from now on. What it did not fire while it was paused
is not made up for: baictl schedule backfill does that. Again it changes
nothing.` + oneScheduleHelp,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		got, err := c.ResumeSchedule(ctx, name)
		if err != nil {
			return err
		}
		return printOne(s, got)
	})
}

func trigger(s *session.Session) *cobra.Command {
	var key string
	cmd := oneScheduleCommand(s, &cobra.Command{
		Use:   "trigger SCHEDULE",
		Short: "Have a schedule fire now, beside its times",
		Long: `Has a schedule fire now, beside its times, and prints the ID of the run, or of
the set if its descriptor has a table sweep; also where it is paused. It is
refused while a run or a set goes on and the schedule forbids a second one.

With -o json or yaml: {"runId", "idempotencyKey"}, and for a set {"setId",
"idempotencyKey"}.`,
		Example: `  baictl watch $(baictl schedule trigger nightly)`,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		if key == "" {
			key = bai.NewKey()
		}
		fired, err := c.FireSchedule(ctx, name, key)
		if err != nil {
			return err
		}
		made := session.Entry{Name: "runId", Value: fired.RunID}
		if fired.SetID != "" {
			made = session.Entry{Name: "setId", Value: fired.SetID}
		}
		if !s.Structured() {
			return session.WriteText(s.Env.Out, fmt.Sprintln(made.Value))
		}
		text, err := session.Object(made, session.Entry{Name: "idempotencyKey", Value: key})
		if err != nil {
			return err
		}
		return s.Print(text)
	})
	cmd.Flags().StringVar(&key, "idempotency-key", "", "`KEY` under which repetitions are the same run or set (default: a new one)")
	return cmd
}

func remove(s *session.Session) *cobra.Command {
	var cancelRuns bool
	cmd := oneScheduleCommand(s, &cobra.Command{
		Use:   "delete SCHEDULE",
		Short: "End a schedule",
		Long: `Ends a schedule. Its runs and sets stay, and go on; --cancel-runs cancels those
that have not ended, without waiting for that, and says how many. Where there is
no such schedule that is said, and is no error; --cancel-runs again cancels what
is left of a deleted one.

With -o json or yaml: {"schedule", "existed"}, and with --cancel-runs
"canceledRuns" and "canceledSets", numbers.`,
		Example: `  baictl schedule delete nightly --cancel-runs`,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		if cancelRuns {
			done, err := c.DeleteScheduleAndRuns(ctx, name)
			if err != nil {
				return err
			}
			return printDeletion(s, name, done.Existed, &done)
		}
		existed, err := c.DeleteSchedule(ctx, name)
		if err != nil {
			return err
		}
		return printDeletion(s, name, existed, nil)
	})
	cmd.Flags().BoolVar(&cancelRuns, "cancel-runs", false, "cancel the runs and sets of the schedule that have not ended")
	return cmd
}

// printDeletion prints whether a schedule existed, and how many of its runs and sets were
// canceled; nil if none were to be.
func printDeletion(s *session.Session, name string, existed bool, canceled *bai.ScheduleDeletion) error {
	if s.Structured() {
		all := []session.Entry{{Name: "schedule", Value: name}, {Name: "existed", Value: existed}}
		if canceled != nil {
			all = append(all, session.Entry{Name: "canceledRuns", Value: canceled.Runs},
				session.Entry{Name: "canceledSets", Value: canceled.Sets})
		}
		text, err := session.Object(all...)
		if err != nil {
			return err
		}
		return s.Print(text)
	}
	text := "schedule " + printer.Clean(name) + " deleted"
	if !existed {
		text = "schedule " + printer.Clean(name) + " did not exist"
	}
	if canceled != nil {
		text += fmt.Sprintf(", %s and %s canceled", printer.Plural(canceled.Runs, "run"), printer.Plural(canceled.Sets, "set"))
	}
	return session.WriteText(s.Env.Out, text+"\n")
}
