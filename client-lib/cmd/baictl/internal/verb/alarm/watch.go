package alarm

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// checkWatch refuses flags that have no meaning for a watch.
func (v *verbs) checkWatch(cmd *cobra.Command) error {
	for _, name := range []string{"all", "limit"} {
		if cmd.Flags().Changed(name) {
			return session.UsageErrorf(cmd, "--watch shows all changes: leave out --%s", name)
		}
	}
	if v.Output == "csv" {
		return session.UsageErrorf(cmd, "--watch writes no csv: use -o jsonl")
	}
	return nil
}

// watch shows open incidents, then each change, until the user ends it.
func (v *verbs) watch(cmd *cobra.Command, f listFlags) error {
	if err := v.checkWatch(cmd); err != nil {
		return err
	}
	team, err := v.Team(v.namespace)
	if err != nil {
		return err
	}
	ctx, release := v.Env.Interrupts(cmd.Context(), exitcode.ErrDetached)
	defer release()
	c, err := v.FollowClient()
	if err != nil {
		return err
	}
	for i, err := range c.WatchIncidents(ctx, &baiv1.WatchIncidentsRequest{Namespace: team, Task: f.task, Metric: f.metric}) {
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if err != nil {
			return err
		}
		if len(f.states) > 0 && !slices.Contains(f.states, i.GetState()) {
			continue
		}
		if err := v.printChange(i); err != nil {
			return err
		}
	}
	return ended(ctx)
}

// ended is nil if the user ended the watch.
func ended(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, exitcode.ErrDetached) {
		return err
	}
	return nil
}

// printChange prints an incident that is new or has changed.
func (v *verbs) printChange(i *baiv1.Incident) error {
	switch {
	case v.Output == "jsonl":
		return session.WriteText(v.Env.Out, string(printer.JSON(i))+"\n")
	case v.Structured():
		return v.PrintOne(v.Env.Out, printer.JSON(i))
	case v.Output == "name":
		return session.WriteText(v.Env.Out, printer.Clean(i.GetId())+"\n")
	}
	state, text := printer.Clean(i.GetState()), printer.Clean(i.GetMessage())
	head := minute(since(i)) + "  " + shortID(i.GetId()) + "  " + state + strings.Repeat(" ", max(0, len("acknowledged")-len(state))) + "  "
	line := head + text // tools read lines
	if v.Screen.IsTerminal() {
		line = printer.Hang(head, text, v.Screen.Width())
	}
	v.Screen.Line(strings.Replace(line, state, v.Screen.Paint(stateStyles()[state], state), 1))
	return nil
}
