package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Watch is the verb watch.
func Watch(s *session.Session) *cobra.Command {
	return session.WithNoun(&cobra.Command{
		Use:   "watch RUN",
		Short: "Show the history of a run, and its progress until its end",
		Long: `Shows the whole history of a run and its progress until its end, and exits with
the code of its outcome (see baictl --help).

` + session.Detaching + `

With -o json or yaml: one object for each change. With -o name: the run's ID at
its end.`,
		Args:              session.Arguments(1, 1, "a RUN"),
		ValidArgsFunction: s.OneRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return watch(cmd.Context(), s, args[0]) },
	})
}

func watch(ctx context.Context, s *session.Session, name string) error {
	first, err := s.Client()
	if err != nil {
		return err
	}
	run, err := first.Get(ctx, name)
	if err != nil {
		return err
	}
	client, err := s.FollowClient()
	if err != nil {
		return err
	}
	ctx, release := s.Env.Interrupts(ctx, exitcode.ErrDetached)
	defer release()
	f := &follow.Follower{Screen: s.Screen, Watcher: client, ID: run.GetId(), Begin: run.GetCreateTime().AsTime()}
	var failed error
	switch s.Output {
	case "json", "yaml":
		f.All = true
		f.OnChange = func(c *baiv1.Change) {
			if err := s.PrintOne(s.Env.Out, printer.JSON(c)); err != nil && failed == nil {
				failed = err
			}
		}
	case "name":
		f.OnChange = func(*baiv1.Change) {}
	}
	last, err := f.Follow(ctx)
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if s.Output == "name" {
		s.Screen.Line(run.GetId())
	}
	return exitcode.FromChange(run.GetId(), last)
}
