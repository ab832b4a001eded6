package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Run is the verb run.
func Run(s *session.Session) *cobra.Command {
	var w submitFlags
	var dataTimeout time.Duration
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Submit a run and follow it until its end",
		Long: `Submits a run, shows what happens to it until its end, waits until its samples
and lines are in the store, and exits with the code of its outcome (see baictl
--help). Where the data do not become complete it says what is missing, and
exits with 3 if the run succeeded.

` + session.Sources + `

` + scriptHelp + `

` + session.Detaching + `

A descriptor with info.scheduling makes a schedule, as baictl submit does. One
with a table sweep, and a suite, a file with a table suite that lists
descriptors, make a set, whose progress is shown until it has finished:
the exit code is 0 if all runs succeeded, 1 if a run failed, 5 if the set or a
run was canceled. Data are not waited for, and -o json or yaml prints the set.

With -o json, yaml or name the run is printed at the end, as baictl get does,
and what happens to it goes to standard error.`,
		Example: `  baictl run resnet.toml --set hardware.gpus=4
  baictl run benchmark --descriptor=resnet.toml`,
		Args:              session.Arguments(0, 1, ""),
		ValidArgsFunction: s.StoredDescriptors(input.Stored),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := w.files(cmd, args)
			if err != nil {
				return err
			}
			return runOne(cmd, s, w, files[0], dataTimeout)
		},
	}
	w.fileFlags(cmd, s)
	cmd.PersistentFlags().DurationVar(&dataTimeout, "data-timeout", 30*time.Second, "wait so `LONG` after the end for the run's data")
	return session.WithNoun(cmd)
}

func runOne(cmd *cobra.Command, s *session.Session, w submitFlags, file string, dataTimeout time.Duration) error {
	ctx, release := s.Env.Interrupts(cmd.Context(), exitcode.ErrDetached)
	defer release()
	cmd.SetContext(ctx)
	begin := time.Now()
	first, err := s.Client()
	if err != nil {
		return err
	}
	got, err := w.submitFile(cmd, s, first, file)
	if err != nil {
		return err
	}
	if got.schedule != nil { // there is nothing to follow
		return printSubmitted(s, []submitResult{got})
	}
	client, err := s.FollowClient()
	if err != nil {
		return err
	}
	if got.set != nil {
		return followSet(ctx, s, client, got.set)
	}
	f := &follow.Follower{Screen: s.Screen, Watcher: client, ID: got.RunID, Begin: begin}
	if s.Output != "table" && s.Output != "wide" {
		f.OnChange = func(c *baiv1.Change) { s.Screen.Note(follow.Line(s.Screen, c)) }
	} else {
		s.Screen.Line("run " + got.RunID)
	}
	last, err := f.Follow(ctx)
	if err != nil {
		return err
	}
	return waitAndPrint(ctx, s, client, got.RunID, last, dataTimeout)
}

// followSet shows the progress of a set until it has finished, and prints the set.
func followSet(ctx context.Context, s *session.Session, client *bai.Client, made *baiv1.Set) error {
	f := &follow.SetFollower{Screen: s.Screen, Watcher: client, ID: made.GetId()}
	plain := s.Output == "table" || s.Output == "wide"
	if plain {
		s.Screen.Line("set " + made.GetId())
	} else {
		f.OnChange = func(one *baiv1.Set) { s.Screen.Note(follow.SetLine(s.Screen, one)) }
	}
	last, err := f.Follow(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.Structured():
		err = s.Print(printer.JSON(last))
	case s.Output == "name":
		err = session.WriteText(s.Env.Out, last.GetId()+"\n")
	default:
		status := printer.SetStatus(last)
		s.Screen.Line(fmt.Sprintf("set %s %s after %s, %s", last.GetId(), s.Screen.Paint(follow.Style(status), status),
			printer.Span(last.GetCreateTime(), last.GetEndTime()), printer.SetCounts(last)))
	}
	return cmp.Or(err, exitcode.FromSet(last))
}

// waitAndPrint waits for a run's data, prints the run, and returns its failure: first its
// outcome, then its data.
func waitAndPrint(ctx context.Context, s *session.Session, client *bai.Client, id string, last *baiv1.Change, wait time.Duration) error {
	short, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.Screen.Live("finished, waiting for its data")
	run, err := client.WaitData(short, id)
	s.Screen.Live("")
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	outcome := exitcode.FromChange(id, last)
	if err != nil {
		err = missingDataError(ctx, id, wait, run, err)
	}
	if run != nil {
		if printing := printFinished(s, run); printing != nil {
			return printing
		}
	}
	if outcome != nil && err != nil {
		s.PrintError(err)
	}
	if outcome != nil {
		return outcome
	}
	return err
}

// missingDataError says that data are not there, unless the user did not wait for them.
func missingDataError(ctx context.Context, id string, wait time.Duration, run *baiv1.Run, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for the data of run %s: %w", id, err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &exitcode.DataError{ID: id, After: wait, Completeness: run.GetCompleteness()}
}

func printFinished(s *session.Session, run *baiv1.Run) error {
	switch s.Output {
	case "json", "yaml":
		return s.Print(printer.JSON(run))
	case "name":
		return session.WriteText(s.Env.Out, run.GetId()+"\n")
	}
	status := printer.Status(run)
	s.Screen.Line(fmt.Sprintf("run %s %s after %s, %s", run.GetId(), s.Screen.Paint(follow.Style(status), status),
		printer.Span(run.GetCreateTime(), run.GetEndTime()), exitcode.StoredText(run.GetCompleteness())))
	return nil
}
