package results

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/report"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// tailLines is the number of lines of each source that a report on a run shows.
const tailLines = 100

// Report is the verb report.
func Report(s *session.Session) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "report RUN|SET",
		Short: "Write a report on a run or a set as one HTML file",
		Long: `Writes what is known of a run or a set as one HTML file, which needs no other
file, no script and no network.

Of a set: its facts, and for each metric a table with the median of each cell,
its interval and its place, and plots by the parameters that vary; failed runs
with reasons, and where the first and the last run that succeeded ran. Of a run:
its facts, the summaries of its metrics, its steps, files, the last 100 lines of
each source, and where it ran. Both end with the descriptor.

-o FILE is written once all is known, and replaces an older one. -o - is
standard output. Times are in UTC.`,
		Example: `  baictl report sizes -o sizes.html
  baictl report 01kdyt1q880000000000000001 -o run.html`,
		Args:              session.Arguments(1, 1, "a RUN or SET"),
		ValidArgsFunction: s.OneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if path == "" {
				return session.UsageErrorf(cmd, "name the file: -o FILE.html")
			}
			return writeReport(cmd.Context(), s, args[0], path)
		},
	}
	cmd.Flags().StringVarP(&path, "output", "o", "", "`FILE` to write; - is standard output")
	_ = cmd.MarkFlagFilename("output", "html") // fails for flags that do not exist
	return cmd
}

func writeReport(ctx context.Context, s *session.Session, name, path string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	where, err := s.ResolveContext()
	if err != nil {
		return err
	}
	g := gatherer{Client: c, source: report.Source{Time: time.Now(), Version: session.OwnVersion(s.Env.Version), Server: where.Server}}
	text, err := g.report(ctx, name)
	if err != nil {
		return err
	}
	if path == "-" {
		return session.WriteText(s.Env.Out, text)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil { // less what the user's mask takes away
		return &exitcode.UsageError{Message: err.Error()}
	}
	return nil
}

// gatherer requests what reports are made of.
type gatherer struct {
	*bai.Client

	source report.Source
}

// report is the report on the run or the set with an ID or a name.
func (g gatherer) report(ctx context.Context, name string) (string, error) {
	set, err := g.Set(ctx, name)
	if err != nil && !isNone(err) {
		return "", err
	}
	run, err := g.Get(ctx, name)
	switch {
	case err != nil && !isNone(err):
		return "", err
	case set != nil && run != nil:
		return "", &exitcode.UsageError{Message: fmt.Sprintf("%q is a run, %s, and a set, %s: name one by its ID",
			name, run.GetId(), set.GetId())}
	case set != nil:
		return g.setReport(ctx, set)
	case run != nil:
		return g.runReport(ctx, run)
	}
	return "", &bai.NotFoundError{Message: fmt.Sprintf("there is no run and no set %q", name)}
}

// isNone reports whether there is no such thing, or the platform has no such things.
func isNone(err error) bool {
	_, missing := errors.AsType[*bai.NotFoundError](err)
	return missing || bai.Unsupported(err)
}

func (g gatherer) setReport(ctx context.Context, set *baiv1.Set) (string, error) {
	in := report.SetReport{Set: set, Source: g.source}
	for cell, err := range g.SetResults(ctx, set.GetId()) {
		if err != nil {
			return "", err
		}
		in.Cells = append(in.Cells, cell)
	}
	runs, err := session.RunsOfSet(ctx, g.Client, set.GetId())
	if err != nil {
		return "", err
	}
	in.Runs = slices.Collect(maps.Values(runs))
	for _, id := range firstAndLast(runs) {
		e, err := g.Environment(ctx, id)
		if err != nil && !isNone(err) {
			return "", err
		}
		if len(e.GetPods()) > 0 {
			in.Environments = append(in.Environments, report.RunEnvironment{Run: id, Environment: e})
		}
	}
	return in.HTML()
}

// firstAndLast returns the IDs of the first and the last run that succeeded, which sort by
// the time of their submission.
func firstAndLast(runs map[string]*baiv1.Run) []string {
	var succeeded []string
	for id, run := range runs {
		if run.GetOutcome() == baiv1.Outcome_OUTCOME_SUCCEEDED {
			succeeded = append(succeeded, id)
		}
	}
	if len(succeeded) < 2 {
		return succeeded
	}
	return []string{slices.Min(succeeded), slices.Max(succeeded)}
}

func (g gatherer) runReport(ctx context.Context, run *baiv1.Run) (string, error) {
	in := report.RunReport{Run: run, Source: g.source}
	var err error
	if in.Summaries, err = g.Summaries(ctx, run.GetId()); err != nil && !isNone(err) {
		return "", err
	}
	own, system := printer.SplitSystem(in.Summaries.GetSummaries())
	in.Metrics, in.System = summaries(own, false), summaries(system, false)
	if in.Environment, err = g.Environment(ctx, run.GetId()); err != nil && !isNone(err) {
		return "", err
	}
	if in.Artifacts, err = g.Artifacts(ctx, run.GetId()); err != nil && !isNone(err) {
		return "", err
	}
	if in.Changes, err = session.ChangesOf(ctx, g.Client, run); err != nil {
		return "", err
	}
	for line, err := range g.Logs(ctx, run.GetId(), bai.LogOptions{Tail: tailLines}) {
		if err != nil {
			return "", err
		}
		in.Lines = append(in.Lines, line)
	}
	return in.HTML()
}
