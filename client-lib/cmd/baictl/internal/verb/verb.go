// Package verb is the command line of baictl: the table of its verbs.
package verb

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/alarm"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/author"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/baseline"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/catalog"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/data"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/explain"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/history"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/launch"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/results"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/runs"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/schedule"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/set"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/setup"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/statistics"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb/transfer"
)

// Env is the environment of a command line.
type Env = session.Env

// Main executes a command line and returns the program's exit code. It writes an error as
// one line to env.Err.
func Main(ctx context.Context, env Env, args []string) int {
	s := session.New(env)
	root := rootCommand(s) //nolint:contextcheck // each command is given ctx when it is executed
	root.SetArgs(args)
	root.SetIn(s.Env.In)
	root.SetOut(s.Env.Out)
	root.SetErr(s.Env.Err)
	err := checkArgs(args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if ending := s.End(); err == nil {
		err = ending
	}
	if err != nil {
		s.PrintError(err)
	}
	return exitcode.Code(err)
}

// checkArgs refuses arguments that cannot be sent to a platform.
func checkArgs(args []string) error {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return &exitcode.UsageError{Message: fmt.Sprintf("argument %q is not UTF-8", arg)}
		}
	}
	return nil
}

// A theme is verbs that belong together, in the order in which they are used.
type commandGroup struct {
	id, title string
	verbs     []*cobra.Command
}

func commandGroups(s *session.Session) []commandGroup {
	return []commandGroup{
		{"author", "Descriptors:", []*cobra.Command{
			author.Init(s), author.Validate(s), author.Explain(s), author.Render(s), author.Diff(s), author.Sweep(s), author.Parser(s),
			author.Convert(s), catalog.Descriptors(s),
		}},
		{"launch", "Making runs:", []*cobra.Command{
			launch.Preflight(s), launch.Run(s), launch.Submit(s), launch.Rerun(s),
			schedule.Schedule(s), set.Set(s),
		}},
		{"runs", "Runs:", []*cobra.Command{runs.List(s), runs.Get(s), runs.Watch(s), explain.Why(s), explain.Repro(s), runs.Cancel(s)}},
		{"data", "Data sets:", []*cobra.Command{data.Data(s)}},
		{"results", "What runs brought:", []*cobra.Command{
			results.Metrics(s), results.Logs(s), results.Artifacts(s), history.History(s), statistics.Changes(s), statistics.Compare(s),
			history.Power(s), baseline.Baseline(s), alarm.Alarms(s),
			results.Environment(s), results.Report(s), results.Dashboards(s), transfer.Export(s), transfer.Import(s),
		}},
		{"setup", "baictl itself:", []*cobra.Command{setup.Config(s), setup.Version(s), setup.Manual(s)}},
	}
}

const about = `Checks benchmark descriptors, submits them as runs, follows the runs and shows
what they brought.

A run is named by its ID or by the name that its owner gave it.

Output (-o): table and wide are for people and may change. json and yaml are for
programs and do not: messages of the API with field names in lowerCamelCase,
phases, outcomes and classes as lower-case words, times in RFC 3339 (UTC),
integers as numbers; empty fields are left out. Verbs that stream (watch, logs,
metrics, list --watch) write one JSON object a line, or one YAML document each.
name is one ID or name a line. NO_COLOR is heeded.

The platform is that of --server, --context, BAI_SERVER, BAI_CONTEXT or the
current context, in this order (see baictl config).

Exit codes:
  0  fine; of run, watch and --wait: the run, or all runs of the set, succeeded
  1  the run, or a run of the set, failed; of parser test: the file has no whole
     result
  2  wrong usage, an invalid descriptor, a run that is not there, a name or key
     that is taken
  3  the platform cannot be reached or failed, or a run's data stayed incomplete
  4  time is over: of --timeout, of the run (a deadline), or the user's (Ctrl-C
     while following a run: it goes on)
  5  the run, the set or a run of the set was canceled
  6  of compare: a metric got worse; of changes --fail: there is a regression`

func rootCommand(s *session.Session) *cobra.Command {
	root := &cobra.Command{
		Use:               "baictl",
		Short:             "Run benchmarks and read their results",
		Long:              about,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return s.Begin(cmd.Context(), cmd) },
	}
	s.Flags(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return session.UsageErrorf(cmd, "%s", err) })
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	session.Parent(root)
	for _, t := range commandGroups(s) {
		root.AddGroup(&cobra.Group{ID: t.id, Title: t.title})
		for _, v := range t.verbs {
			v.GroupID = t.id
		}
		root.AddCommand(t.verbs...)
	}
	root.SetHelpCommandGroupID("setup")
	root.SetCompletionCommandGroupID("setup")
	root.InitDefaultCompletionCmd()
	return root
}
