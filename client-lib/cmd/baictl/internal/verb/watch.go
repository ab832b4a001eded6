package verb

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const detaching = `Ctrl-C detaches: the run goes on, baictl says how to come back and exits with 4,
as after --timeout: the outcome is not known. A second Ctrl-C ends baictl at
once. A broken connection is said once and mended.`

func watchCommand(s *session) *cobra.Command {
	return withNoun(&cobra.Command{
		Use:   "watch RUN",
		Short: "Show what happened to a run, and what happens, until its end",
		Long: `Shows all that happened to a run and what happens to it until its end, and
exits with the code of its outcome (see baictl --help).

` + detaching + `

With -o json or yaml: one object for each change. With -o name: the run's ID at
its end.`,
		Args:              arguments(1, 1, "a RUN"),
		ValidArgsFunction: s.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return s.watch(cmd.Context(), args[0]) },
	})
}

func (s *session) watch(ctx context.Context, name string) error {
	first, err := s.client()
	if err != nil {
		return err
	}
	run, err := first.Get(ctx, name)
	if err != nil {
		return err
	}
	client, err := s.followClient()
	if err != nil {
		return err
	}
	ctx, release := s.env.Interrupts(ctx, verdict.ErrDetached)
	defer release()
	f := &follow.Follower{Screen: s.screen, Watcher: client, ID: run.GetId(), Begin: run.GetCreateTime().AsTime()}
	var failed error
	switch s.output {
	case "json", "yaml":
		f.All = true
		f.Say = func(c *baiv1.Change) {
			if err := s.printOne(s.env.Out, show.JSON(c)); err != nil && failed == nil {
				failed = err
			}
		}
	case "name":
		f.Say = func(*baiv1.Change) {}
	}
	last, err := f.Follow(ctx)
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if s.output == "name" {
		s.screen.Line(run.GetId())
	}
	return verdict.Of(run.GetId(), last)
}
