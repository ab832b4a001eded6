// Package report writes what is known of a set or a run as one HTML file, which needs no
// other file, no script and no network.
package report

import (
	_ "embed" // the template
	"fmt"
	"html/template"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

//go:embed page.html
var pageText string

// page is all that the template shows.
type page struct {
	Title    string
	About    string // by the user
	Status   string // one word
	Why      string // why a run failed, or a set stopped
	Facts    []printer.Line
	Sections []section
	Made     string
}

// section is a part of a page with a heading.
type section struct {
	Title  string
	Notes  []string
	Charts []template.HTML
	Tables []table
	Text   string // as it is
	Guide  bool   // how results are read
}

// table is a table with a caption. The first column names the row.
type table struct {
	Caption string
	printer.Table
}

// Source says where a report comes from.
type Source struct {
	Time    time.Time
	Version string // of baictl
	Server  string // address of the platform
}

func (s Source) text() string {
	return fmt.Sprintf("Made by baictl %s at %s, from %s.", printer.Clean(s.Version),
		s.Time.UTC().Format(timeFormat), printer.Clean(s.Server))
}

func (p page) html() (string, error) {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return "", fmt.Errorf("read the template of reports: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, p); err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	return b.String(), nil
}

const timeFormat = "2006-01-02 15:04:05 UTC"

// instant is a time in UTC, because reports are read in other places; empty for none.
func instant(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().UTC().Format(timeFormat)
}

// facts are lines without those that say nothing, and without characters that are not shown.
type facts []printer.Line

func (f *facts) add(label, value string) {
	if value != "" {
		*f = append(*f, printer.Line{Label: label, Value: printer.Clean(value)})
	}
}

// environment is a section about the machines, the system and the image of a run.
func environment(title string, e *baiv1.Environment) section {
	s := section{Title: title}
	t := table{
		Caption: "As the containers of the run saw it",
		Table:   printer.Table{Columns: []printer.Column{{Title: "What"}, {Title: "Value"}}},
	}
	for _, line := range printer.Environment(e) {
		if line.Value != "" {
			t.Rows = append(t.Rows, []string{line.Label, line.Value})
		}
	}
	for _, d := range e.GetData() {
		t.Rows = append(t.Rows, []string{"Data set", printer.Clean(fmt.Sprintf("%s, sha256 %s", d.GetSource(), d.GetSha256()))})
	}
	s.Tables = []table{t}
	return s
}

// descriptor is a section with the text of a descriptor.
func descriptor(text string) section {
	return section{Title: "Descriptor", Text: safe(text)}
}

// safe is a text of several lines without characters that are not shown.
func safe(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printer.Safe(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, "\n")
}
