package transfer

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
	leaseTTL   = 30 * time.Second
	leaseAgain = 5 * time.Second
)

// Import keeps a run that comes from another platform, as it was there. Nothing
// is written before all documents have come and fit together, and the run can be
// seen once all of it is there. What was cut off is gone on with by importing
// again. It says *FileError, *StateError, *TakenError, *BusyError, *FullError, *StreamError,
// and *artifact.LimitError for files that are more than is kept.
func (t *Transfer) Import(ctx context.Context, begin Begin, stream Stream) (Result, error) {
	if err := begin.check(); err != nil {
		return Result{}, err
	}
	if t.deps.Room != nil {
		if why := t.deps.Room(); why != "" {
			return Result{}, &FullError{Why: why}
		}
	}
	files := newReceiver(stream, begin.Files)
	documents, err := files.documents(begin)
	if err != nil {
		return Result{}, err
	}
	b, err := read(begin.Run, documents, begin.Files)
	if err != nil {
		return Result{}, err
	}
	hold, err := t.hold(ctx, begin.Run)
	if err != nil {
		return Result{}, err
	}
	in := &importing{deps: t.deps, brought: b, begin: begin, digest: digestOf(begin.Files), hold: hold}
	defer hold.release(context.WithoutCancel(ctx))
	return in.run(ctx, files)
}

// documents receives all documents.
func (r *receiver) documents(begin Begin) (map[string][]byte, error) {
	all := make(map[string][]byte)
	for range begin.documents() {
		in, err := r.file()
		if err != nil {
			return nil, endedEarly(err)
		}
		if !isDocument(in.file.Name) {
			return nil, fault(in.file.Name, 0, "comes before all documents have come")
		}
		if all[in.file.Name], err = in.text(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// endedEarly makes the end of all an error.
func endedEarly(err error) error {
	if errors.Is(err, io.EOF) {
		return broken(err)
	}
	return err
}

// importing is an import whose documents are good.
type importing struct {
	brought

	deps   Deps
	begin  Begin
	digest string
	hold   *hold
}

// run imports what is not there.
func (in *importing) run(ctx context.Context, files *receiver) (Result, error) {
	k, err := in.known(ctx)
	if err != nil {
		return Result{}, err
	}
	p, err := decide(in.brought, k, in.digest)
	if err != nil {
		return Result{}, err
	}
	if p.already {
		return Result{Run: in.begin.Run, Already: true}, files.stream.Want(nil)
	}
	if err := in.mark(ctx, false); err != nil {
		return Result{}, err
	}
	if err := files.stream.Want(p.want); err != nil {
		return Result{}, &StreamError{Err: err}
	}
	if err := in.receive(ctx, files, p.want); err != nil {
		return Result{}, err
	}
	return in.finish(ctx, p)
}

// finish remembers the documents, and the run last.
func (in *importing) finish(ctx context.Context, p plan) (Result, error) {
	for _, step := range []func(context.Context) error{in.ends, in.documents} {
		if err := step(ctx); err != nil {
			return Result{}, err
		}
	}
	result := Result{Run: in.begin.Run}
	named, err := in.deps.Names.Restore(ctx, in.brought.run)
	if err != nil {
		return Result{}, err
	}
	if !named {
		result.Notes = append(result.Notes, fmt.Sprintf("another run of %q is called %q here: this one is found by its ID only", in.brought.run.Owner, in.brought.run.Name))
	}
	if err := in.history(ctx, p.after); err != nil {
		return Result{}, err
	}
	return result, in.mark(ctx, true)
}

// history records the run, with every change that led to it. Whoever looks sees
// it as it is in the end, with as much of its history as there is.
func (in *importing) history(ctx context.Context, after int64) error {
	for _, c := range in.events[min(after, int64(len(in.events))):] {
		r := in.brought.run
		r.Revision = c.Revision
		err := in.deps.Store.PutRun(ctx, r, c)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return fmt.Errorf("record change %d of run %s: %w", c.Revision, r.ID, err)
		}
		if err := in.hold.renew(ctx); err != nil {
			return err
		}
	}
	return nil
}

// receive takes in the files that are wanted.
func (in *importing) receive(ctx context.Context, files *receiver, want []string) error {
	left := slices.Clone(want)
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
			err = in.samples(ctx, file)
		case name == fileLines:
			err = in.lines(ctx, file)
		case strings.HasPrefix(name, artifacts):
			err = in.artifact(ctx, file)
		default:
			err = fault(name, 0, "comes after the documents")
		}
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(o string) bool { return o == name })
	}
	if len(left) > 0 {
		return &StreamError{Err: fmt.Errorf("%s did not come: %w", left[0], io.ErrUnexpectedEOF)}
	}
	return nil
}

// artifact keeps a file.
func (in *importing) artifact(ctx context.Context, file *incoming) error {
	name := strings.TrimPrefix(file.file.Name, artifacts)
	i := slices.IndexFunc(in.files, func(f artifact.File) bool { return f.Name == name })
	beat := &beating{Reader: file, renew: func() error { return in.hold.renew(ctx) }}
	return in.deps.Artifacts.Restore(ctx, in.begin.Run, in.files[i], beat)
}

// beating is a reader that gives signs of life.
type beating struct {
	io.Reader

	renew func() error
}

// Read implements io.Reader.
func (b *beating) Read(p []byte) (int, error) {
	if err := b.renew(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

// ends remembers how each source ended.
func (in *importing) ends(ctx context.Context) error {
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

// documents remembers what is small of the run.
func (in *importing) documents(ctx context.Context) error {
	id := in.begin.Run
	if in.original != in.brought.run.Descriptor {
		if err := put(ctx, in.deps.Store, store.KindOriginal, id, store.Original{Descriptor: in.original}); err != nil {
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
func (in *importing) mark(ctx context.Context, done bool) error {
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
