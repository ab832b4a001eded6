package results

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

// Environment is the verb environment.
func Environment(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "environment RUN",
		Short: "Show the machine, system, programs and image of a run",
		Long: `Shows the machines of a run's pods as their containers saw them, and the digests
of its descriptor and data.

The fingerprint is the same for runs whose numbers may be compared, as far as
that depends on where they ran. Part of it are the image as the descriptor names
it and, of each pod, the digest of the image that the cluster ran, its role,
architecture, processor model and counts, NUMA nodes, memory in GiB, governor,
turbo, hypervisor, models of GPUs and their driver, limits of the container, and
the first two numbers of the kernel. Not part of it are names of nodes, the
container's system, clocks, tools, data and descriptor. The digest is known once
the run has ended; clusters that run no images say "none".

With -o json or yaml: all of it. With -o name: the fingerprint.`,
		Args:              session.Arguments(1, 1, "a RUN is missing"),
		ValidArgsFunction: s.OneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return environment(cmd.Context(), s, args[0])
		},
	}
	return session.WithNoun(cmd)
}

func environment(ctx context.Context, s *session.Session, run string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	e, err := c.Environment(ctx, run)
	if err != nil {
		return err
	}
	switch {
	case s.Structured():
		return s.Print(printer.JSON(e))
	case s.Output == "name":
		return session.WriteText(s.Env.Out, e.GetFingerprint()+"\n")
	}
	if len(e.GetPods()) == 0 {
		s.Screen.Note("baictl: no pod of run " + printer.Clean(run) + " has said yet where it runs")
	}
	var b strings.Builder
	for _, line := range printer.Environment(e) {
		if line.Value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", line.Label, line.Value)
		}
	}
	for _, d := range e.GetData() {
		fmt.Fprintf(&b, "%-11s %s\n", "Data set", printer.Clean(fmt.Sprintf("%s, sha256 %s", d.GetSource(), d.GetSha256())))
	}
	return session.WriteText(s.Env.Out, b.String())
}
