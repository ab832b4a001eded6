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

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// leaseTTL is the time after which an import that died no longer excludes another of
// its run.
const leaseTTL = 30 * time.Second

// Import stores a run of another platform as it was there. It writes nothing before
// all documents have come and fit together, and the run is visible once all of it is
// stored. An import that was cut off continues when it is repeated. Its errors are
// *FileError, *PreconditionError, *RunExistsError,
// *ImportInProgressError, *StorageFullError, *StreamError, and *artifact.LimitError
// for more files than may be stored.
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

// documents receives all documents.
func (r *receiver) documents(begin Begin) (map[string][]byte, error) {
	all := make(map[string][]byte)
	for range begin.documents() {
		in, err := r.file()
		if err != nil {
			return nil, unexpectedEOF(err)
		}
		if !isDocument(in.file.Name) {
			return nil, fault(in.file.Name, 0, "comes before all documents have come")
		}
		if all[in.file.Name], err = in.readAll(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unexpectedEOF turns the end of the stream into an error.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return streamError(err)
	}
	return err
}

// importer is an import whose documents are good.
type importer struct {
	importedRun

	deps   Deps
	begin  Begin
	digest string
}

// importAlone imports the run under its lease.
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

// importRun stores the parts of the run that are missing.
func (in *importer) importRun(ctx context.Context, files *receiver) (Result, error) {
	k, err := in.loadStored(ctx)
	if err != nil {
		return Result{}, err
	}
	p, err := decide(in.importedRun, k, in.digest)
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

// finish stores the documents, and the run last.
func (in *importer) finish(ctx context.Context, p importPlan) (Result, error) {
	for _, step := range []func(context.Context) error{in.storeEnds, in.storeDocuments} {
		if err := step(ctx); err != nil {
			return Result{}, err
		}
	}
	result := Result{Run: in.begin.Run}
	named, err := in.deps.Names.RestoreName(ctx, in.importedRun.run)
	if err != nil {
		return Result{}, err
	}
	if !named {
		result.Notes = append(result.Notes, fmt.Sprintf("another run of %q is called %q here: this one is found by its ID only", in.importedRun.run.Owner, in.importedRun.run.Name))
	}
	if err := in.storeHistory(ctx, p.after); err != nil {
		return Result{}, err
	}
	return result, in.mark(ctx, true)
}

// storeHistory stores the run with every change that led to it. A reader sees the run
// as it is in the end, with the part of its history that is stored.
func (in *importer) storeHistory(ctx context.Context, after int64) error {
	for _, c := range in.events[min(after, int64(len(in.events))):] {
		r := in.importedRun.run
		r.Revision = c.Revision
		err := in.deps.Store.PutRun(ctx, r, c)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return fmt.Errorf("record change %d of run %s: %w", c.Revision, r.ID, err)
		}
	}
	return nil
}

// receive stores the files that are wanted.
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

// storeArtifact stores a file.
func (in *importer) storeArtifact(ctx context.Context, file *incomingFile) error {
	name := strings.TrimPrefix(file.file.Name, artifacts)
	i := slices.IndexFunc(in.files, func(f artifact.File) bool { return f.Name == name })
	return in.deps.Artifacts.Restore(ctx, in.begin.Run, in.files[i], file)
}

// storeEnds stores the end of each source.
func (in *importer) storeEnds(ctx context.Context) error {
	var samples []store.Samples
	var lines []store.Lines
	for _, s := range in.sources {
		switch {
		case s.End == nil:
		case s.Topic == event.TopicLogs:
			lines = append(lines, store.Lines{Origin: s.origin(in.begin.Run), End: s.End})
		default:
			samples = append(samples, store.Samples{Origin: s.origin(in.begin.Run), End: s.End})
		}
	}
	if err := in.deps.Store.AppendSamples(ctx, samples); err != nil {
		return err
	}
	return in.deps.Store.AppendLines(ctx, lines)
}

// storeDocuments stores the documents beside the run.
func (in *importer) storeDocuments(ctx context.Context) error {
	id := in.begin.Run
	if in.original != in.importedRun.run.Descriptor {
		if err := put(ctx, in.deps.Store, store.KindOriginalDescriptor, id, store.OriginalDescriptor{Descriptor: in.original}); err != nil {
			return err
		}
	}
	for key, text := range in.manifests {
		if err := put(ctx, in.deps.Store, store.KindManifest, key, Manifest{YAML: text}); err != nil {
			return err
		}
	}
	if in.environment != nil {
		if err := put(ctx, in.deps.Store, store.KindEnvironment, id, *in.environment); err != nil {
			return err
		}
	}
	if in.summaries != nil {
		return put(ctx, in.deps.Store, store.KindSummary, id, *in.summaries)
	}
	return nil
}

// put stores v in place of the value of an earlier import.
func put[T any](ctx context.Context, docs store.Docs, kind store.Kind, key string, v T) error {
	_, err := store.Update(ctx, docs, kind, key, func(T, bool) (T, bool, error) { return v, true, nil })
	return err
}

// mark marks the run as imported, and whether all of it is stored.
func (in *importer) mark(ctx context.Context, done bool) error {
	_, err := store.Update(ctx, in.deps.Store, store.KindImport, in.begin.Run, func(is Mark, found bool) (Mark, bool, error) {
		next := Mark{Digest: in.digest, By: in.begin.By, At: in.deps.Now().UTC().Round(0), Done: done}
		if found {
			next.By, next.At = is.By, is.At
		}
		return next, true, nil
	})
	return err
}
