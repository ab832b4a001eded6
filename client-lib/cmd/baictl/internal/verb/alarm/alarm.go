// Package alarm has the verbs for alarms: what their rules have found, what people say of it,
// mutes, and the log of notices.
package alarm

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// verbs are the verbs of alarms, which share a flag.
type verbs struct {
	*session.Session

	namespace string
}

// Alarms is the verb alarms.
func Alarms(s *session.Session) *cobra.Command {
	v := &verbs{Session: s}
	var flags listFlags
	cmd := session.Parent(&cobra.Command{
		Use:         "alarms",
		Short:       "Show what alarms have found, and say something of it",
		Annotations: session.ExtraFormats("csv", "jsonl"),
		Long: `Lists the incidents of a team that are open, the newest first. An incident is a
change, a crossed limit, missing data or a run that failed, as the tables
[[alarms]] of descriptors watch for them. docs/incidents.md has the conditions,
states and causes.

States: suspected (must be confirmed before notices are sent), confirming,
firing, acknowledged, and of incidents that are over, resolved and dismissed.
SINCE is the day of the state. CHANGE is the size of a change or, of a limit,
the value and the limit. CAUSE is regression (what is measured changed), method
(how it is measured), environment (where), noise, or insufficient (too few
points).

With --watch it goes on: a line, a JSON object or a YAML document for each
incident that is open, and for each that is new or has changed, until Ctrl-C.

Other verbs take an ID or its beginning, of 6 characters or more.

With -o json or yaml: {"incidents": [...]}, messages of the API without recent
points. With -o jsonl: one on each line. With -o csv: a row for each, with the
columns id, namespace, task, metric, unit, labels, cell, when, state, since,
opened, kind, direction, before, after, magnitude, low, high, level, p, limit,
cause, last_good_run, last_good_version, first_bad_run, first_bad_version,
silent, acknowledged_by, reason, until, message. With -o name: IDs.`,
		Example: `  baictl alarms
  baictl alarms --all --task checksums
  baictl alarms --watch
  baictl alarms show 0a1b2c
  baictl alarms ack 0a1b2c --reason "known, fixed in 1.5" --until 14d`,
	}, v.show(), v.ack(), v.resolve(), v.mute(), v.mutes(), v.unmute(), v.log(), v.test())
	cmd.Aliases = []string{"alarm", "incidents"}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return v.list(cmd, flags) }
	cmd.PersistentFlags().StringVar(&v.namespace, "namespace", "", "`TEAM` of the incidents (default: that of the context, or \"default\")")
	flags.add(cmd)
	return cmd
}

// listFlags are the flags of the list of incidents.
type listFlags struct {
	all    bool
	task   string
	metric string
	states []string
	limit  int
	watch  bool
}

func (f *listFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "also incidents that are over")
	flags.StringVar(&f.task, "task", "", "only incidents of this `TASK`")
	flags.StringVar(&f.metric, "metric", "", "only incidents of this `METRIC`")
	flags.StringSliceVar(&f.states, "state", nil, "only incidents in these `STATES`, also if they are over")
	flags.IntVar(&f.limit, "limit", defaultLimit, "at most so `MANY`; 0 means all")
	flags.BoolVarP(&f.watch, "watch", "w", false, "continue, and show changes")
	states := []string{"suspected", "confirming", "firing", "acknowledged", "resolved", "dismissed"}
	// fails for flags that do not exist
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp))
}

// defaultLimit is how many things a list has unless the user says so.
const defaultLimit = 50

func (v *verbs) list(cmd *cobra.Command, f listFlags) error {
	if f.watch {
		return v.watch(cmd, f)
	}
	c, team, err := v.dial()
	if err != nil {
		return err
	}
	all := c.Incidents(cmd.Context(), &baiv1.ListIncidentsRequest{
		Namespace: team, Task: f.task, Metric: f.metric, States: f.states, Open: !f.all && len(f.states) == 0, PageSize: pageSize(f.limit),
	})
	return printList(cmd, v.Session, f.limit, all, listing[*baiv1.Incident]{
		name: "incidents", id: (*baiv1.Incident).GetId, csv: incidentsCSV,
		none:  "no incidents match (baictl alarms --all shows those that are over)",
		table: func(all []*baiv1.Incident, wide bool) printer.Table { return v.painted(incidentsTable(all, wide)) },
	})
}

// dial returns a client, and the team of the incidents.
func (v *verbs) dial() (c *bai.Client, team string, err error) {
	if c, err = v.Client(); err != nil {
		return nil, "", err
	}
	team, err = v.Team(v.namespace)
	return c, team, err
}

// one returns a verb about one incident.
func (v *verbs) one(cmd *cobra.Command, open bool, run func(ctx context.Context, cmd *cobra.Command, id string) error) *cobra.Command {
	cmd.Args = session.Arguments(1, 1, "the ID of an incident")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return v.Incidents(cmd, v.namespace, open), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), cmd, args[0]) }
	return cmd
}

// ackFlags are the flags of ack.
type ackFlags struct {
	reason string
	until  string
	accept bool
	wrong  bool
}

func (v *verbs) ack() *cobra.Command {
	var f ackFlags
	cmd := v.one(&cobra.Command{
		Use:         "ack ID --reason TEXT",
		Short:       "Say that an incident is known, accepted or none",
		Annotations: session.ExtraFormats(),
		Long: `Says that you know of an incident. No notice of it is sent until it is over,
until --until, or until it gets clearly worse. To say the same again changes
nothing; to say something else takes the place of the first.

--accept ends the incident: the new level is the good one. --wrong ends it, too:
it is dismissed, and counts against its rule.

With -o json or yaml: the incident. With -o name: its ID.`,
		Example: `  baictl alarms ack 0a1b2c --reason "known, fixed in 1.5" --until 14d
  baictl alarms ack 0a1b2c --reason "the price of encryption" --accept
  baictl alarms ack 0a1b2c --reason "a neighbour on the machine" --wrong`,
	}, true, func(ctx context.Context, cmd *cobra.Command, id string) error { return v.acknowledge(ctx, cmd, id, f) })
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "`TEXT` that says why, for others")
	flags.StringVar(&f.until, "until", "", "until `TIME`: for how long, as 14d or 36h, or as 2026-01-31")
	flags.BoolVar(&f.accept, "accept", false, "the new level is the good one: the incident is resolved")
	flags.BoolVar(&f.wrong, "wrong", false, "there is no incident: it is dismissed")
	return cmd
}

func (v *verbs) resolve() *cobra.Command {
	f := ackFlags{accept: true}
	cmd := v.one(&cobra.Command{
		Use:         "resolve ID --reason TEXT",
		Short:       "End an incident: its new level is the good one",
		Annotations: session.ExtraFormats(),
		Long: `Ends an incident: the new level is the good one from now on. This is the same as
ack --accept. An incident whose level is back ends without it.

With -o json or yaml: the incident. With -o name: its ID.`,
		Example: `  baictl alarms resolve 0a1b2c --reason "the price of encryption"`,
	}, true, func(ctx context.Context, cmd *cobra.Command, id string) error { return v.acknowledge(ctx, cmd, id, f) })
	cmd.Flags().StringVar(&f.reason, "reason", "", "`TEXT` that says why, for others")
	return cmd
}

func (v *verbs) acknowledge(ctx context.Context, cmd *cobra.Command, id string, f ackFlags) error {
	switch {
	case f.reason == "":
		return session.UsageErrorf(cmd, "--reason is missing: say why, for others")
	case f.accept && f.wrong:
		return session.UsageErrorf(cmd, "--accept and --wrong exclude each other")
	case f.until != "" && (f.accept || f.wrong):
		return session.UsageErrorf(cmd, "--until has no effect with --accept and --wrong, which end the incident")
	}
	until, err := end(cmd, f.until)
	if err != nil {
		return err
	}
	c, team, err := v.dial()
	if err != nil {
		return err
	}
	got, err := c.AckIncident(ctx,
		&baiv1.AckIncidentRequest{Incident: id, Namespace: team, Reason: f.reason, Until: until, Accept: f.accept, Wrong: f.wrong})
	if err != nil {
		return err
	}
	switch {
	case v.Structured():
		return v.Print(printer.JSON(got))
	case v.Output == "name":
		return session.WriteText(v.Env.Out, printer.Clean(got.GetId())+"\n")
	}
	return session.WriteText(v.Env.Out, acknowledged(got)+"\n")
}

// end reads the flag until; nil if it is empty.
func end(cmd *cobra.Command, text string) (*timestamppb.Timestamp, error) {
	at, err := session.ParseEnd(cmd, "until", text, time.Now(), time.Local)
	if err != nil || at.IsZero() {
		return nil, err
	}
	return timestamppb.New(at), nil
}
