// Package results has the verbs that show the results of runs.
package results

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// logFlags is which lines a user wants to see, and how.
type logFlags struct {
	bai.LogOptions

	since      string
	timestamps bool
	stdout     bool
	stderr     bool
	raw        bool
}

// Logs is the verb logs.
func Logs(s *session.Session) *cobra.Command {
	var v logFlags
	cmd := &cobra.Command{
		Use:         "logs RUN",
		Short:       "Show the output of a run",
		Annotations: session.OnlyFormats("table", "wide", "json", "yaml"),
		Long: `Shows the lines that a run's processes wrote to standard output and error, in
the order in which they were read. Characters that could play with a terminal
are written as \x1b, \r, \u202e; --raw prints the lines as they are. -o wide
says where each comes from. With -o json or yaml: one object for each line.

With --grep only lines that have every one of some words, in any case. A word is
letters and digits, also joined by _ . and -, whole: "CUDA_error-7" is found by
itself and by its parts "cuda" and "error", and not by "err". The platform looks
for them where the lines are kept.

With -f it goes on until the run is over and all its lines are there. Ctrl-C
ends it with exit code 4; the run goes on. A broken connection is reported once
and restored.`,
		Args:              session.Arguments(1, 1, "a RUN"),
		ValidArgsFunction: s.OneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.Tail < 0 || v.Attempt < 0 {
				return session.UsageErrorf(cmd, "--tail and --attempt must not be negative")
			}
			if !v.stdout && !v.stderr {
				v.stdout, v.stderr = true, true
			}
			var err error
			if v.Since, err = session.ParseTime(cmd, "since", v.since, time.Now(), time.Local); err != nil {
				return err
			}
			return v.show(cmd.Context(), s, args[0])
		},
	}
	flags := cmd.PersistentFlags()
	flags.BoolVarP(&v.Follow, "follow", "f", false, "go on until the run is over")
	flags.IntVar(&v.Tail, "tail", 0, "only the last `N` lines of each source; 0 means all")
	flags.IntVar(&v.Attempt, "attempt", 0, "only attempt `N`; 0 means all")
	flags.StringVar(&v.Container, "container", "", "only the container with this `NAME`")
	flags.StringVar(&v.since, "since", "", "only lines read at `TIME` or later: how long ago, as 10m, or as 2026-01-31T15:04:05Z")
	flags.StringVar(&v.Search, "grep", "", "only lines that have every one of these `WORDS`")
	flags.BoolVar(&v.timestamps, "timestamps", false, "the time before each line")
	flags.BoolVar(&v.raw, "raw", false, "the lines as they are, also with control characters")
	flags.BoolVar(&v.stdout, "stdout", false, "only standard output")
	flags.BoolVar(&v.stderr, "stderr", false, "only standard error")
	return session.WithNoun(cmd)
}

func (v logFlags) show(ctx context.Context, s *session.Session, name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(s.Env.Out, 64<<10)
	if !v.Follow {
		return errors.Join(v.copy(ctx, s, c, name, out), flush(out))
	}
	run, err := c.Get(ctx, name)
	if err != nil {
		return err
	}
	if c, err = s.FollowClient(); err != nil {
		return err
	}
	ctx, release := s.Env.Interrupts(ctx, exitcode.ErrDetached)
	defer release()
	err = v.copy(ctx, s, c, run.GetId(), s.Env.Out)
	if ctx.Err() != nil {
		return &exitcode.DetachedError{ID: run.GetId(), Cause: context.Cause(ctx), Lines: true}
	}
	return err
}

func flush(w *bufio.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func (v logFlags) copy(ctx context.Context, s *session.Session, c *bai.Client, run string, w io.Writer) error {
	for line, err := range c.Logs(ctx, run, v.LogOptions) {
		if err != nil {
			return err
		}
		if line.GetStderr() && !v.stderr || !line.GetStderr() && !v.stdout {
			continue
		}
		if err := v.print(s, w, line); err != nil {
			return err
		}
	}
	return nil
}

func (v logFlags) print(s *session.Session, w io.Writer, line *baiv1.LogLine) error {
	if s.Structured() {
		return s.PrintOne(w, printer.JSON(line))
	}
	text := line.GetText() + "\n"
	if !v.raw {
		text = printer.Safe(line.GetText()) + "\n"
	}
	if s.Output == "wide" {
		text = sourceLabel(line) + "  " + text
	}
	if v.timestamps || s.Output == "wide" {
		text = line.GetTime().AsTime().Local().Format(time.RFC3339Nano) + "  " + text
	}
	return session.WriteText(w, text)
}

// sourceLabel says where a line comes from: attempt, role, container, stream.
func sourceLabel(line *baiv1.LogLine) string {
	o, stream := line.GetOrigin(), "stdout"
	if line.GetStderr() {
		stream = "stderr"
	}
	return printer.Clean(fmt.Sprintf("%d %s/%d %s %s", o.GetAttempt(), o.GetRole(), o.GetIndex(), o.GetContainer(), stream))
}
