package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/bai/archive"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// An exporter carries out an export.
type exporter struct {
	session *session.Session
	client  *bai.Client
	runName string
	target  string
	force   bool
	wait    time.Duration
}

// Export is the verb export.
func Export(s *session.Session) *cobra.Command {
	e := exporter{session: s}
	cmd := &cobra.Command{
		Use:   "export RUN DIR|FILE.tar.zst|s3://BUCKET/PREFIX",
		Short: "Write all that is known of a run into a folder, a file or a bucket",
		Long: `Writes all that is known of a run into a folder, a tar.zst or a bucket:

  bai-export.json             sizes, digests, and whether all is there
  run.json, events.jsonl      the run and its history
  descriptor/                 submitted.toml, and resolved.toml as it was run
  manifests/ATTEMPT.yaml      the objects that were created in the cluster
  environment.json            where it ran, and of what it was made
  summaries.json              what its samples come to
  metrics/                    its samples, samples.jsonl and samples.csv
  logs/                       its log, lines.jsonl and text for each container
  artifacts/                  the files that were kept of it
  sources.jsonl, artifacts.jsonl

The run's cluster is not needed, and may be gone. No key, token or value of a
secret is exported: in URLs they are replaced by "redacted". Data sets and code
that was sent along are named and not exported. The same run gives the same
bytes.

Nothing is taken for an export before all of it is there. What lies there
already is only overwritten with --force, and only if it is an export. Other
archives (x.zip, x.tar.gz) are not written: a name that ends so is refused, but
for one with a slash at its end, which is a folder. A bucket
is reached with the user's own credentials, as Amazon's tools do (AWS_PROFILE,
AWS_ENDPOINT_URL and the like).

Of a run that is over, --wait says how long its last data and its summaries are
waited for. What is missing then is said in bai-export.json, and the exit code
is 3. A run that goes on is exported as it is; such an export is not imported.

With -o json or yaml: {"run", "target", "complete", "missing", "files",
"bytes"}. With -o name: the target.`,
		Example: `  baictl export nightly-7 nightly-7.tar.zst
  baictl export 01kdyt1q880000000000000001 s3://results/2026/nightly-7 --force`,
		Args:              session.Arguments(2, 2, "a RUN, or where to write it,"),
		ValidArgsFunction: e.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			e.runName, e.target = args[0], args[1]
			if e.wait < 0 {
				return session.UsageErrorf(cmd, "--wait must not be negative")
			}
			return e.run(cmd)
		},
	}
	cmd.Flags().BoolVar(&e.force, "force", false, "overwrite another export that is in the way")
	cmd.Flags().DurationVar(&e.wait, "wait", 30*time.Second, "how `LONG` to wait for data of a run that is over")
	return cmd
}

// complete offers a run, and then files.
func (e *exporter) complete(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return e.session.Runs(cmd, args, toComplete)
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func (e *exporter) run(cmd *cobra.Command) error {
	ctx, release := e.session.Env.Interrupts(cmd.Context(), exitcode.ErrDetached)
	defer release()
	var err error
	if e.client, err = e.session.Client(); err != nil {
		return err
	}
	sink, err := sinkAt(ctx, e.target, e.force)
	if err != nil {
		return exportInterrupted(ctx, err)
	}
	m, err := e.write(ctx, sink)
	e.session.Screen.Live("")
	if err != nil {
		sink.Abort()
		return exportInterrupted(ctx, e.usage(err))
	}
	if err := e.print(m); err != nil {
		return err
	}
	if !m.Complete {
		return &IncompleteError{Run: m.Run, Missing: m.Missing, Awaited: m.Awaited}
	}
	return nil
}

// usage turns an error of the command line into a usage error.
func (e *exporter) usage(err error) error {
	if _, exists := errors.AsType[*archive.ExistsError](err); exists {
		return &exitcode.UsageError{Message: err.Error()}
	}
	return err
}

// exportInterrupted reports that an interrupted export left no files.
func exportInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: nothing was written", context.Cause(ctx))
	}
	return err
}

// An IncompleteError says that an export lacks something.
type IncompleteError struct {
	Run     string
	Missing int64
	Awaited []string
}

// Error lists the missing data.
func (e *IncompleteError) Error() string {
	return "the export of run " + e.Run + " lacks data: " +
		exitcode.CompletenessText(&baiv1.Completeness{Missing: e.Missing, Awaited: e.Awaited})
}

// write exports the run to a sink.
func (e *exporter) write(ctx context.Context, sink archive.Sink) (archive.Manifest, error) {
	if err := e.waitForData(ctx); err != nil {
		return archive.Manifest{}, err
	}
	in := exportWriter{screen: e.session.Screen, sink: sink, shown: time.Now()}
	for p, err := range e.client.Export(ctx, e.runName) {
		if err == nil {
			err = in.writePiece(p)
		}
		if err != nil {
			return archive.Manifest{}, err
		}
	}
	if in.writer == nil {
		return archive.Manifest{}, errNoHeader
	}
	return in.writer.Finish()
}

// errNoHeader says that a platform breaks its word.
var errNoHeader = errors.New("the platform does not say what it sends")

// An exportWriter writes the pieces of an export.
type exportWriter struct {
	screen *screen.Screen
	sink   archive.Sink
	writer *archive.Writer // nil until the first piece has arrived
	bytes  int64
	shown  time.Time
}

func (in *exportWriter) writePiece(p bai.ExportPiece) error {
	switch {
	case p.Export.GetFormat() > archive.Format:
		return &archive.FormatError{Format: int(p.Export.GetFormat())}
	case p.Export != nil:
		in.writer = archive.NewWriter(in.sink, manifestOf(p.Export))
		return nil
	case in.writer == nil:
		return errNoHeader
	}
	if err := in.writer.Write(p.File, p.Data, p.Last); err != nil {
		return err
	}
	if in.bytes += int64(len(p.Data)); time.Since(in.shown) > 100*time.Millisecond {
		in.screen.Live(fmt.Sprintf("%s  %s", p.File, printer.Bytes(in.bytes)))
		in.shown = time.Now()
	}
	return nil
}

func manifestOf(x *baiv1.Export) archive.Manifest {
	return archive.Manifest{
		Format: int(x.GetFormat()), Run: x.GetRunId(), Platform: x.GetPlatformVersion(),
		Complete: x.GetComplete(), Missing: x.GetMissing(), Dropped: x.GetDropped(), Awaited: x.GetAwaited(),
	}
}

// waitForData waits for the missing data of a finished run.
func (e *exporter) waitForData(ctx context.Context) error {
	end := time.Now().Add(e.wait)
	for {
		run, err := e.client.Get(ctx, e.runName)
		if err != nil {
			return err
		}
		if run.GetPhase() != baiv1.Phase_PHASE_FINISHED || !time.Now().Before(end) {
			return nil
		}
		sums, err := e.client.Summaries(ctx, run.GetId())
		if err != nil {
			return err
		}
		if run.GetCompleteness().GetComplete() && !sums.GetPending() {
			return nil
		}
		e.session.Screen.Live("waiting for data of run " + run.GetId())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(200*time.Millisecond, time.Until(end))):
		}
	}
}

func (e *exporter) print(m archive.Manifest) error {
	var bytes int64
	for _, f := range m.Files {
		bytes += f.Size
	}
	s := e.session
	switch {
	case s.Structured():
		text, err := session.Object(
			session.Entry{Name: "run", Value: m.Run}, session.Entry{Name: "target", Value: e.target},
			session.Entry{Name: "complete", Value: m.Complete}, session.Entry{Name: "missing", Value: m.Missing},
			session.Entry{Name: "files", Value: len(m.Files)}, session.Entry{Name: "bytes", Value: bytes},
		)
		if err != nil {
			return err
		}
		return s.Print(text)
	case s.Output == "name":
		return session.WriteText(s.Env.Out, printer.Clean(e.target)+"\n")
	}
	return session.WriteText(s.Env.Out, fmt.Sprintf("exported run %s to %s (%s, %s)\n", m.Run, printer.Clean(e.target),
		printer.Plural(len(m.Files), "file"), printer.Bytes(bytes)))
}
