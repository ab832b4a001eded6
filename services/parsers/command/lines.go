// Package command runs parsers of users: programs that read the output of a benchmark and print its metrics as JSON lines.
package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Kind is the name of the kind in descriptors and reports.
const Kind = "command"

// Limits of what a parser prints.
const (
	MaxOutput  = 4 << 20  // bytes of standard output
	MaxLine    = 64 << 10 // bytes of one line
	MaxMetrics = 10_000
	maxName    = 128 // characters of a metric's name
	maxLabels  = 32  // of a metric
	maxText    = 256 // bytes of a name and of a unit, and of the name and the value of a label
)

// printedLines are the lines that a parser has printed.
type printedLines struct {
	Metrics []report.Metric
	State   report.State // that the parser gave; empty if it gave none
	Reason  string       // for the state
	Version string       // of the benchmark's tool
	Fault   string       // of the first line that is none of the schema, with the line; empty if there is none
}

// readLines reads lines until the end of r, an error of it, or a line that is none of the schema.
func readLines(r io.Reader) printedLines {
	reader := lineReader{seen: map[string]bool{}}
	b := bufio.NewReaderSize(r, MaxLine+1)
	for number, size := 1, 0; ; number++ {
		line, err := b.ReadSlice('\n')
		size += len(line)
		var fault string
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || len(line) > MaxLine:
			fault = fmt.Sprintf("it has more than %d KiB", MaxLine>>10)
		case size > MaxOutput:
			fault = fmt.Sprintf("with it there are more than %d MiB", MaxOutput>>20)
		default:
			fault = reader.read(bytes.TrimSpace(line))
		}
		if fault != "" {
			reader.lines.Fault = fmt.Sprintf("line %d of its output is refused: %s: %q", number, fault,
				report.Clip(string(line[:min(len(line), 1<<10)])))
		}
		if err != nil || fault != "" {
			return reader.lines
		}
	}
}

// lineReader reads one line after the other.
type lineReader struct {
	lines   printedLines
	summary bool            // a line with a state or a version was read
	seen    map[string]bool // metrics, with their labels
}

// read reads a line, and returns why it is refused, empty if it is not.
func (r *lineReader) read(line []byte) string {
	if len(line) == 0 {
		return ""
	}
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(line, &object); {
	case !utf8.Valid(line):
		return "it is not UTF-8"
	case err != nil || object == nil:
		return "it is not a JSON object"
	}
	fields := fieldsOf(object)
	_, named := object["name"]
	_, valued := object["value"]
	if named || valued {
		return r.readMetric(fields)
	}
	return r.readSummary(fields)
}

// readMetric reads the line of a metric.
func (r *lineReader) readMetric(f *fields) string {
	m := report.Metric{
		Name: f.text("name", maxText), Value: f.number("value"), Unit: f.text("unit", maxText),
		Direction: report.Direction(f.text("direction", maxText)), Labels: f.labels(), Headline: f.flag("headline"),
	}
	f.refuseOthers("name", "value", "unit", "direction", "labels", "headline")
	id := fmt.Sprintf("%q %q", m.Name, m.Labels)
	switch {
	case f.fault != "":
		return f.fault
	case !isName(m.Name):
		return fmt.Sprintf("name has to be one line of 1 to %d characters, without a blank around it or @ before it", maxName)
	case !slices.Contains([]report.Direction{"", report.Higher, report.Lower}, m.Direction):
		return "direction is neither higher nor lower"
	case r.seen[id]:
		return "a line before it has the same name and labels"
	case len(r.lines.Metrics) == MaxMetrics:
		return fmt.Sprintf("there are more than %d metrics", MaxMetrics)
	}
	if m.Unit == "" {
		m.Unit = report.Count
	}
	r.seen[id], r.lines.Metrics = true, append(r.lines.Metrics, m)
	return ""
}

func isName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxName && strings.TrimSpace(name) == name && name[0] != '@' &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// readSummary reads the line about the output as a whole.
func (r *lineReader) readSummary(f *fields) string {
	state, reason, version := report.State(f.text("state", maxText)), f.text("reason", MaxLine), f.text("version", maxText)
	f.refuseOthers("state", "reason", "version")
	switch {
	case f.fault != "":
		return f.fault
	case r.summary:
		return "a line before it has a state or a version"
	case state == "" && version == "":
		return "it has neither a name, a state nor a version"
	case !slices.Contains([]report.State{"", report.OK, report.Partial, report.Failed, report.Empty}, state):
		return "state is none of ok, partial, failed and empty"
	case (reason == "") != (state == "" || state == report.OK):
		return "a state other than ok has a reason, and no other line has one"
	}
	r.summary, r.lines.State, r.lines.Reason, r.lines.Version = true, state, report.Clip(reason), report.Clip(version)
	return ""
}

// fields are the members of a line. The first that is wrong is kept.
type fields struct {
	object map[string]json.RawMessage
	fault  string
}

func fieldsOf(object map[string]json.RawMessage) *fields { return &fields{object: object} }

// refuse keeps a fault.
func (f *fields) refuse(format string, args ...any) {
	if f.fault == "" {
		f.fault = fmt.Sprintf(format, args...)
	}
}

// read decodes a member, if there is one of this name.
func (f *fields) read(name, want string, into any) bool {
	text, ok := f.object[name]
	if ok && (string(text) == "null" || json.Unmarshal(text, into) != nil) {
		f.refuse("%s is not %s", name, want)
	}
	return ok
}

func (f *fields) text(name string, most int) (s string) {
	f.read(name, "a text", &s)
	if len(s) > most {
		f.refuse("%s has more than %d bytes", name, most)
	}
	return s
}

func (f *fields) flag(name string) (b bool) {
	f.read(name, "true or false", &b)
	return b
}

func (f *fields) number(name string) (v float64) {
	if !f.read(name, "a number", &v) {
		f.refuse("%s is missing", name)
	}
	return v
}

func (f *fields) labels() map[string]string {
	labels := map[string]string{}
	f.read("labels", "an object of texts", &labels)
	if len(labels) > maxLabels {
		f.refuse("it has more than %d labels", maxLabels)
	}
	for name, value := range labels {
		if name == "" || len(name) > maxText || len(value) > maxText {
			f.refuse("a label has to have a name, and %d bytes at most", maxText)
		}
	}
	return labels
}

// refuseOthers refuses members of other names.
func (f *fields) refuseOthers(known ...string) {
	for _, name := range slices.Sorted(maps.Keys(f.object)) {
		if !slices.Contains(known, name) {
			f.refuse("%q is none of %s", report.Clip(name), strings.Join(known, ", "))
		}
	}
}
