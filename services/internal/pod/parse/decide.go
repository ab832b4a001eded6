package parse

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/artifacts"
	"github.com/benchmark-ai/bai/services/parsers/command"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// options returns the options of a parser. A number that the descriptor selects has the unit that it declares, or none.
func options(p pod.Parser) report.Options {
	var o report.Options
	for _, name := range slices.Sorted(maps.Keys(p.Metrics)) {
		o.Metrics = append(o.Metrics, report.Selection{Name: name, Path: p.Metrics[name], Unit: report.Count})
	}
	return o
}

// choose returns the file that a parser reads, of those that its path matches, or why there is none. A file that is as it was before the
// benchmark may be that of another run: the local cluster's pods share some of the machine's folders.
func choose(files []artifacts.File, notices []string, unchanged func(artifacts.File) bool) (file artifacts.File, reason string) {
	var changed []artifacts.File
	for _, f := range files {
		if !unchanged(f) {
			changed = append(changed, f)
		}
	}
	switch {
	case len(changed) == 1:
		return changed[0], ""
	case len(changed) > 1:
		return file, fmt.Sprintf("%d files match it, as %s and %s", len(changed), changed[0].Name, changed[1].Name)
	case len(files) > 0:
		return file, fmt.Sprintf("%s was there before the benchmark and has not changed", files[0].Name)
	case len(notices) > 0:
		return file, notices[0]
	}
	return file, "the benchmark left no such file"
}

// withinBounds leaves out the metrics whose lines the collector would refuse. They are missing in the report, which says why.
func withinBounds(r report.Report) report.Report {
	kept, first, refused := []report.Metric{}, "", 0
	for _, m := range r.Metrics {
		problem := lineProblem(m)
		if problem == "" {
			kept = append(kept, m)
			continue
		}
		if refused++; refused == 1 {
			first = fmt.Sprintf("metric %q is not stored: %s", report.Clip(m.Name), problem)
		}
	}
	if refused == 0 {
		return r
	}
	if r.State == report.Failed {
		r.Metrics = kept
		return r
	}
	if refused > 1 {
		first += fmt.Sprintf("; nor are %d others", refused-1)
	}
	if r.Reason != "" {
		first = r.Reason + "; " + first
	}
	return report.Of(r.Kind, r.Version, kept, first)
}

// lineProblem says why the collector refuses the line of a metric, empty if it does not.
func lineProblem(m report.Metric) string {
	const most = "%s has %d bytes, and the platform takes %d"
	switch {
	case m.Name == "" || m.Name[0] == '@':
		return "its name is empty or begins with @"
	case encodedSize(m.Name) > pod.MaxMetricName:
		return fmt.Sprintf(most, "its name", encodedSize(m.Name), pod.MaxMetricName)
	case encodedSize(m.Unit) > pod.MaxLabel:
		return fmt.Sprintf(most, "its unit", encodedSize(m.Unit), pod.MaxLabel)
	case len(m.Labels) > pod.MaxLabels:
		return fmt.Sprintf("it has %d labels, and the platform takes %d", len(m.Labels), pod.MaxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		value := m.Labels[name]
		switch {
		case name == "":
			return "it has a label without a name"
		case encodedSize(name) > pod.MaxLabel:
			return fmt.Sprintf(most, fmt.Sprintf("the name of its label %q", report.Clip(name)), encodedSize(name), pod.MaxLabel)
		case encodedSize(value) > pod.MaxLabel:
			return fmt.Sprintf(most, fmt.Sprintf("its label %q", report.Clip(name)), encodedSize(value), pod.MaxLabel)
		}
	}
	return ""
}

// encodedSize is how many bytes a reader of JSON gets of a text, in which each byte that is not UTF-8 is replaced.
func encodedSize(text string) (size int) {
	for _, r := range text {
		size += utf8.RuneLen(r)
	}
	return size
}

// Judge returns the problem that fails a benchmark with an exit code, empty if its parsers have none, and notices for the user about
// missing results. A benchmark that failed by itself has its own reason.
func Judge(results []Result, exitCode int) (problem string, notices []string) {
	for _, r := range results {
		text := strings.Join(strings.Fields(r.problem()), " ")
		switch required := !r.Parser.Optional && exitCode == 0; {
		case text == "":
		case r.Report.State == report.Partial:
			notices = append(notices, text)
		case required && problem == "":
			problem = text
		case required || exitCode == 0 || r.Report.State == report.Failed:
			notices = append(notices, text)
		}
	}
	return problem, notices
}

// problem returns what is missing in a result, empty if nothing is.
func (r Result) problem() string {
	in := "the output"
	if r.Parser.Path != "" {
		in = r.Parser.Path
	}
	name, reader := r.Report.Kind, "parser "+r.Parser.Kind
	if r.Parser.Kind == command.Kind {
		reader = "parser " + strconv.Quote(words(r.Parser))
		name = reader
	}
	switch r.Report.State {
	case report.OK:
	case report.Partial:
		return fmt.Sprintf("a part of the results of %s in %s is missing: %s", name, in, r.Report.Reason)
	case report.Failed:
		if r.Parser.Kind == command.Kind {
			return fmt.Sprintf("%s of %s: %s", name, in, r.Report.Reason)
		}
		return fmt.Sprintf("%s says in %s that it failed: %s", r.Report.Kind, in, r.Report.Reason)
	case report.Empty:
		return fmt.Sprintf("%s has no result that %s reads: %s%s", in, reader, r.Report.Reason, r.quote())
	}
	return ""
}

// words returns the command of a parser of kind command as a text.
func words(p pod.Parser) string { return report.Clip(strings.Join(p.Command, " ")) }

// quote returns the first lines that the parser read.
func (r Result) quote() string {
	if len(r.Head) == 0 {
		return ""
	}
	quoted := make([]string, len(r.Head))
	for i, line := range r.Head {
		quoted[i] = strconv.Quote(line)
	}
	return "; it begins with " + strings.Join(quoted, ", ")
}

// AppendLines appends the metrics of results to dst, each as a line that client libraries write.
func AppendLines(dst []byte, results []Result, seconds float64) []byte {
	for _, r := range results {
		for _, m := range r.Report.Metrics {
			if text, err := json.Marshal(emission(m, r.Report.Kind, seconds)); err == nil { // a parser gives finite numbers alone
				dst = append(append(dst, text...), '\n')
			}
		}
	}
	return dst
}

// emission returns a metric as the object of a line.
func emission(m report.Metric, kind string, seconds float64) map[string]any {
	line := map[string]any{m.Name: m.Value, "@time": seconds}
	if m.Unit != "" && (m.Unit != report.Count || !ofOnesOwn(kind)) {
		line["@unit"] = m.Unit
	}
	if m.Direction != "" {
		line["@direction"] = m.Direction
	}
	if len(m.Labels) > 0 {
		line["@labels"] = m.Labels
	}
	return line
}

// ofOnesOwn reports whether a kind reads a file of one's own, which may say nothing of units.
func ofOnesOwn(kind string) bool { return kind == "json" || kind == "csv" || kind == command.Kind }

// Versions returns the versions of the tools whose output was read, by kind, or by the command that read it; nil if none is known.
func Versions(results []Result) map[string]string {
	var all map[string]string
	for _, r := range results {
		if r.Report.Version == "" {
			continue
		}
		if all == nil {
			all = make(map[string]string)
		}
		name := r.Report.Kind
		if name == command.Kind {
			name = words(r.Parser)
		}
		all[name] = r.Report.Version
	}
	return all
}
