package runs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Cancel is the verb cancel.
func Cancel(s *session.Session) *cobra.Command {
	return session.WithNoun(&cobra.Command{
		Use:   "cancel RUN...",
		Short: "Ask that runs end",
		Long: `Asks that runs end, and returns without waiting for that (see baictl watch).
Asking again, or after the end, changes nothing. With -o json or yaml:
{"runs": [...]}.`,
		Args:              session.Arguments(1, -1, "a RUN"),
		ValidArgsFunction: s.Runs,
		RunE:              func(cmd *cobra.Command, args []string) error { return cancelRuns(cmd.Context(), s, args) },
	})
}

// cancelRuns cancels all it can, and returns the first error.
func cancelRuns(ctx context.Context, s *session.Session, names []string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	var runs []*baiv1.Run
	var failed error
	for _, name := range names {
		run, err := c.Cancel(ctx, name)
		switch {
		case err == nil:
			runs = append(runs, run)
		case failed == nil:
			failed = err
		default:
			s.PrintError(err)
		}
		if err != nil && !exitcode.IsUserError(err) {
			break // the platform is away for the others too
		}
	}
	return errors.Join(failed, printCanceled(s, runs))
}

func printCanceled(s *session.Session, runs []*baiv1.Run) error {
	if s.Structured() {
		text, err := session.Object(session.Entry{Name: "runs", Value: session.Array(runs)})
		if err != nil {
			return err
		}
		return s.Print(text)
	}
	for _, run := range runs {
		text := run.GetId()
		if s.Output != "name" {
			text += " " + cancelStatus(run)
		}
		if err := session.WriteText(s.Env.Out, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}
