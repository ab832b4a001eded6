package verb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func runCommand(s *session) *cobra.Command {
	var w wish
	var dataTimeout time.Duration
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Submit a run and follow it until its end",
		Long: `Submits a run, shows what happens to it until its end, waits until its samples
and lines are in the store, and exits with the code of its outcome (see baictl
--help). FILE - is the standard input. Where the data do not become complete it
says what is missing, and exits with 3 if the run succeeded.

` + detaching + `

With -o json, yaml or name the run is printed at the end, as baictl get does,
and what happens to it goes to standard error.`,
		Args: arguments(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := w.files(cmd, args)
			if err != nil {
				return err
			}
			return s.run(cmd, w, files[0], dataTimeout)
		},
	}
	w.flags(cmd)
	cmd.PersistentFlags().DurationVar(&dataTimeout, "data-timeout", 30*time.Second, "wait so `LONG` after the end for the run's data")
	return withNoun(cmd)
}

func (s *session) run(cmd *cobra.Command, w wish, file string, dataTimeout time.Duration) error {
	ctx, release := s.env.Interrupts(cmd.Context(), verdict.ErrDetached)
	defer release()
	cmd.SetContext(ctx)
	begin := time.Now()
	first, err := s.client()
	if err != nil {
		return err
	}
	got, err := s.submitOne(cmd, first, w, file)
	if err != nil {
		return err
	}
	client, err := s.followClient()
	if err != nil {
		return err
	}
	f := &follow.Follower{Screen: s.screen, Watcher: client, ID: got.RunID, Begin: begin}
	if s.output != "table" && s.output != "wide" {
		f.Say = func(c *baiv1.Change) { s.screen.Note(follow.Line(s.screen, c)) }
	} else {
		s.screen.Line("run " + got.RunID)
	}
	last, err := f.Follow(ctx)
	if err != nil {
		return err
	}
	return s.finish(ctx, client, got.RunID, last, dataTimeout)
}

// finish waits for a run's data, prints the run, and returns what is wrong with
// it: first its outcome, then its data.
func (s *session) finish(ctx context.Context, client *bai.Client, id string, last *baiv1.Change, wait time.Duration) error {
	short, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.screen.Live("finished, waiting for its data")
	run, err := client.WaitData(short, id)
	s.screen.Live("")
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	outcome := verdict.Of(id, last)
	if err != nil {
		err = lacking(ctx, id, wait, run, err)
	}
	if run != nil {
		if printing := s.printFinished(run); printing != nil {
			return printing
		}
	}
	if outcome != nil && err != nil {
		s.screen.Note("baictl: " + verdict.Line(err))
	}
	if outcome != nil {
		return outcome
	}
	return err
}

// lacking says that data are not there, unless the user did not wait for them.
func lacking(ctx context.Context, id string, wait time.Duration, run *baiv1.Run, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for the data of run %s: %w", id, err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &verdict.DataError{ID: id, After: wait, Known: run.GetCompleteness()}
}

func (s *session) printFinished(run *baiv1.Run) error {
	switch s.output {
	case "json", "yaml":
		return s.print(show.JSON(run))
	case "name":
		return put(s.env.Out, run.GetId()+"\n")
	}
	status := show.Status(run)
	s.screen.Line(fmt.Sprintf("run %s %s after %s, %s", run.GetId(), s.screen.Paint(follow.Style(status), status),
		show.Span(run.GetCreateTime(), run.GetEndTime()), verdict.Stored(run.GetCompleteness())))
	return nil
}
