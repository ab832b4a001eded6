package verb

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func cancelCommand(s *session) *cobra.Command {
	return withNoun(&cobra.Command{
		Use:   "cancel RUN...",
		Short: "Ask that runs end",
		Long: `Asks that runs end, and returns without waiting for that (see baictl watch).
Asking again, or after the end, changes nothing. With -o json or yaml:
{"runs": [...]}.`,
		Args:              arguments(1, -1, "a RUN"),
		ValidArgsFunction: s.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return s.cancelRuns(cmd.Context(), args) },
	})
}

// cancelRuns cancels all it can, and returns the first error.
func (s *session) cancelRuns(ctx context.Context, names []string) error {
	c, err := s.client()
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
			s.screen.Note("baictl: " + verdict.Line(err))
		}
		if err != nil && !verdict.UsersFault(err) {
			break // the platform is away for the others too
		}
	}
	return errors.Join(failed, s.printCanceled(runs))
}

func (s *session) printCanceled(runs []*baiv1.Run) error {
	if s.structured() {
		text, err := object(entry{"runs", array(runs)})
		if err != nil {
			return err
		}
		return s.print(text)
	}
	for _, run := range runs {
		text := run.GetId()
		if s.output != "name" {
			text += " " + show.Status(run)
		}
		if err := put(s.env.Out, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}
