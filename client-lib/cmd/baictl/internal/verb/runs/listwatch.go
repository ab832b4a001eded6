package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// period is how often a list that is watched is read.
const period = time.Second

// follow keeps a list current until the user has enough of it.
func (l listFlags) follow(cmd *cobra.Command, s *session.Session, filter bai.Filter) error {
	ctx, release := s.Env.Interrupts(cmd.Context(), exitcode.ErrDetached)
	defer release()
	c, err := s.FollowClient()
	if err != nil {
		return err
	}
	var seen changeTracker
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		runs, _, err := l.read(ctx, c, filter)
		if ctx.Err() != nil {
			return ignoreDetach(ctx)
		}
		if err != nil {
			return err
		}
		if err := l.refresh(s, &seen, runs, filter.Owner); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ignoreDetach(ctx)
		}
	}
}

// ignoreDetach is nil if the user ended an endless list.
func ignoreDetach(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, exitcode.ErrDetached) {
		return err
	}
	return nil
}

func (l listFlags) refresh(s *session.Session, seen *changeTracker, runs []*baiv1.Run, owner string) error {
	if s.Screen.IsLive() && !s.Structured() && s.Output != "name" {
		return redraw(s, runs, owner)
	}
	for _, run := range seen.update(runs) {
		if err := printChange(s, run, seen.titles()); err != nil {
			return err
		}
	}
	return nil
}

// redraw shows a list in place of the one before it.
func redraw(s *session.Session, runs []*baiv1.Run, owner string) error {
	lines := []string{"no runs" + noMatchText(owner)}
	if len(runs) > 0 {
		lines = strings.Split(strings.TrimSuffix(table(s, runs, time.Now()).Render(s.Screen.Width()), "\n"), "\n")
	}
	s.Screen.Page(lines)
	return nil
}

// changeTracker finds the runs that have changed since the last time.
type changeTracker struct {
	last          map[string]string
	titlesPrinted bool
}

// update returns the runs that changed, the oldest first.
func (c *changeTracker) update(runs []*baiv1.Run) []*baiv1.Run {
	var changed []*baiv1.Run
	now := map[string]string{}
	for _, run := range slices.Backward(runs) {
		now[run.GetId()] = strings.Join([]string{printer.Status(run), run.GetReason(), fmt.Sprint(run.GetAttempt())}, "\n")
		if c.last[run.GetId()] != now[run.GetId()] {
			changed = append(changed, run)
		}
	}
	c.last = now
	return changed
}

// titles says, once, that a table begins.
func (c *changeTracker) titles() bool {
	first := !c.titlesPrinted
	c.titlesPrinted = true
	return first
}

func printChange(s *session.Session, run *baiv1.Run, titles bool) error {
	switch {
	case s.Structured():
		return s.PrintOne(s.Env.Out, printer.JSON(run))
	case s.Output == "name":
		return session.WriteText(s.Env.Out, run.GetId()+"\n")
	}
	t := table(s, []*baiv1.Run{run}, time.Now())
	// Lines that come one by one cannot wait for the widest.
	for i, least := range []int{26, 24, 10, 16, 6, 4} {
		t.Columns[i].Least = least
	}
	text := t.Render(0)
	if !titles {
		_, text, _ = strings.Cut(text, "\n")
	}
	return session.WriteText(s.Env.Out, text)
}
