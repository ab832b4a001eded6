package author

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/userparser"
	"github.com/benchmark-ai/bai/services/parsers"
	"github.com/benchmark-ai/bai/services/parsers/command"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Parser is the verb parser.
func Parser(s *session.Session) *cobra.Command {
	return session.Parent(&cobra.Command{
		Use:   "parser",
		Short: "Read the output of benchmark tools without a platform",
		Long: `Reads the output of benchmark tools: its metrics, in base units. No platform is
needed.`,
	}, testParser(s), listParsers(s))
}

func testParser(s *session.Session) *cobra.Command {
	t := parserTest{kind: parsers.Auto, deadline: command.DefaultDeadline}
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Show the metrics that a parser finds in a file",
		Long: `Shows the metrics that a parser finds in a file with the output of a tool; - is
standard input. The kinds are ` + kindList() + `.

--with runs a parser of your own instead, as a run does: it reads the file from
standard input, prints a JSON object a line (docs/parsers.md has the schema) and
has the deadline, and 1 GiB of memory on Linux.

The state is ok; partial, if something is missing; failed, if the tool says so,
whatever its exit code was; or empty. The exit code is 0 for ok, 1 for the
others and 2 for wrong usage.

With -o json or yaml: {"kind", "state", "reason", "version", "metrics":
[{"name", "value", "unit", "direction", "labels", "headline"}]}, which does not
change. Values are in base units: bits/s, B/s, s, B, op/s.`,
		Example: `  baictl parser test result.txt --kind iperf2
  iperf -c server | baictl parser test - -o json
  baictl parser test result.json --kind json --metric loss=train.loss
  baictl parser test result.txt --with "python3 parse.py"`,
		Args: session.Arguments(1, 1, "a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(s, args[0], cmd.Context().Done()) },
	}
	cmd.Flags().StringVar(&t.kind, "kind", t.kind, "`KIND` of the parser")
	cmd.Flags().StringArrayVar(&t.metrics, "metric", nil,
		"`NAME=PATH`: a metric, and its path in a document of kind json, or its column in one of kind csv; may be repeated")
	cmd.Flags().StringVar(&t.with, "with", "", "`COMMAND` of a parser of your own")
	cmd.Flags().DurationVar(&t.deadline, "deadline", t.deadline, "how `LONG` the command may run")
	cmd.MarkFlagsMutuallyExclusive("with", "kind")
	cmd.MarkFlagsMutuallyExclusive("with", "metric")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(parsers.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// kindList returns the names of the kinds, in lines of 80 columns.
func kindList() string {
	text, width := "", len("standard input. The kinds are ")
	for i, name := range parsers.Names() {
		if i > 0 {
			text, width = text+",", width+1
			name = " " + name
		}
		if width+len(name) > 78 {
			text, width, name = text+"\n", 0, strings.TrimSpace(name)
		}
		text, width = text+name, width+len(name)
	}
	return text
}

type parserTest struct {
	kind     string
	metrics  []string // NAME=PATH
	with     string   // the command of a parser of the user's; empty means that of the kind
	deadline time.Duration
}

func (t parserTest) run(s *session.Session, name string, stop <-chan struct{}) error {
	options, err := t.options()
	if err != nil {
		return err
	}
	r, err := t.parse(s, name, options, stop)
	if unknown, ok := errors.AsType[*parsers.UnknownKindError](err); ok {
		return &exitcode.UsageError{Message: "--kind: " + unknown.Error()}
	}
	if refused, ok := errors.AsType[*userparser.CommandError](err); ok {
		return &exitcode.UsageError{Message: "--with: " + refused.Error()}
	}
	if err != nil {
		return &exitcode.UsageError{Message: fmt.Sprintf("read %s: %v", name, err)}
	}
	if err := printReport(s, r); err != nil {
		return err
	}
	if r.State == report.OK {
		return nil
	}
	return &exitcode.ParseError{File: name, Kind: r.Kind, State: string(r.State), Reason: r.Reason}
}

func (t parserTest) options() (report.Options, error) {
	var o report.Options
	for _, text := range t.metrics {
		name, path, ok := strings.Cut(text, "=")
		if !ok || name == "" || path == "" {
			return o, &exitcode.UsageError{Message: fmt.Sprintf("--metric %q: write NAME=PATH, as loss=train.loss", text)}
		}
		o.Metrics = append(o.Metrics, report.Selection{Name: name, Path: path, Unit: report.Count})
	}
	return o, nil
}

func (t parserTest) parse(s *session.Session, name string, o report.Options, stop <-chan struct{}) (report.Report, error) {
	in := s.Env.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return report.Report{}, errors.Unwrap(err)
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	if t.with != "" {
		return userparser.Run(t.with, in, t.deadline, stop)
	}
	return parsers.Parse(t.kind, in, o)
}

func printReport(s *session.Session, r report.Report) error {
	switch {
	case s.Structured():
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return s.Print(text)
	case s.Output == "name":
		return session.WriteText(s.Env.Out, metricNames(r))
	case len(r.Metrics) == 0:
		return nil
	}
	t := printer.Table{Columns: []printer.Column{
		{Title: "METRIC", Flex: true},
		{Title: "VALUE", Right: true},
		{Title: "UNIT"},
		{Title: "BETTER"},
		{Title: "HEADLINE"},
		{Title: "LABELS", Flex: true},
	}}
	for _, m := range r.Metrics {
		headline := ""
		if m.Headline {
			headline = "yes"
		}
		t.Rows = append(t.Rows, []string{
			printer.Clean(m.Name), printer.Number(m.Value), printer.Clean(m.Unit), string(m.Direction), headline, printer.Clean(labels(m)),
		})
	}
	return s.PrintTable(t)
}

// labels returns the labels of a metric as name=value, in the order of the names.
func labels(m report.Metric) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		all = append(all, name+"="+m.Labels[name])
	}
	return strings.Join(all, " ")
}

// metricNames returns a line for each name.
func metricNames(r report.Report) string {
	var text strings.Builder
	seen := make(map[string]bool)
	for _, m := range r.Metrics {
		if !seen[m.Name] {
			text.WriteString(printer.Clean(m.Name) + "\n")
		}
		seen[m.Name] = true
	}
	return text.String()
}

func listParsers(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the kinds of parsers and their headlines",
		Long: `Lists the kinds of parsers, the tools whose output they read, and the metrics
that are headlines. docs/parsers.md has all metrics.

With -o json or yaml: {"kinds": [{"kind", "tool", "metrics": [{"name", "unit",
"direction", "headline", "labels", "meaning"}]}]}. With -o name: the kinds.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return printKinds(s) },
	}
}

func printKinds(s *session.Session) error {
	all := parsers.Kinds()
	switch {
	case s.Structured():
		return printKindObjects(s, all)
	case s.Output == "name":
		for _, k := range all {
			if err := session.WriteText(s.Env.Out, k.Name+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	t := printer.Table{Columns: []printer.Column{{Title: "KIND"}, {Title: "TOOL", Flex: true}, {Title: "HEADLINES", Flex: true}}}
	for _, k := range all {
		var headlines []string
		for _, m := range k.Metrics {
			if m.Headline {
				headlines = append(headlines, strings.ReplaceAll(m.Name, "*", "any"))
			}
		}
		t.Rows = append(t.Rows, []string{k.Name, k.Tool, strings.Join(headlines, ", ")})
	}
	return s.PrintTable(t)
}

func printKindObjects(s *session.Session, all []report.Kind) error {
	type metric struct {
		Name      string           `json:"name"`
		Unit      string           `json:"unit"`
		Direction report.Direction `json:"direction"`
		Headline  bool             `json:"headline"`
		Labels    []string         `json:"labels"`
		Meaning   string           `json:"meaning"`
	}
	type kind struct {
		Kind    string   `json:"kind"`
		Tool    string   `json:"tool"`
		Metrics []metric `json:"metrics"`
	}
	kinds := make([]kind, 0, len(all))
	for _, k := range all {
		one := kind{Kind: k.Name, Tool: k.Tool}
		for _, m := range k.Metrics {
			one.Metrics = append(one.Metrics, metric{m.Name, m.Unit, m.Direction, m.Headline, append([]string{}, m.Labels...), m.Meaning})
		}
		kinds = append(kinds, one)
	}
	text, err := json.Marshal(map[string]any{"kinds": kinds})
	if err != nil {
		return err
	}
	return s.Print(text)
}
