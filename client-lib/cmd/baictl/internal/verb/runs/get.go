package runs

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	"github.com/benchmark-ai/bai/client-lib/internal/kibana"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Get is the verb get.
func Get(s *session.Session) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "get RUN",
		Short: "Show what is known of a run",
		Long: `Shows what is known of a run, and exits with 0 whatever its outcome. -o wide
adds what was put in place of its descriptor's values, the files that were kept
of it, where it ran, and its descriptor. With -o json or yaml: the run;
"artifacts" are its files, "summaries" what its samples come to (see baictl
metrics --summary), "environment" is where it ran (see baictl environment).`,
		Args:              session.Arguments(0, 1, ""),
		ValidArgsFunction: s.OneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case name == "" && len(args) == 0:
				return session.Misuse(cmd, "a RUN is missing")
			case name != "" && len(args) > 0:
				return session.Misuse(cmd, "either --name or an argument, not both")
			case name == "":
				name = args[0]
			}
			return get(cmd.Context(), s, name)
		},
	}
	cmd.PersistentFlags().StringVar(&name, "name", "", "ID or name of the `RUN`, instead of the argument")
	_ = cmd.RegisterFlagCompletionFunc("name", s.OneRun) // fails for flags that do not exist
	return session.WithNoun(cmd)
}

func get(ctx context.Context, s *session.Session, name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	run, err := c.Get(ctx, name)
	if err != nil {
		return err
	}
	if s.Output == "name" {
		return session.Put(s.Env.Out, run.GetId()+"\n")
	}
	more, err := gather(ctx, s, c, run)
	if err != nil {
		return err
	}
	if !s.Structured() {
		return session.Put(s.Env.Out, describe(s, run, more))
	}
	text, err := session.Merge(show.JSON(run), more.entries()...)
	if err != nil {
		return err
	}
	return s.Print(text)
}

// extra is what is known of a run beside the run.
type extra struct {
	files       []*baiv1.Artifact
	summaries   *baiv1.GetSummariesResponse
	environment *baiv1.Environment
}

// gather asks for what is shown beside a run. What the platform is too old to
// have is left out.
func gather(ctx context.Context, s *session.Session, c *bai.Client, run *baiv1.Run) (e extra, err error) {
	if e.summaries, err = c.Summaries(ctx, run.GetId()); err != nil && !bai.Unsupported(err) {
		return e, err
	}
	if s.Output == "table" {
		return e, nil
	}
	if e.files, err = c.Artifacts(ctx, run.GetId()); err != nil && !bai.Unsupported(err) {
		return e, err
	}
	if e.environment, err = c.Environment(ctx, run.GetId()); err != nil && !bai.Unsupported(err) {
		return e, err
	}
	return e, nil
}

// entries are the fields of the run's JSON that are made of it.
func (e extra) entries() []session.Entry {
	var all []session.Entry
	if len(e.files) > 0 {
		all = append(all, session.Entry{Name: "artifacts", Value: session.Array(e.files)})
	}
	if len(e.summaries.GetSummaries()) > 0 {
		all = append(all, session.Entry{Name: "summaries", Value: session.Array(e.summaries.GetSummaries())})
	}
	if e.environment != nil {
		all = append(all, session.Entry{Name: "environment", Value: show.JSON(e.environment)})
	}
	return all
}

// describe is all of a run for people, one line for each thing that is known.
func describe(s *session.Session, run *baiv1.Run, more extra) string {
	var b strings.Builder
	width := widthOf(s)
	say := func(what, value string) {
		if value != "" {
			b.WriteString(show.Hang(fmt.Sprintf("%-11s ", what), value, width) + "\n")
		}
	}
	status := show.Status(run)
	say("ID", run.GetId())
	say("Name", show.Clean(run.GetName()))
	say("About", show.Clean(run.GetDescription()))
	say("Status", s.Screen.Paint(follow.Style(status), status))
	say("Why", show.Clean(verdict.Because(run.GetReason(), run.GetFailureClass(), run.GetMessage())))
	if run.ExitCode != nil {
		say("Exit code", fmt.Sprint(run.GetExitCode()))
	}
	say("Hint", endless(run, time.Now()))
	say("Progress", show.Progress(run.GetProgress()))
	say("Attempt", fmt.Sprint(run.GetAttempt()))
	say("Owner", show.Clean(run.GetOwner()))
	say("Namespace", show.Clean(run.GetNamespace()))
	say("Labels", show.Clean(show.Labels(run.GetLabels())))
	say("Descriptor", show.Clean(run.GetDescriptorFile()))
	say("From", origin(run.GetOrigination()))
	say("Repeats", run.GetLineage().GetRerunOf())
	for _, o := range run.GetOverrides() {
		say("Set", show.Clean(o.GetPath()+" = "+o.GetValue()))
	}
	say("Submitted", show.Time(run.GetCreateTime()))
	say("Started", show.Time(run.GetStartTime()))
	say("Ended", show.Time(run.GetEndTime()))
	say("Took", show.Span(run.GetCreateTime(), run.GetEndTime()))
	say("Code", code(run.GetScript()))
	say("Framework", show.Clean(strings.TrimSpace(run.GetFramework()+" "+run.GetFrameworkVersion())))
	say("Data IDs", show.Clean(strings.Join(run.GetDataIds(), ", ")))
	for _, d := range run.GetData() {
		if !show.IsCode(d) {
			say("Data set", dataSet(d))
		}
	}
	say("Stored", completeness(run.GetCompleteness()))
	say("Kibana", dashboard(s, run))
	measured(say, run, more)
	if s.Output == "wide" {
		say("Lineage", lineage(run.GetLineage()))
		say("Revision", fmt.Sprint(run.GetRevision()))
		say("Updated", show.Time(run.GetUpdateTime()))
		for _, f := range more.files {
			say("File", show.Clean(fmt.Sprintf("%s, %s, sha256 %.12s", f.GetName(), show.Bytes(f.GetSize()), f.GetSha256())))
		}
		for _, line := range show.Environment(more.environment) {
			say(line.What, line.Value)
		}
		if run.GetDescriptorToml() != "" {
			b.WriteString("\n" + show.Indent4(run.GetDescriptorToml()))
		}
	}
	return b.String()
}

// widthOf is how wide lines about a run are: scripts look for them where there is no
// terminal.
func widthOf(s *session.Session) int {
	if s.Output == "wide" || !s.Screen.IsTerminal() {
		return show.Unbound
	}
	return s.Screen.Width()
}

// measured says which numbers a run brought, and what it brought that is not there.
func measured(say func(what, value string), run *baiv1.Run, more extra) {
	for _, note := range run.GetCompleteness().GetNotes() {
		say("Dropped", show.Clean(note))
	}
	own, system := show.Apart(more.summaries.GetSummaries())
	for _, m := range show.Metrics(own) {
		say("Metric", m)
	}
	for _, m := range show.Metrics(system) {
		say("System", m)
	}
}

// dashboard is where the Kibana of the context shows a run.
func dashboard(s *session.Session, run *baiv1.Run) string {
	where, err := s.Where()
	if err != nil || where.Kibana == "" {
		return ""
	}
	var end time.Time
	if t := run.GetEndTime(); t != nil {
		end = t.AsTime()
	}
	return kibana.Link(where.Kibana, cmp.Or(where.KibanaPrefix, kibana.Prefix), run.GetId(), run.GetCreateTime().AsTime(), end)
}

// code is what was sent along with a run.
func code(c *baiv1.Script) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s, sha256 %s", show.Bytes(c.GetSize()), show.Clean(c.GetSha256()))
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
	case c.GetComplete() && (c.GetDropped() > 0 || len(c.GetNotes()) > 0):
		return show.Clean(verdict.Stored(c)) // all that was sent, which is not all that the run brought
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

func origin(o *baiv1.Origination) string {
	if o == nil {
		return ""
	}
	return show.Clean(fmt.Sprintf("%s, sha256 %.12s", o.GetUri(), o.GetSha256()))
}
