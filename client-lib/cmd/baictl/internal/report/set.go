package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/result"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A report has at most so many bytes of plots, rows of a table and failed runs.
const (
	maxPlots    = 2 << 20
	maxRows     = 2000
	maxFailures = 500
)

// SetReport is all that a report on a set is made of.
type SetReport struct {
	Set          *baiv1.Set
	Cells        []*baiv1.CellResult // in the order of the sweep
	Runs         []*baiv1.Run        // all of its runs, in any order
	Environments []RunEnvironment
	Source       Source
}

// RunEnvironment is where a run of a set ran.
type RunEnvironment struct {
	Run         string // ID
	Environment *baiv1.Environment
}

// HTML returns the report on a set.
func (s SetReport) HTML() (string, error) {
	metrics, err := result.ByMetric(s.Cells)
	if err != nil {
		return "", err
	}
	p := page{
		Title: printer.Clean("Set " + cmp.Or(s.Set.GetName(), s.Set.GetId())), About: printer.Clean(s.Set.GetDescription()),
		Status: printer.SetStatus(s.Set), Why: printer.Clean(s.Set.GetMessage()), Facts: s.facts(), Made: s.Source.text(),
	}
	if p.Sections, err = s.results(metrics); err != nil {
		return "", err
	}
	p.Sections = append(p.Sections, section{Title: "How to read the results", Guide: true})
	if failed := s.failures(); len(failed.Tables) > 0 {
		p.Sections = append(p.Sections, failed)
	}
	p.Sections = append(p.Sections, s.environments()...)
	if text := s.Set.GetDescriptorToml(); text != "" {
		p.Sections = append(p.Sections, descriptor(text))
	}
	return p.html()
}

func (s SetReport) facts() []printer.Line {
	var f facts
	f.add("ID", s.Set.GetId())
	f.add("Name", s.Set.GetName())
	f.add("Owner", s.Set.GetOwner())
	f.add("Namespace", s.Set.GetNamespace())
	f.add("Labels", printer.Labels(s.Set.GetLabels()))
	f.add("Descriptor", s.Set.GetDescriptorFile())
	f.add("Cells", fmt.Sprint(s.Set.GetCellCount()))
	f.add("Each cell", printer.CellRuns(s.Set, "warm-up run"))
	f.add("Order", s.Set.GetOrder())
	f.add("Runs", printer.SetCounts(s.Set))
	f.add("Submitted", instant(s.Set.GetCreateTime()))
	f.add("Ended", instant(s.Set.GetEndTime()))
	f.add("Took", printer.Span(s.Set.GetCreateTime(), s.Set.GetEndTime()))
	for _, e := range s.Environments {
		f.add("Image", e.Environment.GetImage())
		for _, pod := range e.Environment.GetPods() {
			f.add("Image digest", pod.GetImageDigest())
			f.add("Platform", pod.GetPlatformVersion())
			f.add("Machine", pod.GetMachine().GetCpuModel())
		}
	}
	return withoutRepeats(f)
}

// withoutRepeats returns lines, each once.
func withoutRepeats(lines []printer.Line) []printer.Line {
	seen := make(map[printer.Line]bool)
	return slices.DeleteFunc(lines, func(l printer.Line) bool {
		repeated := seen[l]
		seen[l] = true
		return repeated
	})
}

// results are a section for each metric of the benchmark, with plots, and one for those
// that the platform measured.
func (s SetReport) results(all []*result.Metric) ([]section, error) {
	if len(all) == 0 {
		return []section{{Title: "Results", Notes: append([]string{"no repetition has results yet"}, result.SetNotes(s.Cells)...)}}, nil
	}
	own, names := result.WithoutSystem(all)
	var sections []section
	size := 0
	for _, m := range own {
		one := section{Title: printer.Clean(m.Title()), Tables: []table{metricTable(m)}, Notes: m.Notes()}
		var note string
		var err error
		if one.Charts, note, err = plots(m, size); err != nil {
			return nil, err
		}
		for _, c := range one.Charts {
			size += len(c)
		}
		if note != "" {
			one.Notes = append(one.Notes, note)
		}
		sections = append(sections, one)
	}
	if len(names) > 0 {
		system := section{Title: "Measurements of the platform"}
		for _, m := range all {
			if strings.HasPrefix(m.Name, "system.") {
				system.Tables = append(system.Tables, metricTable(m))
			}
		}
		sections = append(sections, system)
	}
	sections[0].Notes = append(sections[0].Notes, result.SetNotes(s.Cells)...)
	return clean(sections), nil
}

// clean removes characters that are not shown from notes.
func clean(sections []section) []section {
	for _, s := range sections {
		for i, note := range s.Notes {
			s.Notes[i] = printer.Clean(note)
		}
	}
	return sections
}

// plots returns the plots of a metric, or a note why there are none. There are none once
// the plots before have a size.
func plots(m *result.Metric, size int) (all []template.HTML, note string, err error) {
	charts, reason := m.Charts()
	if reason != "" {
		return nil, "no plot: " + reason, nil
	}
	for _, c := range charts {
		text, err := c.SVG()
		if err != nil {
			return nil, "", fmt.Errorf("plot %s: %w", m.Name, err)
		}
		if size += len(text); size > maxPlots {
			return nil, "no plot: this report has many already (see baictl set results -o svg)", nil
		}
		all = append(all, template.HTML(text)) // its texts are escaped
	}
	return all, "", nil
}

// metricTable has one line for each cell.
func metricTable(m *result.Metric) table {
	t := table{Caption: printer.Clean(m.Title()), Table: printer.Table{Columns: []printer.Column{
		{Title: "Cell"},
		{Title: "Median", Right: true},
		{Title: "From", Right: true},
		{Title: "To", Right: true},
		{Title: "n", Right: true},
	}}}
	if m.HasDirection() {
		t.Columns = append(t.Columns, printer.Column{Title: "Place", Right: true})
	}
	if len(m.Cells) > maxRows {
		t.Caption += fmt.Sprintf(", the first %d of %d cells (baictl set results -o csv has all)", maxRows, len(m.Cells))
	}
	tied := make(map[int]int)
	for _, c := range m.Cells {
		tied[c.Place]++
	}
	for _, c := range m.Cells[:min(maxRows, len(m.Cells))] {
		row := []string{printer.Clean(c.Cell.GetName()), "–", "–", "–", "0"}
		if r := c.Result; r != nil {
			row[1], row[4] = printer.Number(r.GetMedian()), fmt.Sprint(r.GetN())
			if i := r.GetInterval(); i != nil {
				row[2], row[3] = printer.Number(i.GetLow()), printer.Number(i.GetHigh())
			}
		}
		if m.HasDirection() {
			row = append(row, placeText(c.Place, tied[c.Place]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// placeText is "2", or "1 (tie of 3)" for a place that 3 cells have.
func placeText(place, cells int) string {
	switch {
	case place == 0:
		return "–"
	case cells > 1:
		return fmt.Sprintf("%d (tie of %d)", place, cells)
	}
	return fmt.Sprint(place)
}

// failures lists the runs that failed or were refused, the oldest first.
func (s SetReport) failures() section {
	t := table{Table: printer.Table{Columns: []printer.Column{
		{Title: "Run"},
		{Title: "Cell"},
		{Title: "Repetition"},
		{Title: "Ended"},
		{Title: "Why"},
	}}}
	runs := slices.SortedFunc(slices.Values(s.Runs), func(a, b *baiv1.Run) int {
		return cmp.Or(a.GetCreateTime().AsTime().Compare(b.GetCreateTime().AsTime()), cmp.Compare(a.GetId(), b.GetId()))
	})
	for _, run := range runs {
		if run.GetOutcome() == baiv1.Outcome_OUTCOME_FAILED {
			t.Rows = append(t.Rows, []string{
				run.GetId(), printer.Clean(run.GetLineage().GetCell()), repetition(run.GetLineage()), instant(run.GetEndTime()),
				printer.Clean(exitcode.FailureText(run.GetReason(), run.GetFailureClass(), run.GetMessage())),
			})
		}
	}
	for _, f := range s.Set.GetFailures() {
		if f.GetRunId() == "" {
			t.Rows = append(t.Rows, []string{"refused", printer.Clean(f.GetCell()), "", "", printer.Clean(f.GetMessage())})
		}
	}
	one := section{Title: "Failed runs"}
	if n := len(t.Rows); n > 0 {
		t.Caption = fmt.Sprintf("Runs that failed: %d", n)
		if n > maxFailures {
			t.Caption = fmt.Sprintf("The first %d of %d runs that failed", maxFailures, n)
			t.Rows = t.Rows[:maxFailures]
		}
		one.Tables = []table{t}
	}
	return one
}

func repetition(l *baiv1.Lineage) string {
	if l.GetWarmup() {
		return fmt.Sprintf("warm-up %d", l.GetRepetition())
	}
	return fmt.Sprint(l.GetRepetition())
}

// environments are a section for each environment with a fingerprint of its own.
func (s SetReport) environments() []section {
	var all []section
	seen := make(map[string]int) // places in all
	for _, e := range s.Environments {
		if at, ok := seen[e.Environment.GetFingerprint()]; ok {
			all[at].Notes = append(all[at].Notes, "run "+e.Run+" has the same fingerprint")
			continue
		}
		seen[e.Environment.GetFingerprint()] = len(all)
		all = append(all, environment("Where run "+e.Run+" ran", e.Environment))
	}
	if len(all) > 1 {
		all[0].Notes = append(all[0].Notes,
			"the fingerprints of the runs differ: their machines or images are not the same, and neither may be their numbers")
	}
	return all
}
