package runs

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/internal/kibana"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Get is the verb get.
func Get(s *session.Session) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "get RUN",
		Short: "Show a run",
		Long: `Shows a run, and exits with 0 for any outcome. -o wide adds what was put in
place of its descriptor's values, the files that were kept of it, where it ran,
and its descriptor. With -o json or yaml: the run; "artifacts" are its files,
"summaries" what its samples come to (see baictl metrics --summary),
"unknownMetrics" what could not be computed, as its cost, and why,
"environment" is where it ran (see baictl environment).`,
		Args:              session.Arguments(0, 1, ""),
		ValidArgsFunction: s.OneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case name == "" && len(args) == 0:
				return session.UsageErrorf(cmd, "a RUN is missing")
			case name != "" && len(args) > 0:
				return session.UsageErrorf(cmd, "either --name or an argument, not both")
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
		return session.WriteText(s.Env.Out, run.GetId()+"\n")
	}
	more, err := fetchDetails(ctx, s, c, run)
	if err != nil {
		return err
	}
	if !s.Structured() {
		return session.WriteText(s.Env.Out, describe(s, run, more))
	}
	text, err := session.Merge(printer.JSON(run), more.entries()...)
	if err != nil {
		return err
	}
	return s.Print(text)
}

// details are answers about a run beside the run itself.
type details struct {
	files       []*baiv1.Artifact
	summaries   *baiv1.GetSummariesResponse
	environment *baiv1.Environment
}

// fetchDetails requests the details of a run. Details that the platform does not support
// are left out.
func fetchDetails(ctx context.Context, s *session.Session, c *bai.Client, run *baiv1.Run) (e details, err error) {
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
func (e details) entries() []session.Entry {
	var all []session.Entry
	if len(e.files) > 0 {
		all = append(all, session.Entry{Name: "artifacts", Value: session.Array(e.files)})
	}
	if len(e.summaries.GetSummaries()) > 0 {
		all = append(all, session.Entry{Name: "summaries", Value: session.Array(e.summaries.GetSummaries())})
	}
	if len(e.summaries.GetUnknown()) > 0 {
		all = append(all, session.Entry{Name: "unknownMetrics", Value: session.Array(e.summaries.GetUnknown())})
	}
	if e.environment != nil {
		all = append(all, session.Entry{Name: "environment", Value: printer.JSON(e.environment)})
	}
	return all
}

// messageLabel is the label of a run's message, which tells why it is so only if there is a reason.
func messageLabel(run *baiv1.Run) string {
	if run.GetReason() == "" {
		return "Message"
	}
	return "Why"
}

// describe is all of a run for people, one line for each thing that is known.
func describe(s *session.Session, run *baiv1.Run, more details) string {
	var b strings.Builder
	width := widthOf(s)
	addLine := func(label, value string) {
		if value != "" {
			b.WriteString(printer.Hang(fmt.Sprintf("%-11s ", label), value, width) + "\n")
		}
	}
	status := printer.Status(run)
	addLine("ID", run.GetId())
	addLine("Name", printer.Clean(run.GetName()))
	addLine("About", printer.Clean(run.GetDescription()))
	addLine("Status", s.Screen.Paint(follow.Style(status), status))
	addLine(messageLabel(run), printer.Clean(exitcode.FailureText(run.GetReason(), run.GetFailureClass(), run.GetMessage())))
	if run.ExitCode != nil {
		addLine("Exit code", fmt.Sprint(run.GetExitCode()))
	}
	addLine("Hint", longRunHint(run, time.Now()))
	addLine("Progress", printer.Progress(run.GetProgress()))
	addLine("Attempt", fmt.Sprint(run.GetAttempt()))
	addLine("Owner", printer.Clean(run.GetOwner()))
	addLine("Namespace", printer.Clean(run.GetNamespace()))
	addLine("Labels", printer.Clean(printer.Labels(run.GetLabels())))
	addLine("Descriptor", printer.Clean(run.GetDescriptorFile()))
	addLine("From", origin(run.GetOrigination()))
	addLine("Repeats", run.GetLineage().GetRerunOf())
	addLine("Confirms", run.GetLineage().GetConfirms())
	addLine("Compares", printer.Clean(run.GetLineage().GetCompares()))
	for _, o := range run.GetOverrides() {
		addLine("Set", printer.Clean(o.GetPath()+" = "+o.GetValue()))
	}
	addLine("Submitted", printer.Time(run.GetCreateTime()))
	addLine("Started", printer.Time(run.GetStartTime()))
	addLine("Ended", printer.Time(run.GetEndTime()))
	addLine("Took", printer.Span(run.GetCreateTime(), run.GetEndTime()))
	addLine("Code", code(run.GetScript()))
	addLine("Framework", printer.Clean(strings.TrimSpace(run.GetFramework()+" "+run.GetFrameworkVersion())))
	addLine("Data IDs", printer.Clean(strings.Join(run.GetDataIds(), ", ")))
	describeData(addLine, run)
	addLine("Kibana", dashboard(s, run))
	describeMetrics(addLine, run, more)
	if s.Output == "wide" {
		addLine("Lineage", lineage(run.GetLineage()))
		addLine("Revision", fmt.Sprint(run.GetRevision()))
		addLine("Updated", printer.Time(run.GetUpdateTime()))
		for _, u := range more.summaries.GetUnknown() {
			addLine("Not known", printer.Clean(u.GetMetric()+": "+u.GetReason()))
		}
		for _, f := range more.files {
			addLine("File", printer.Clean(fmt.Sprintf("%s, %s, sha256 %.12s", f.GetName(), printer.Bytes(f.GetSize()), f.GetSha256())))
		}
		for _, line := range printer.Environment(more.environment) {
			addLine(line.Label, line.Value)
		}
		if run.GetDescriptorToml() != "" {
			b.WriteString("\n" + printer.Indent4(run.GetDescriptorToml()))
		}
	}
	return b.String()
}

// widthOf is how wide lines about a run are: scripts look for them where there is no
// terminal.
func widthOf(s *session.Session) int {
	if s.Output == "wide" || !s.Screen.IsTerminal() {
		return printer.Unbound
	}
	return s.Screen.Width()
}

// describeMetrics lists a run's metrics, and the missing ones.
func describeMetrics(addLine func(what, value string), run *baiv1.Run, more details) {
	for _, note := range run.GetCompleteness().GetNotes() {
		addLine("Dropped", printer.Clean(note))
	}
	own, system := printer.SplitSystem(more.summaries.GetSummaries())
	for _, m := range printer.Metrics(own) {
		addLine("Metric", m)
	}
	for _, m := range printer.Metrics(system) {
		addLine("System", m)
	}
}

// describeData adds the data that a run has read, and where its own are.
func describeData(addLine func(what, value string), run *baiv1.Run) {
	for _, d := range run.GetData() {
		if !printer.IsCode(d) {
			addLine("Data set", dataSet(d))
		}
	}
	addLine("Stored", completeness(run.GetCompleteness()))
	for _, o := range run.GetOwed() {
		addLine("Owed", owed(o))
	}
}

// dashboard is where the Kibana of the context shows a run.
func dashboard(s *session.Session, run *baiv1.Run) string {
	where, err := s.ResolveContext()
	if err != nil || where.Kibana == "" {
		return ""
	}
	var end time.Time
	if t := run.GetEndTime(); t != nil {
		end = t.AsTime()
	}
	return kibana.Link(where.Kibana, cmp.Or(where.KibanaPrefix, kibana.Prefix), run.GetId(), run.GetCreateTime().AsTime(), end)
}

// code describes the code that was sent along with a run.
func code(c *baiv1.Script) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s, sha256 %s", printer.Bytes(c.GetSize()), printer.Clean(c.GetSha256()))
}

func dataSet(d *baiv1.DataSet) string {
	text := fmt.Sprintf("%s at %s", d.GetSource(), d.GetPath())
	if d.GetSha256() != "" {
		text += fmt.Sprintf(", %s, sha256 %.12s", printer.Bytes(d.GetSize()), d.GetSha256())
	}
	return printer.Clean(text)
}

func completeness(c *baiv1.Completeness) string {
	switch {
	case c == nil:
		return ""
	case c.GetComplete() && (c.GetDropped() > 0 || len(c.GetNotes()) > 0):
		return printer.Clean(exitcode.StoredText(c)) // all that was sent, which is not all that the run brought
	case c.GetComplete():
		return printer.Clean(exitcode.StoredText(c) + ", complete")
	default:
		return printer.Clean(exitcode.CompletenessText(c))
	}
}

// owed describes a destination that lacks the results of a run.
func owed(o *baiv1.OwedDestination) string {
	text := fmt.Sprintf("%s, since %s", o.GetName(), printer.Time(o.GetSince()))
	if o.GetError() != "" {
		text += ", last error: " + o.GetError()
	}
	return printer.Clean(text)
}

func lineage(l *baiv1.Lineage) string {
	if l == nil {
		return ""
	}
	return printer.Clean(string(printer.JSON(l)))
}

func origin(o *baiv1.Origination) string {
	if o == nil {
		return ""
	}
	return printer.Clean(fmt.Sprintf("%s, sha256 %.12s", o.GetUri(), o.GetSha256()))
}
