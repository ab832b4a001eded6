package verb

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func getCommand(s *session) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "get RUN",
		Short: "Show what is known of a run",
		Long: `Shows what is known of a run, and exits with 0 whatever its outcome. -o wide adds
its descriptor. With -o json or yaml: the run.`,
		Args:              arguments(0, 1, ""),
		ValidArgsFunction: s.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case name == "" && len(args) == 0:
				return misuse(cmd, "a RUN is missing")
			case name != "" && len(args) > 0:
				return misuse(cmd, "either --name or an argument, not both")
			case name == "":
				name = args[0]
			}
			return s.get(cmd.Context(), name)
		},
	}
	cmd.PersistentFlags().StringVar(&name, "name", "", "ID or name of the `RUN`, instead of the argument")
	_ = cmd.RegisterFlagCompletionFunc("name", s.completeRuns) // fails for flags that do not exist
	return withNoun(cmd)
}

func (s *session) get(ctx context.Context, name string) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	run, err := c.Get(ctx, name)
	if err != nil {
		return err
	}
	switch s.output {
	case "json", "yaml":
		return s.print(show.JSON(run))
	case "name":
		return put(s.env.Out, run.GetId()+"\n")
	}
	return put(s.env.Out, s.describe(run))
}

// describe is all of a run for people, one line for each thing that is known.
func (s *session) describe(run *baiv1.Run) string {
	var b strings.Builder
	say := func(what, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", what, value)
		}
	}
	status := show.Status(run)
	say("ID", run.GetId())
	say("Name", show.Clean(run.GetName()))
	say("Status", s.screen.Paint(follow.Style(status), status))
	say("Why", show.Clean(verdict.Because(run.GetReason(), run.GetFailureClass(), run.GetMessage())))
	if run.ExitCode != nil {
		say("Exit code", fmt.Sprint(run.GetExitCode()))
	}
	say("Progress", show.Progress(run.GetProgress()))
	say("Attempt", fmt.Sprint(run.GetAttempt()))
	say("Owner", show.Clean(run.GetOwner()))
	say("Namespace", show.Clean(run.GetNamespace()))
	say("Labels", show.Clean(show.Labels(run.GetLabels())))
	say("Descriptor", show.Clean(run.GetDescriptorFile()))
	say("Submitted", show.Time(run.GetCreateTime()))
	say("Started", show.Time(run.GetStartTime()))
	say("Ended", show.Time(run.GetEndTime()))
	say("Took", show.Span(run.GetCreateTime(), run.GetEndTime()))
	for _, d := range run.GetData() {
		say("Data set", dataSet(d))
	}
	say("Stored", completeness(run.GetCompleteness()))
	if s.output == "wide" {
		say("Lineage", lineage(run.GetLineage()))
		say("Revision", fmt.Sprint(run.GetRevision()))
		say("Updated", show.Time(run.GetUpdateTime()))
		b.WriteString(script(run.GetDescriptorToml()))
	}
	return b.String()
}

func dataSet(d *baiv1.DataSet) string {
	text := fmt.Sprintf("%s at %s", d.GetSource(), d.GetPath())
	if d.GetSha256() != "" {
		text += fmt.Sprintf(", %s, sha256 %.12s", show.Bytes(d.GetSize()), d.GetSha256())
	}
	return show.Clean(text)
}

func completeness(c *baiv1.Completeness) string {
	switch {
	case c == nil:
		return ""
	case c.GetComplete():
		return show.Clean(verdict.Stored(c) + ", complete")
	default:
		return show.Clean(verdict.Missing(c))
	}
}

func lineage(l *baiv1.Lineage) string {
	if l == nil {
		return ""
	}
	return show.Clean(string(show.JSON(l)))
}

// script is a descriptor, set off and without what could play tricks.
func script(toml string) string {
	if toml == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n")
	for line := range strings.Lines(toml) {
		b.WriteString(strings.TrimRight("    "+show.Clean(strings.TrimRight(line, "\r\n")), " ") + "\n")
	}
	return b.String()
}
