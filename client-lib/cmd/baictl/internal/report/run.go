package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/timeline"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// So many lines of the log are shown, and so many characters of each.
const (
	maxLines = 1000
	maxLine  = 1000
)

// RunReport is all that a report on a run is made of. What a platform does not have is left out.
type RunReport struct {
	Run         *baiv1.Run
	Summaries   *baiv1.GetSummariesResponse
	Metrics     printer.Table // the summaries of the benchmark's metrics
	System      printer.Table // the summaries of the platform's measurements
	Environment *baiv1.Environment
	Artifacts   []*baiv1.Artifact
	Changes     []*baiv1.Change
	Lines       []*baiv1.LogLine // the last ones
	Source      Source
}

// HTML returns the report on a run.
func (r RunReport) HTML() (string, error) {
	p := page{
		Title: printer.Clean("Run " + cmp.Or(r.Run.GetName(), r.Run.GetId())), About: printer.Clean(r.Run.GetDescription()),
		Status: printer.Status(r.Run),
		Why:    printer.Clean(exitcode.FailureText(r.Run.GetReason(), r.Run.GetFailureClass(), r.Run.GetMessage())),
		Facts:  r.facts(), Made: r.Source.text(),
	}
	p.Sections = append(p.Sections, r.metrics(), r.events())
	if len(r.Artifacts) > 0 {
		p.Sections = append(p.Sections, r.artifacts())
	}
	p.Sections = append(p.Sections, r.log())
	if len(r.Environment.GetPods()) > 0 {
		p.Sections = append(p.Sections, environment("Where it ran", r.Environment))
	}
	if text := r.Run.GetDescriptorToml(); text != "" {
		p.Sections = append(p.Sections, descriptor(text))
	}
	return p.html()
}

func (r RunReport) facts() []printer.Line {
	run := r.Run
	var f facts
	f.add("ID", run.GetId())
	f.add("Name", run.GetName())
	f.add("Owner", run.GetOwner())
	f.add("Namespace", run.GetNamespace())
	f.add("Labels", printer.Labels(run.GetLabels()))
	f.add("Descriptor", run.GetDescriptorFile())
	f.add("From", run.GetOrigination().GetUri())
	f.add("Repeats", run.GetLineage().GetRerunOf())
	f.add("Set", run.GetLineage().GetSetId())
	f.add("Cell", run.GetLineage().GetCell())
	if run.GetLineage().GetSetId() != "" {
		f.add("Repetition", repetition(run.GetLineage()))
	}
	f.add("Schedule", run.GetLineage().GetScheduleId())
	for _, o := range run.GetOverrides() {
		f.add("Override", o.GetPath()+" = "+o.GetValue())
	}
	f.add("Attempt", fmt.Sprint(run.GetAttempt()))
	if run.ExitCode != nil {
		f.add("Exit code", fmt.Sprint(run.GetExitCode()))
	}
	f.add("Submitted", instant(run.GetCreateTime()))
	f.add("Started", instant(run.GetStartTime()))
	f.add("Ended", instant(run.GetEndTime()))
	f.add("Took", printer.Span(run.GetCreateTime(), run.GetEndTime()))
	f.add("Framework", strings.TrimSpace(run.GetFramework()+" "+run.GetFrameworkVersion()))
	f.add("Image", r.Environment.GetImage())
	for _, pod := range r.Environment.GetPods() {
		f.add("Image digest", pod.GetImageDigest())
		f.add("Platform", pod.GetPlatformVersion())
		f.add("Machine", pod.GetMachine().GetCpuModel())
	}
	if c := run.GetCompleteness(); c != nil {
		f.add("Stored", exitcode.CompletenessText(c))
	}
	return withoutRepeats(f)
}

// metrics are the summaries of the run.
func (r RunReport) metrics() section {
	s := section{Title: "Metrics"}
	for _, t := range []table{{"Of the benchmark", r.Metrics}, {"Measured by the platform", r.System}} {
		if len(t.Rows) > 0 {
			t.Rows = cleanRows(t.Rows)
			s.Tables = append(s.Tables, t)
		}
	}
	switch {
	case r.Summaries.GetPending():
		s.Notes = append(s.Notes, "no summary yet: the run is not over, or samples are missing")
	case len(s.Tables) == 0:
		s.Notes = append(s.Notes, "the run has no samples")
	case !r.Summaries.GetComplete():
		s.Notes = append(s.Notes, "samples are missing: this is a summary of the others")
	}
	for _, note := range append(r.Summaries.GetNotes(), r.Run.GetCompleteness().GetNotes()...) {
		s.Notes = append(s.Notes, printer.Clean(note))
	}
	if len(s.Tables) > 0 {
		s.Notes = append(s.Notes,
			"from and to are the ends of the interval of the median over the samples of this run: it says how steady the run was, and nothing about the next one")
	}
	return s
}

// cleanRows returns rows without characters that are not shown.
func cleanRows(rows [][]string) [][]string {
	all := make([][]string, len(rows))
	for i, row := range rows {
		for _, text := range row {
			all[i] = append(all[i], printer.Clean(text))
		}
	}
	return all
}

// events are the steps of the run.
func (r RunReport) events() section {
	t := table{Caption: "Steps of the run; repeated reports of progress are left out", Table: printer.Table{Columns: []printer.Column{
		{Title: "Time"}, {Title: "Since the submission", Right: true}, {Title: "Attempt", Right: true}, {Title: "Phase"}, {Title: "What"},
	}}}
	for _, step := range timeline.Build(r.Run, r.Changes, r.Source.Time).Steps {
		c := step.Change
		phase := printer.Word(c.GetPhase())
		if c.GetOutcome() != 0 {
			phase = printer.Word(c.GetOutcome())
		}
		t.Rows = append(t.Rows, []string{
			instant(c.GetTime()), printer.Precise(step.Since), fmt.Sprint(max(1, c.GetAttempt())), phase,
			printer.Clean(cmp.Or(exitcode.FailureText(c.GetReason(), c.GetFailureClass(), c.GetMessage()),
				printer.Progress(c.GetProgress()))),
		})
	}
	s := section{Title: "Events", Tables: []table{t}}
	if len(t.Rows) == 0 {
		return section{Title: "Events", Notes: []string{"nothing is stored about the steps of the run"}}
	}
	return s
}

func (r RunReport) artifacts() section {
	t := table{
		Caption: "Files that were kept",
		Table:   printer.Table{Columns: []printer.Column{{Title: "Name"}, {Title: "Size", Right: true}, {Title: "SHA-256"}}},
	}
	for _, a := range r.Artifacts {
		t.Rows = append(t.Rows, []string{printer.Name(a.GetName()), printer.Bytes(a.GetSize()), printer.Clean(a.GetSha256())})
	}
	return section{Title: "Files", Tables: []table{t}}
}

// log is the end of the output.
func (r RunReport) log() section {
	if len(r.Lines) == 0 {
		return section{Title: "End of the log", Notes: []string{"the run has no lines"}}
	}
	lines := r.Lines[max(0, len(r.Lines)-maxLines):]
	var text strings.Builder
	for _, line := range lines {
		shown := []rune(printer.Safe(line.GetText()))
		stream := "  "
		if line.GetStderr() {
			stream = "! "
		}
		fmt.Fprintf(&text, "%s %s-%d %s", line.GetTime().AsTime().UTC().Format("15:04:05.000"), printer.Clean(line.GetOrigin().GetRole()),
			line.GetOrigin().GetIndex(), stream)
		if len(shown) > maxLine {
			text.WriteString(string(shown[:maxLine]) + " …\n")
			continue
		}
		text.WriteString(string(shown) + "\n")
	}
	return section{
		Title: "End of the log", Text: text.String(),
		Notes: []string{fmt.Sprintf("the last %s, with times in UTC; ! marks standard error", printer.Plural(int32(len(lines)), "line"))},
	}
}
