package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// leaseTTL is the time after which a crashed import no longer blocks other imports of
// its run.
const leaseTTL = 30 * time.Second

// Import stores a run of another platform as it was there. It writes nothing before all
// documents have arrived and fit together, and the run becomes visible when everything
// is stored. An interrupted import continues when it is repeated. The errors are
// *FileError, *PreconditionError, *RunExistsError, *ImportInProgressError,
// *StorageFullError, *StreamError, and *artifact.LimitError for more files than the
// platform may store.
func (t *Archiver) Import(ctx context.Context, begin Begin, stream ImportStream) (Result, error) {
	if err := begin.check(); err != nil {
		return Result{}, err
	}
	if t.deps.StorageFull != nil {
		if reason := t.deps.StorageFull(); reason != "" {
			return Result{}, &StorageFullError{Reason: reason}
		}
	}
	files := newReceiver(stream, begin.Files)
	documents, err := files.documents(begin)
	if err != nil {
		return Result{}, err
	}
	b, err := readDocuments(begin.Run, documents, begin.Files)
	if err != nil {
		return Result{}, err
	}
	in := &importer{deps: t.deps, importedRun: b, begin: begin, digest: digestOf(begin.Files)}
	return in.importAlone(ctx, files)
}

// importer is an import whose documents are valid.
type importer struct {
	importedRun

	deps   Deps
	begin  Begin
	digest string
}

// importAlone imports the run while it holds the lease of the run's imports.
func (in *importer) importAlone(ctx context.Context, files *receiver) (result Result, err error) {
	lease := control.NewLeader(in.deps.Store, "import/"+in.begin.Run, rand.Text(), leaseTTL, control.LeaderSettings{Now: in.deps.Now})
	err = lease.Do(ctx, func(ctx context.Context, _ int64) (err error) {
		result, err = in.importRun(ctx, files)
		return err
	})
	switch {
	case errors.Is(err, store.ErrHeld):
		err = &ImportInProgressError{Run: in.begin.Run}
	case errors.Is(err, control.ErrLost):
		err = fmt.Errorf("import run %s: %w", in.begin.Run, control.ErrLost)
	}
	return result, err
}

// importRun stores the missing parts of the run.
func (in *importer) importRun(ctx context.Context, files *receiver) (Result, error) {
	k, err := in.loadStored(ctx)
	if err != nil {
		return Result{}, err
	}
	p, err := decide(in.importedRun, k, in.digest, in.begin.History)
	if err != nil {
		return Result{}, err
	}
	if p.already {
		return Result{Run: in.begin.Run, Already: true}, files.stream.RequestFiles(nil)
	}
	if err := in.mark(ctx, false); err != nil {
		return Result{}, err
	}
	if err := files.stream.RequestFiles(p.want); err != nil {
		return Result{}, &StreamError{Err: err}
	}
	if err := in.receive(ctx, files, p.want); err != nil {
		return Result{}, err
	}
	return in.finish(ctx, p)
}

// finish stores the ends of the streams, the documents, the name, and finally the run with
// its points.
func (in *importer) finish(ctx context.Context, p importPlan) (Result, error) {
	for _, step := range []func(context.Context) error{in.storeEnds, in.storeDocuments} {
		if err := step(ctx); err != nil {
			return Result{}, err
		}
	}
	result := Result{Run: in.begin.Run}
	named, err := in.deps.Names.RestoreName(ctx, in.run)
	if err != nil {
		return Result{}, err
	}
	if !named {
		result.Notes = append(result.Notes,
			fmt.Sprintf("another run of %q is called %q here: this one is found by its ID only", in.run.Owner, in.run.Name))
	}
	if err := in.storeHistory(ctx, p.after); err != nil {
		return Result{}, err
	}
	err = in.storePoints(ctx)
	if errors.Is(err, store.ErrRefused) {
		result.Notes, err = append(result.Notes, "its results are no points of a history: "+err.Error()), nil
	}
	if err != nil {
		return Result{}, err
	}
	return result, in.mark(ctx, true)
}

// receive stores the requested files.
func (in *importer) receive(ctx context.Context, files *receiver, want []string) error {
	missing := slices.Clone(want)
	for {
		file, err := files.file()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := file.file.Name
		switch {
		case name == fileSamples:
			err = in.storeSamples(ctx, file)
		case name == fileLines:
			err = in.storeLines(ctx, file)
		case strings.HasPrefix(name, artifacts):
			err = in.storeArtifact(ctx, file)
		default:
			err = fault(name, 0, "comes after the documents")
		}
		if err != nil {
			return err
		}
		missing = slices.DeleteFunc(missing, func(o string) bool { return o == name })
	}
	if len(missing) > 0 {
		return &StreamError{Err: fmt.Errorf("%s did not come: %w", missing[0], io.ErrUnexpectedEOF)}
	}
	return nil
}
