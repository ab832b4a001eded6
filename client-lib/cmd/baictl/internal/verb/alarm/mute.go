package alarm

import (
	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// muteFlags are the flags of mute.
type muteFlags struct {
	task   string
	labels []string
	all    bool
	until  string
	reason string
}

func (v *verbs) mute() *cobra.Command {
	var f muteFlags
	cmd := &cobra.Command{
		Use:         "mute --task TASK|--all --until TIME --reason TEXT",
		Short:       "Keep notices from being sent until a time",
		Annotations: session.ExtraFormats(),
		Long: `Keeps the notices of a task, of the tasks with some labels, or of all tasks of
the team from being sent until a time. Incidents are found and listed all the
same, and the log shows what was not sent. The labels are those of the newest
run of a task.

A mute has an end, at most 366 days from now. To make the same mute again
changes nothing.

With -o json or yaml: the mute. With -o name: its ID.`,
		Example: `  baictl alarms mute --task checksums --until 3d --reason "the lab moves"
  baictl alarms mute --label cluster=west --until 36h --reason "new switches"`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return v.makeMute(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.task, "task", "", "the `TASK` whose notices are not sent")
	flags.StringArrayVar(&f.labels, "label", nil, "only tasks whose newest run has label `KEY=VALUE`; may be repeated")
	flags.BoolVar(&f.all, "all", false, "all tasks of the team")
	flags.StringVar(&f.until, "until", "", "until `TIME`: for how long, as 3d or 36h, or as 2026-01-31")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` that says why, for others")
	return cmd
}

func (v *verbs) makeMute(cmd *cobra.Command, f muteFlags) error {
	labels, err := session.Pairs(cmd, "label", f.labels)
	if err != nil {
		return err
	}
	switch selects := f.task != "" || len(labels) > 0; {
	case !selects && !f.all:
		return session.UsageErrorf(cmd, "--task, --label or --all is missing: say whose notices are not sent")
	case selects && f.all:
		return session.UsageErrorf(cmd, "--all excludes --task and --label")
	case f.until == "":
		return session.UsageErrorf(cmd, "--until is missing: say when the mute ends, as 3d or 2026-01-31")
	case f.reason == "":
		return session.UsageErrorf(cmd, "--reason is missing: say why, for others")
	}
	until, err := end(cmd, f.until)
	if err != nil {
		return err
	}
	c, team, err := v.dial()
	if err != nil {
		return err
	}
	got, err := c.CreateMute(cmd.Context(),
		&baiv1.CreateMuteRequest{Namespace: team, Task: f.task, Labels: labels, All: f.all, Reason: f.reason, Until: until})
	if err != nil {
		return err
	}
	switch {
	case v.Structured():
		return v.Print(printer.JSON(got))
	case v.Output == "name":
		return session.WriteText(v.Env.Out, printer.Clean(got.GetId())+"\n")
	}
	return session.WriteText(v.Env.Out, muted(got)+"\n")
}

func (v *verbs) mutes() *cobra.Command {
	var ended bool
	cmd := &cobra.Command{
		Use:         "mutes",
		Short:       "List the mutes of a team",
		Annotations: session.ExtraFormats("csv", "jsonl"),
		Long: `Lists the mutes of a team that have not ended, the newest first.

With -o json or yaml: {"mutes": [...]}. With -o jsonl: one on each line. With
-o csv: the columns id, namespace, task, labels, user, created, until, reason.
With -o name: IDs.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, team, err := v.dial()
			if err != nil {
				return err
			}
			return printList(cmd, v.Session, 0, c.Mutes(cmd.Context(), team, ended), listing[*baiv1.Mute]{
				name: "mutes", id: (*baiv1.Mute).GetId, csv: mutesCSV, table: mutesTable, none: "no mutes",
			})
		},
	}
	cmd.Flags().BoolVar(&ended, "ended", false, "also those that ended less than 30 days ago")
	return cmd
}

func (v *verbs) unmute() *cobra.Command {
	return &cobra.Command{
		Use:         "unmute ID",
		Short:       "End a mute before its time",
		Annotations: session.ExtraFormats(),
		Long: `Ends a mute. Notices that were not sent until then are not sent later. Where
there is no such mute that is said, and is no error.

With -o json or yaml: {"mute", "existed"}.`,
		Args: session.Arguments(1, 1, "the ID of a mute"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return v.Mutes(cmd, v.namespace), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, team, err := v.dial()
			if err != nil {
				return err
			}
			existed, err := c.DeleteMute(cmd.Context(), team, args[0])
			if err != nil {
				return err
			}
			if v.Structured() {
				text, err := session.Object(session.Entry{Name: "mute", Value: args[0]}, session.Entry{Name: "existed", Value: existed})
				if err != nil {
					return err
				}
				return v.Print(text)
			}
			text := "mute " + printer.Clean(args[0]) + " ended"
			if !existed {
				text = "mute " + printer.Clean(args[0]) + " did not exist"
			}
			return session.WriteText(v.Env.Out, text+"\n")
		},
	}
}
