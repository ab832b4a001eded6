package results

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/download"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Artifacts is the verb artifacts.
func Artifacts(s *session.Session) *cobra.Command {
	return session.Parent(&cobra.Command{
		Use:     "artifacts",
		Aliases: []string{"artifact"},
		Short:   "List and fetch the files that were kept of a run",
		Long: `Lists and fetches the files that were kept of a run: those that its descriptor
names in [[output.artifacts]]. They are there once the benchmark is over. A
file's name is ATTEMPT/ROLE-INDEX/PATH. A name with characters that are not
shown, such as the end of a line, is shown in quotes ("a\\nb"), and can be typed
so.`,
	}, artifactsList(s), artifactsGet(s))
}

func artifactsList(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "list RUN",
		Short: "List the files that were kept of a run",
		Long: `Lists the files that were kept of a run. With -o json or yaml: {"artifacts":
[...]}.`,
		Args:              session.Arguments(1, 1, "a RUN"),
		ValidArgsFunction: s.OneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.Client()
			if err != nil {
				return err
			}
			files, err := c.Artifacts(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printArtifacts(s, args[0], files)
		},
	}
}

func printArtifacts(s *session.Session, run string, files []*baiv1.Artifact) error {
	switch s.Output {
	case "json", "yaml":
		text, err := session.Object(session.Entry{Name: "artifacts", Value: session.Array(files)})
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		for _, f := range files {
			if err := session.WriteText(s.Env.Out, printer.Name(f.GetName())+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	if len(files) == 0 {
		s.Screen.Note("baictl: no files are kept of run " + printer.Clean(run))
		return nil
	}
	t := printer.Table{Columns: []printer.Column{{Title: "NAME", Flex: true}, {Title: "SIZE", Right: true}, {Title: "SHA256"}}}
	digits := 12
	if s.Output == "wide" {
		digits = 64
		t.Columns = append(t.Columns, printer.Column{Title: "KEPT"})
	}
	for _, f := range files {
		row := []string{printer.Name(f.GetName()), printer.Bytes(f.GetSize()), fmt.Sprintf("%.*s", digits, f.GetSha256())}
		if s.Output == "wide" {
			row = append(row, printer.Time(f.GetTime()))
		}
		t.Rows = append(t.Rows, row)
	}
	return s.PrintTable(t)
}

// downloadFlags select files and a target.
type downloadFlags struct {
	folder string
	force  bool
}

func artifactsGet(s *session.Session) *cobra.Command {
	var f downloadFlags
	cmd := &cobra.Command{
		Use:   "get RUN [NAME...]",
		Short: "Fetch files that were kept of a run",
		Long: `Fetches files that were kept of a run, all or those that are named, or match a
pattern as 1/*/results/*.json, and puts them below the folder of --to under
their names. Each is checked against its sha256 before it has its name. What was
interrupted is gone on with; a file that is there already is left as it is, and
another one in its place only overwritten with --force. A file that cannot be
fetched stops no other. Names that this system does not have are escaped: a
character that is not allowed, and "%", become %XX.

With --to - the one file is written to standard output. With -o json or yaml:
{"artifacts": [{"path", "already", ...}]}. With -o name: the paths.`,
		Example: `  baictl artifacts get 01kdyt1q880000000000000001 --to results/
  baictl artifacts get nightly-7 1/benchmark-0/out.json --to - | jq .`,
		Args:              session.Arguments(1, -1, "a RUN"),
		ValidArgsFunction: s.Artifacts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, s, args[0], args[1:])
		},
	}
	cmd.Flags().StringVar(&f.folder, "to", ".", "`FOLDER` in which the files are put")
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite other files that are in the way")
	_ = cmd.MarkFlagDirname("to") // fails for flags that do not exist
	return cmd
}

func (f downloadFlags) run(cmd *cobra.Command, s *session.Session, run string, names []string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	files, err := c.Artifacts(cmd.Context(), run)
	if err != nil {
		return err
	}
	selected, err := selectFiles(files, run, names)
	if err != nil {
		return err
	}
	if f.folder == "-" {
		if len(selected) != 1 {
			return session.UsageErrorf(cmd, "--to - writes one file, not %d", len(selected))
		}
		return writeOut(cmd.Context(), s, c, run, selected[0])
	}
	return f.save(cmd, s, c, run, selected)
}

// selectFiles are the files that are named, in their order; all where none is.
func selectFiles(files []*baiv1.Artifact, run string, names []string) ([]*baiv1.Artifact, error) {
	if len(files) == 0 {
		return nil, &bai.NotFoundError{What: "artifact", Message: fmt.Sprintf("no files are kept of run %q", run)}
	}
	for _, name := range names {
		if !slices.ContainsFunc(files, func(f *baiv1.Artifact) bool { return matches(name, f) }) {
			return nil, &exitcode.UsageError{
				Message: fmt.Sprintf("no file %q is kept of run %q", name, run),
				Help:    "baictl artifacts list " + run,
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(files), func(f *baiv1.Artifact) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return matches(name, f) })
	}), nil
}

func matches(name string, f *baiv1.Artifact) bool {
	ok, err := path.Match(name, f.GetName())
	return name == f.GetName() || name == printer.Name(f.GetName()) || err == nil && ok
}

func writeOut(ctx context.Context, s *session.Session, c *bai.Client, run string, f *baiv1.Artifact) error {
	check := download.Check(f)
	for piece, err := range c.Artifact(ctx, run, f.GetName(), 0) {
		if err != nil {
			return err
		}
		if err := session.WriteText(io.MultiWriter(s.Env.Out, check), string(piece)); err != nil {
			return err
		}
	}
	return check.Err()
}

// savedFile is the outcome for one file.
type savedFile struct {
	path    string
	already bool
	file    *baiv1.Artifact
}

func (f downloadFlags) save(cmd *cobra.Command, s *session.Session, c *bai.Client, run string, files []*baiv1.Artifact) error {
	if err := os.MkdirAll(f.folder, 0o755); err != nil {
		return &exitcode.UsageError{Message: err.Error()}
	}
	root, err := os.OpenRoot(f.folder)
	if err != nil {
		return &exitcode.UsageError{Message: err.Error()}
	}
	defer func() { _ = root.Close() }() // written files are closed already
	ctx, release := s.Env.Interrupts(cmd.Context(), exitcode.ErrDetached)
	defer release()
	var all []savedFile
	var faults []error
	for _, file := range files {
		done, err := f.saver(ctx, s, c, run, root, file).Save(file)
		s.Screen.Live("")
		if err != nil {
			faults = append(faults, explainError(ctx, err))
			if isFatal(ctx, err) {
				break
			}
			continue
		}
		if done.Path != file.GetName() {
			s.Screen.Note(fmt.Sprintf("baictl: this system has no file %s: it is written as %s", printer.Name(file.GetName()),
				printer.Name(done.Path)))
		}
		all = append(all, savedFile{path.Join(f.folder, done.Path), done.Already, file})
	}
	return errors.Join(printSaved(s, all), joinFaults(ctx, s, faults, len(files)))
}

// isFatal reports whether an error that one file met ends the fetching of all.
func isFatal(ctx context.Context, err error) bool {
	_, away := errors.AsType[*bai.UnavailableError](err)
	return ctx.Err() != nil || away
}

// joinFaults is the error of a fetching of so many files. Where several were wanted,
// it prints the faults, and the error says how many there are.
func joinFaults(ctx context.Context, s *session.Session, faults []error, files int) error {
	if len(faults) == 0 || files == 1 || len(faults) == 1 && isFatal(ctx, faults[0]) {
		return errors.Join(faults...)
	}
	for _, err := range faults {
		s.Screen.Note("baictl: " + exitcode.Line(err))
	}
	return &incompleteError{faults: faults, files: files}
}

// An incompleteError says that some files were not fetched. It does not say why: that
// was printed.
type incompleteError struct {
	faults []error
	files  int
}

// Error says how many.
func (e *incompleteError) Error() string {
	return fmt.Sprintf("%d of %s were not fetched", len(e.faults), printer.Plural(e.files, "file"))
}

// Unwrap returns the gravest of the errors, which decides the exit code.
func (e *incompleteError) Unwrap() error {
	return slices.MaxFunc(e.faults, func(a, b error) int { return cmp.Compare(exitcode.Code(a), exitcode.Code(b)) })
}

func (f downloadFlags) saver(ctx context.Context, s *session.Session, c *bai.Client, run string, root *os.Root,
	file *baiv1.Artifact,
) download.Saver {
	shown := time.Time{}
	return download.Saver{
		Root: root, Force: f.force,
		Read: func(name string, offset int64) iter.Seq2[[]byte, error] { return c.Artifact(ctx, run, name, offset) },
		OnProgress: func(done int64) {
			if now := time.Now(); now.Sub(shown) > 100*time.Millisecond {
				s.Screen.Live(file.GetName() + "  " + printer.Progress(&baiv1.Progress{Done: done, Total: file.GetSize(), Unit: "bytes"}))
				shown = now
			}
		},
	}
}

// explainError says how an interrupted fetch is gone on with, and whose fault another
// one is.
func explainError(ctx context.Context, err error) error {
	_, exists := errors.AsType[*download.ExistsError](err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: what was fetched is kept, the same command goes on with it", context.Cause(ctx))
	case exists:
		return &exitcode.UsageError{Message: err.Error()}
	}
	return err
}

func printSaved(s *session.Session, all []savedFile) error {
	if s.Structured() {
		return printSavedObjects(s, all)
	}
	for _, one := range all {
		text := printer.Name(one.path)
		if s.Output != "name" {
			text += ", " + printer.Bytes(one.file.GetSize())
			if one.already {
				text += ", was there already"
			}
		}
		if err := session.WriteText(s.Env.Out, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func printSavedObjects(s *session.Session, all []savedFile) error {
	objects := make([]json.RawMessage, len(all))
	for i, one := range all {
		head, err := session.Object(session.Entry{Name: "path", Value: one.path}, session.Entry{Name: "already", Value: one.already})
		if err != nil {
			return err
		}
		objects[i] = session.Join(head, printer.JSON(one.file))
	}
	text, err := session.Object(session.Entry{Name: "artifacts", Value: objects})
	if err != nil {
		return err
	}
	return s.Print(text)
}
