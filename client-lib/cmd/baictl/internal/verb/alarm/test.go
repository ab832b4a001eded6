package alarm

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// testWait is how long test waits for an answer.
const testWait = time.Minute

func (v *verbs) test() *cobra.Command {
	return &cobra.Command{
		Use:         "test RECEIVER",
		Short:       "Send a test to a receiver, and show what it answers",
		Annotations: session.ExtraFormats(),
		Long: `Sends a notice that is marked as a test to a receiver of the settings, the way
that other notices go, but past quiet hours, rate and mutes. Waits up to a
minute for the answer, and shows it. The team must be allowed to use the
receiver. docs/receivers.md has the kinds of receivers.

Exits with 1 if the receiver does not take the test, and with 3 if there is no
answer: the analyst, which sends notices, is away or has other settings.

With -o json or yaml: the notice, a message of the API. With -o name: its ID.`,
		Example: `  baictl alarms test perf-team`,
		Args:    session.Arguments(1, 1, "the name of a receiver"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return v.Receivers(cmd, v.namespace), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return v.testOne(cmd.Context(), args[0]) },
	}
}

func (v *verbs) testOne(ctx context.Context, receiver string) error {
	c, team, err := v.dial()
	if err != nil {
		return err
	}
	key := bai.NewKey()
	var got *baiv1.Notice
	for begin := time.Now(); got == nil || got.GetStatus() == "waiting"; {
		if time.Since(begin) >= testWait {
			return fmt.Errorf("receiver %s has not answered within %s: does the analyst run, and do its settings have the receiver?",
				printer.Clean(receiver), printer.Duration(testWait))
		}
		if got, err = c.TestReceiver(ctx, team, receiver, key); err != nil {
			return err
		}
	}
	if err := v.printTest(got); err != nil {
		return err
	}
	if got.GetStatus() != "sent" {
		return &exitcode.ReceiverError{Receiver: printer.Clean(got.GetReceiver()), Answer: printer.Clean(got.GetAnswer())}
	}
	return nil
}

// printTest prints what became of a test, as -o says; without it, a refusal is the error alone.
func (v *verbs) printTest(n *baiv1.Notice) error {
	switch {
	case v.Structured():
		return v.Print(printer.JSON(n))
	case v.Output == "name":
		return session.WriteText(v.Env.Out, printer.Clean(n.GetId())+"\n")
	case n.GetStatus() != "sent":
		return nil
	}
	return session.WriteText(v.Env.Out,
		printer.Clean(fmt.Sprintf("receiver %s took the test, and answered: %s", n.GetReceiver(), n.GetAnswer()))+"\n")
}
