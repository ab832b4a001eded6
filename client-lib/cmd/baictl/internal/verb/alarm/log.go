package alarm

import (
	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func (v *verbs) log() *cobra.Command {
	var receiver, incident string
	var statuses []string
	var limit int
	cmd := &cobra.Command{
		Use:         "log",
		Short:       "Show which notices were sent to whom, and what was answered",
		Annotations: session.ExtraFormats("csv", "jsonl"),
		Long: `Shows the notices of a team, the newest first: to which receiver, about what,
whether they were sent, and what the receiver answered.

Statuses: waiting (the receiver is away, over its rate, or in its quiet hours),
sent, refused (by the receiver, for good), muted (see baictl alarms mutes),
summed (a later notice, a digest, has it).

With -o json or yaml: {"notices": [...]}. With -o jsonl: one on each line. With
-o csv: the columns id, receiver, namespace, status, status_time, created,
retry, became, incidents, more, attempts, test, message, answer. With -o name:
IDs.`,
		Example: `  baictl alarms log --receiver perf-team
  baictl alarms log --incident 0a1b2c
  baictl alarms log --status waiting,refused`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, team, err := v.dial()
			if err != nil {
				return err
			}
			all := c.Notices(cmd.Context(), &baiv1.ListNoticesRequest{
				Namespace: team, Receiver: receiver, Incident: incident, Statuses: statuses, PageSize: pageSize(limit),
			})
			return printList(cmd, v.Session, limit, all, listing[*baiv1.Notice]{
				name: "notices", id: (*baiv1.Notice).GetId, csv: noticesCSV, none: "no notices",
				table: func(all []*baiv1.Notice, wide bool) printer.Table { return v.painted(noticesTable(all, wide)) },
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&receiver, "receiver", "", "only notices to the receiver of this `NAME`")
	flags.StringVar(&incident, "incident", "", "only notices about the incident of this `ID`, or its group")
	flags.StringSliceVar(&statuses, "status", nil, "only notices with these `STATUSES`")
	flags.IntVar(&limit, "limit", defaultLimit, "at most so `MANY`; 0 means all")
	// They fail for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("status",
		cobra.FixedCompletions([]string{"waiting", "sent", "refused", "muted", "summed"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("receiver", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return v.Receivers(cmd, v.namespace), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("incident", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return v.Incidents(cmd, v.namespace, false), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}
