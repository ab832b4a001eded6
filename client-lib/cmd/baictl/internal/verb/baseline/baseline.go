// Package baseline has the verbs for baselines: names for runs that others are compared with.
package baseline

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// verbs are the verbs of baselines, which share a flag.
type verbs struct {
	*session.Session

	namespace string
}

// Baseline is the verb baseline.
func Baseline(s *session.Session) *cobra.Command {
	v := &verbs{Session: s}
	cmd := session.Parent(&cobra.Command{
		Use:   "baseline",
		Short: "Name the runs that others are compared with",
		Long: `Names the runs that others are compared with. A baseline belongs to a team. It
stands for the runs that it was set to, also when there are newer ones, and
keeps its last 50 revisions: who set it to which runs, when and why.

baseline:NAME is the baseline in places that take runs, as in
baictl compare baseline:main nightly-42.`,
	}, v.set(), v.get(), v.list(), v.history(), v.remove())
	cmd.Aliases = []string{"baselines"}
	cmd.PersistentFlags().StringVar(&v.namespace, "namespace", "", "`TEAM` of the baseline (default: that of the context, or \"default\")")
	return cmd
}

// one returns a verb about one baseline.
func (v *verbs) one(cmd *cobra.Command, run func(ctx context.Context, c *bai.Client, team, name string) error) *cobra.Command {
	cmd.Args = session.Arguments(1, 1, "a NAME")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return v.Baselines(cmd, v.namespace, ""), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, team, err := v.dial()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, team, strings.TrimPrefix(args[0], prefix))
	}
	return cmd
}

// prefix begins a baseline in places that take runs.
const prefix = "baseline:"

// dial returns a client, and the team of the baselines.
func (v *verbs) dial() (c *bai.Client, team string, err error) {
	if c, err = v.Client(); err != nil {
		return nil, "", err
	}
	team, err = v.Team(v.namespace)
	return c, team, err
}

func (v *verbs) set() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "set NAME RUN|SET|TASK@RANGE|baseline:OTHER",
		Short: "Make a baseline stand for runs",
		Long: `Makes a baseline stand for a run, for the runs of a set, for those of a task in
a range of time, or for those of another baseline, from now on. RANGE is FROM or
FROM..TO: dates, times of RFC 3339, or times before now such as -14d or -36h.
The runs are those of now: later runs of the task are not added. To set a
baseline to the same again changes nothing.

With -o json or yaml: the baseline with its newest revision. With -o name: its
name.`,
		Example: `  baictl baseline set main nightly-42 --reason "release 1.4"
  baictl baseline set main checksums@-14d
  baictl baseline set release baseline:main`,
		Args: session.Arguments(2, 2, "a NAME, or what it stands for,"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return v.Baselines(cmd, v.namespace, ""), cobra.ShellCompDirectiveNoFileComp
			case 1:
				runs, directive := v.Runs(cmd, nil, toComplete)
				return append(v.Baselines(cmd, v.namespace, prefix), runs...), directive
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, team, err := v.dial()
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(args[0], prefix)
			got, err := c.SetBaseline(cmd.Context(),
				&baiv1.SetBaselineRequest{Name: name, Namespace: team, Operand: args[1], Reason: reason})
			if err != nil {
				return err
			}
			return v.printOne(got, sentence(got)+"\n")
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why, for others")
	return cmd
}

// printOne prints a baseline: as a message, its name, or a text for people.
func (v *verbs) printOne(got *baiv1.Baseline, text string) error {
	switch {
	case v.Structured():
		return v.Print(printer.JSON(got))
	case v.Output == "name":
		text = printer.Clean(got.GetName()) + "\n"
	}
	return session.WriteText(v.Env.Out, text)
}

func (v *verbs) get() *cobra.Command {
	return v.one(&cobra.Command{
		Use:   "get NAME",
		Short: "Show the runs of a baseline, who set it and why",
		Long: `Shows the runs of a baseline, who set it, when and why.

With -o json or yaml: the baseline with its newest revision. With -o name: its
name.`,
	}, func(ctx context.Context, c *bai.Client, team, name string) error {
		got, err := c.Baseline(ctx, team, name)
		if err != nil {
			return err
		}
		got.Revisions = got.GetRevisions()[:min(1, len(got.GetRevisions()))]
		width := printer.Unbound // scripts look for its lines
		if v.Screen.IsTerminal() {
			width = v.Screen.Width()
		}
		return v.printOne(got, describe(got, width))
	})
}

func (v *verbs) history() *cobra.Command {
	return v.one(&cobra.Command{
		Use:   "history NAME",
		Short: "Show what a baseline stood for before",
		Long: `Shows the revisions of a baseline, the newest first, 50 at most: what it stood
for, who set it, when and why.

With -o json or yaml: the baseline with its revisions and their runs. With
-o name: the numbers of the revisions.`,
	}, func(ctx context.Context, c *bai.Client, team, name string) error {
		got, err := c.Baseline(ctx, team, name)
		if err != nil {
			return err
		}
		switch {
		case v.Structured():
			return v.Print(printer.JSON(got))
		case v.Output == "name":
			for _, r := range got.GetRevisions() {
				if err := session.WriteText(v.Env.Out, fmt.Sprintln(r.GetRevision())); err != nil {
					return err
				}
			}
			return nil
		}
		return v.PrintTable(revisions(got))
	})
}

func (v *verbs) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the baselines of a team",
		Long: `Lists the baselines of a team by name, and what they stand for.

With -o json or yaml: {"baselines": [...]}, each with its newest revision and
without the IDs of its runs. With -o name: their names.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, team, err := v.dial()
			if err != nil {
				return err
			}
			var all []*baiv1.Baseline
			for one, err := range c.Baselines(cmd.Context(), team) {
				if err != nil {
					return err
				}
				all = append(all, one)
			}
			return v.printList(all)
		},
	}
}

func (v *verbs) printList(all []*baiv1.Baseline) error {
	switch {
	case v.Structured():
		text, err := session.Object(session.Entry{Name: "baselines", Value: session.Array(all)})
		if err != nil {
			return err
		}
		return v.Print(text)
	case v.Output == "name":
		for _, one := range all {
			if err := session.WriteText(v.Env.Out, printer.Clean(one.GetName())+"\n"); err != nil {
				return err
			}
		}
		return nil
	case len(all) == 0:
		v.Screen.Note("baictl: no such baselines (make one: baictl baseline set NAME RUN)")
		return nil
	}
	return v.PrintTable(table(all, v.Output == "wide"))
}

func (v *verbs) remove() *cobra.Command {
	return v.one(&cobra.Command{
		Use:   "delete NAME",
		Short: "Remove a baseline",
		Long: `Removes a baseline and its revisions. Its runs stay. Where there is no such
baseline that is said, and is no error.

With -o json or yaml: {"baseline", "existed"}.`,
	}, func(ctx context.Context, c *bai.Client, team, name string) error {
		existed, err := c.DeleteBaseline(ctx, team, name)
		if err != nil {
			return err
		}
		if v.Structured() {
			text, err := session.Object(session.Entry{Name: "baseline", Value: name}, session.Entry{Name: "existed", Value: existed})
			if err != nil {
				return err
			}
			return v.Print(text)
		}
		text := "baseline " + printer.Clean(name) + " deleted"
		if !existed {
			text = "baseline " + printer.Clean(name) + " did not exist"
		}
		return session.WriteText(v.Env.Out, text+"\n")
	})
}
