package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// How long an import has its run for itself without a sign of life, and how
// often it gives one.
const (
	leaseTTL      = 30 * time.Second
	renewInterval = 5 * time.Second
)

// Import keeps a run that comes from another platform, as it was there. Nothing
// is written before all documents have come and fit together, and the run can be
// seen once all of it is there. What was cut off is gone on with by importing
// again. It says *FileError, *PreconditionError, *RunExistsError, *ImportInProgressError, *StorageFullError, *StreamError,
// and *artifact.LimitError for files that are more than is kept.
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
	lease, err := t.acquireLease(ctx, begin.Run)
	if err != nil {
		return Result{}, err
	}
	in := &importer{deps: t.deps, importedRun: b, begin: begin, digest: digestOf(begin.Files), lease: lease}
	defer lease.release(context.WithoutCancel(ctx))
	return in.importRun(ctx, files)
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

// unexpectedEOF makes the end of all an error.
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
	lease  *importLease
}

// importRun imports what is not there.
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

// finish remembers the documents, and the run last.
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

// storeHistory records the run, with every change that led to it. Whoever looks sees
// it as it is in the end, with as much of its history as there is.
func (in *importer) storeHistory(ctx context.Context, after int64) error {
	for _, c := range in.events[min(after, int64(len(in.events))):] {
		r := in.importedRun.run
		r.Revision = c.Revision
		err := in.deps.Store.PutRun(ctx, r, c)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return fmt.Errorf("record change %d of run %s: %w", c.Revision, r.ID, err)
		}
		if err := in.lease.renew(ctx); err != nil {
			return err
		}
	}
	return nil
}

// receive takes in the files that are wanted.
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

// storeArtifact keeps a file.
func (in *importer) storeArtifact(ctx context.Context, file *incomingFile) error {
	name := strings.TrimPrefix(file.file.Name, artifacts)
	i := slices.IndexFunc(in.files, func(f artifact.File) bool { return f.Name == name })
	body := &leaseReader{Reader: file, renew: func() error { return in.lease.renew(ctx) }}
	return in.deps.Artifacts.Restore(ctx, in.begin.Run, in.files[i], body)
}

// leaseReader is a reader that gives signs of life.
type leaseReader struct {
	io.Reader

	renew func() error
}

// Read implements io.Reader.
func (b *leaseReader) Read(p []byte) (int, error) {
	if err := b.renew(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

// storeEnds remembers how each source ended.
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

// storeDocuments remembers what is small of the run.
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
		if err := put(ctx, in.deps.Store, store.KindEnvironment, id, in.environment); err != nil {
			return err
		}
	}
	if in.summaries != nil {
		return put(ctx, in.deps.Store, store.KindSummary, id, in.summaries)
	}
	return nil
}

// put stores v, in place of what was stored by an import before.
func put(ctx context.Context, docs store.Docs, kind store.Kind, key string, v any) error {
	for {
		err := store.Create(ctx, docs, kind, key, v)
		if !errors.Is(err, store.ErrExists) {
			return err
		}
		d, err := docs.Doc(ctx, kind, key)
		if err == nil {
			_, err = store.Replace(ctx, docs, kind, key, d.Version, v)
		}
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// mark remembers that the run comes from elsewhere, and whether all of it is
// there.
func (in *importer) mark(ctx context.Context, done bool) error {
	was, _, ok, err := get[Mark](ctx, in.deps.Store, store.KindImport, in.begin.Run)
	if err != nil {
		return err
	}
	m := Mark{Digest: in.digest, By: in.begin.By, At: in.deps.Now().UTC().Round(0), Done: done}
	if ok {
		m.By, m.At = was.By, was.At
	}
	return put(ctx, in.deps.Store, store.KindImport, in.begin.Run, m)
}
