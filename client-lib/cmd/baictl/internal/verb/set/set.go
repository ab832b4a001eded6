// Package set has the verbs for sets.
package set

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Set is the verb set.
func Set(s *session.Session) *cobra.Command {
	cmd := session.Parent(&cobra.Command{
		Use:   "set",
		Short: "Follow sets and end them",
		Long: `Follows sets and ends them. A set is all runs of a descriptor with a table
sweep, and is made by submitting that (baictl submit sweep.toml --name sizes) or
by a firing of a schedule. Its runs are listed by baictl list --set sizes.

A SET is named by its ID, or by the name that its owner gave it.`,
	}, list(s), get(s), results(s), watch(s), cancel(s), resume(s), rerun(s))
	cmd.Aliases = []string{"sets"}
	return cmd
}

func list(s *session.Session) *cobra.Command {
	var everybody bool
	var namespace, schedule string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sets, newest first",
		Long: `Lists the sets of --owner, newest first.

With -o json or yaml: {"sets": [...]}, without descriptors. With -o name: their
IDs.`,
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
			id, err := s.ScheduleID(cmd, schedule)
			if err != nil {
				return err
			}
			all, err := sets(cmd.Context(), s, id, owner, namespace)
			if err != nil {
				return err
			}
			return printList(s, all)
		},
	}
	cmd.Flags().BoolVarP(&everybody, "all", "A", false, "everybody's sets")
	cmd.Flags().StringVar(&namespace, "namespace", "", "only sets of this `TEAM`")
	cmd.Flags().StringVar(&schedule, "schedule", "", "only sets that this `SCHEDULE` made: its ID, or the name that its owner gave it")
	return cmd
}

// sets returns sets, newest first.
func sets(ctx context.Context, s *session.Session, schedule, owner, namespace string) ([]*baiv1.Set, error) {
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	var all []*baiv1.Set
	for one, err := range c.SetsOfSchedule(ctx, schedule, owner, namespace) {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b *baiv1.Set) int { return b.GetCreateTime().AsTime().Compare(a.GetCreateTime().AsTime()) })
	return all, nil
}

func printList(s *session.Session, all []*baiv1.Set) error {
	switch {
	case s.Structured():
		text, err := session.Object(session.Entry{Name: "sets", Value: session.Array(all)})
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
		s.Screen.Note("baictl: no such sets (make one: baictl submit FILE, with a table sweep)")
		return nil
	}
	return s.PrintTable(table(s, all, time.Now()))
}

// statusColumn is where a table of sets has the status.
const statusColumn = 2

func table(s *session.Session, all []*baiv1.Set, now time.Time) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "ID"},
		{Title: "NAME", Flex: true},
		{Title: "STATUS"},
		{Title: "CELLS", Right: true},
		{Title: "ENDED", Right: true},
		{Title: "FAILED", Right: true},
		{Title: "AGE", Right: true},
	}}
	wide := s.Output == "wide"
	if wide {
		for _, title := range []string{"OWNER", "NAMESPACE", "DESCRIPTOR", "LABELS", "DESCRIPTION", "MESSAGE"} {
			t.Columns = append(t.Columns, printer.Column{Title: title, Flex: true})
		}
	}
	for _, one := range all {
		row := []string{
			one.GetId(), one.GetName(), printer.SetStatus(one), fmt.Sprint(one.GetCellCount()),
			fmt.Sprintf("%d/%d", one.GetSucceeded()+one.GetFailed()+one.GetCanceled(), one.GetRunCount()), fmt.Sprint(one.GetFailed()),
			printer.Age(now.Sub(one.GetCreateTime().AsTime())),
		}
		if wide {
			row = append(row, one.GetOwner(), one.GetNamespace(), one.GetDescriptorFile(), printer.Labels(one.GetLabels()),
				one.GetDescription(), one.GetMessage())
		}
		t.Rows = append(t.Rows, row)
	}
	t.Paint = func(row, column int, text string) string {
		if column != statusColumn {
			return text
		}
		return s.Screen.Paint(follow.Style(printer.SetStatus(all[row])), text)
	}
	return t
}

// complete offers the sets that there are.
func complete(s *session.Session) session.Completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var all []string
		s.QueryForCompletion(cmd, func(ctx context.Context, c *bai.Client, owner string) {
			for one, err := range c.Sets(ctx, owner, "") {
				if err != nil {
					return
				}
				all = append(all, cobra.CompletionWithDesc(cmp.Or(one.GetName(), one.GetId()), printer.SetStatus(one)))
			}
		})
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// oneSetCommand is a verb about one set.
func oneSetCommand(s *session.Session, cmd *cobra.Command, run func(ctx context.Context, c *bai.Client, name string) error) *cobra.Command {
	takeSet(s, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := s.Client()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, args[0])
	}
	return cmd
}

// takeSet has a verb take one set as its argument.
func takeSet(s *session.Session, cmd *cobra.Command) {
	cmd.Args = session.Arguments(1, 1, "a SET")
	cmd.ValidArgsFunction = complete(s)
}

// printOne prints a set that was changed.
func printOne(s *session.Session, got *baiv1.Set) error {
	switch {
	case s.Structured():
		return s.Print(printer.JSON(got))
	case s.Output == "name":
		return session.WriteText(s.Env.Out, got.GetId()+"\n")
	}
	return session.WriteText(s.Env.Out, printer.Set(got)+"\n")
}

const oneSetHelp = `

With -o json or yaml: the set. With -o name: its ID.`

func watch(s *session.Session) *cobra.Command {
	return oneSetCommand(s, &cobra.Command{
		Use:   "watch SET",
		Short: "Show the progress of a set until it has finished",
		Long: `Shows the progress of a set until it has finished, and exits with the code of
its outcome: 0 if all runs succeeded, 1 if a run failed, 5 if the set or a run
was canceled. Ctrl-C detaches; the set goes on.

With -o json or yaml: one object for each change. With -o name: the set's ID at
its end.`,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		got, err := c.Set(ctx, name)
		if err != nil {
			return err
		}
		client, err := s.FollowClient()
		if err != nil {
			return err
		}
		ctx, release := s.Env.Interrupts(ctx, exitcode.ErrDetached)
		defer release()
		var failed error
		f := &follow.SetFollower{Screen: s.Screen, Watcher: client, ID: got.GetId()}
		switch {
		case s.Structured():
			f.OnChange = func(one *baiv1.Set) {
				failed = cmp.Or(failed, s.PrintOne(s.Env.Out, printer.JSON(one)))
			}
		case s.Output == "name":
			f.OnChange = func(*baiv1.Set) {}
		}
		last, err := f.Follow(ctx)
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		if s.Output == "name" {
			s.Screen.Line(last.GetId())
		}
		return exitcode.FromSet(last)
	})
}

func cancel(s *session.Session) *cobra.Command {
	return oneSetCommand(s, &cobra.Command{
		Use:   "cancel SET",
		Short: "End a set",
		Long: `Ends a set: no more of its runs are submitted, and those that have not ended are
canceled. It returns without waiting for that (see baictl set watch). Again, or
after the end, it changes nothing. baictl set resume has the set go on.` + oneSetHelp,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		got, err := c.CancelSet(ctx, name)
		if err != nil {
			return err
		}
		return printOne(s, got)
	})
}

func resume(s *session.Session) *cobra.Command {
	return oneSetCommand(s, &cobra.Command{
		Use:   "resume SET",
		Short: "Have a canceled or stopped set go on",
		Long: `Has a set that was canceled, or that a failure has stopped, go on at the next
run. Runs that failed or were canceled are not repeated. It is refused if all
runs were submitted, or while canceled runs have not ended.` + oneSetHelp,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		got, err := c.ResumeSet(ctx, name)
		if err != nil {
			return s.FailIfInvalid(err)
		}
		return printOne(s, got)
	})
}

func rerun(s *session.Session) *cobra.Command {
	var failed bool
	var key string
	cmd := oneSetCommand(s, &cobra.Command{
		Use:   "rerun SET",
		Short: "Make a set of the runs of another one",
		Long: `Makes a set of the runs of another one, with the same descriptor and code. With
--failed it has only the runs that failed, were canceled, or were never made:
the set must have finished, and repetitions that stop_when skipped stay skipped.` + oneSetHelp,
	}, func(ctx context.Context, c *bai.Client, name string) error {
		got, err := c.RerunSet(ctx, name, failed, cmp.Or(key, bai.NewKey()))
		if err != nil {
			return s.FailIfInvalid(err)
		}
		return printOne(s, got)
	})
	cmd.Flags().BoolVar(&failed, "failed", false, "only the runs that did not succeed")
	cmd.Flags().StringVar(&key, "idempotency-key", "", "the same `KEY` again is the same set")
	return cmd
}
