package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/bai/archive"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Import is the verb import.
func Import(s *session.Session) *cobra.Command {
	var check, history bool
	cmd := &cobra.Command{
		Use:   "import DIR|FILE.tar.zst|s3://BUCKET/PREFIX",
		Short: "Have a platform remember a run that was exported from another",
		Long: `Reads an export of a run back, into another platform or the same, as the same
run: its ID, its submitter, its times, its history, samples, log, summaries and
files. An import runs nothing, and sends no notification.

With --history the run is a point of the history of its task: in baictl history
and changes, in the spread of runs, and for alarms, which look at it with the
next run of the task and notify nobody of what lies far back. Without the flag
it can be named and compared, and counts nowhere by itself. The same command
with --history makes an imported run a point; nothing but its deletion undoes
it.

The export is checked first: sizes, digests, names, and every line of JSON. With
--check that is all, and no platform is needed.

What was imported before is there already, and nothing changes; what was
interrupted is gone on with by the same command. Where another run has the ID
nothing is imported. An export of a newer format than the platform knows is
refused: import it into a platform that is as new as the one that it comes
from.

With -o json or yaml: {"run", "already", "notes"}. With -o name: the ID.`,
		Example: `  baictl import nightly-7.tar.zst --server other:7070
  baictl import nightly-7.tar.zst --history
  baictl import s3://results/2026/nightly-7 --check`,
		Args: session.Arguments(1, 1, "what to import"),
		RunE: func(cmd *cobra.Command, args []string) error { return importFrom(cmd, s, args[0], check, history) },
	}
	cmd.Flags().BoolVar(&check, "check", false, "check the export, and import nothing")
	cmd.Flags().BoolVar(&history, "history", false, "make the run a point of the history of its task")
	return cmd
}

func importFrom(cmd *cobra.Command, s *session.Session, location string, check, history bool) error {
	ctx, release := s.Env.Interrupts(cmd.Context(), exitcode.ErrDetached)
	defer release()
	source, err := sourceAt(ctx, location)
	if err != nil {
		return err
	}
	s.Screen.Live("checking " + printer.Clean(location))
	checked, err := archive.Check(source)
	s.Screen.Live("")
	if err != nil {
		return importInterrupted(ctx, badArchive(location, err))
	}
	if check {
		return printCheck(s, location, checked)
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	s.Screen.Live("importing run " + checked.Run)
	in := importOf(checked)
	in.History = history
	done, err := c.Import(ctx, in)
	s.Screen.Live("")
	if err != nil {
		return importInterrupted(ctx, badArchive(location, err))
	}
	return printImport(s, done)
}

// importInterrupted says how an import that the user interrupted is gone on with.
func importInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: the run is not there yet, the same command goes on with it", context.Cause(ctx))
	}
	return err
}

// badArchive reports a fault in the user's archive.
func badArchive(location string, err error) error {
	_, faulty := errors.AsType[*archive.FaultError](err)
	_, newer := errors.AsType[*archive.FormatError](err)
	if faulty || newer || errors.Is(err, fs.ErrNotExist) {
		return &exitcode.UsageError{Message: fmt.Sprintf("%s: %v", location, err)}
	}
	return err
}

func importOf(c *archive.Checked) bai.Importing {
	in := bai.Importing{Format: c.Format, Run: c.Run, Documents: c.Documents, Content: c.Content}
	for _, f := range c.Files() {
		in.Files = append(in.Files, &baiv1.TransferredFile{Name: f.Name, Size: f.Size, Sha256: f.SHA256})
	}
	return in
}

func printCheck(s *session.Session, location string, c *archive.Checked) error {
	switch {
	case s.Structured():
		text, err := session.Object(session.Entry{Name: "run", Value: c.Run}, session.Entry{Name: "complete", Value: c.Complete},
			session.Entry{Name: "files", Value: len(c.Manifest.Files)})
		if err != nil {
			return err
		}
		return s.Print(text)
	case s.Output == "name":
		return session.WriteText(s.Env.Out, printer.Clean(c.Run)+"\n")
	}
	state := "complete"
	if !c.Complete {
		state = "not complete"
	}
	return session.WriteText(s.Env.Out, fmt.Sprintf("%s: run %s, %s, %s\n", printer.Clean(location), printer.Clean(c.Run),
		printer.Plural(len(c.Manifest.Files), "file"), state))
}

func printImport(s *session.Session, done *baiv1.Imported) error {
	switch {
	case s.Structured():
		text, err := session.Object(session.Entry{Name: "run", Value: done.GetRunId()}, session.Entry{
			Name:  "already",
			Value: done.GetAlready(),
		}, session.Entry{Name: "notes", Value: append([]string{}, done.GetNotes()...)})
		if err != nil {
			return err
		}
		return s.Print(text)
	case s.Output == "name":
		return session.WriteText(s.Env.Out, printer.Clean(done.GetRunId())+"\n")
	}
	for _, note := range done.GetNotes() {
		s.Screen.Note("baictl: " + printer.Clean(note))
	}
	text := "run " + done.GetRunId() + " was imported\n"
	if done.GetAlready() {
		text = "run " + done.GetRunId() + " was there already\n"
	}
	return session.WriteText(s.Env.Out, text)
}
