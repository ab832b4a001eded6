package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// loadStored reads the part of the run that is stored already.
func (in *importer) loadStored(ctx context.Context) (k storedRun, err error) {
	id, st := in.begin.Run, in.deps.Store
	run, err := st.Run(ctx, id)
	switch {
	case err == nil:
		k.run = &run
	case !errors.Is(err, store.ErrNotFound):
		return k, err
	}
	if _, k.submitted, err = store.FindSubmission(ctx, st, id); err != nil {
		return k, err
	}
	if k.mark, err = findOptional[importMark](ctx, st, store.KindImport, id); err != nil {
		return k, err
	}
	if k.environment, err = findOptional[store.RunEnvironment](ctx, st, store.KindEnvironment, id); err != nil {
		return k, err
	}
	if k.summaries, err = findOptional[store.Summaries](ctx, st, store.KindSummary, id); err != nil {
		return k, err
	}
	if k.streams, err = st.Streams(ctx, id); err != nil {
		return k, err
	}
	if k.files, err = in.deps.Artifacts.List(ctx, id); err != nil {
		return k, err
	}
	k.events, err = in.storedHistory(ctx, id)
	return k, err
}

// findOptional does the same as store.Find, but returns nil for a missing document.
func findOptional[T any](ctx context.Context, docs store.Getter, kind store.Kind, key string) (*T, error) {
	v, _, found, err := store.Find[T](ctx, docs, kind, key)
	if !found {
		return nil, err
	}
	return &v, nil
}

// storedHistory returns the stored history of a run, as far as the import has one.
func (in *importer) storedHistory(ctx context.Context, id string) ([]store.Change, error) {
	var all []store.Change
	for len(all) < len(in.events) {
		some, err := in.deps.Store.Changes(ctx, id, int64(len(all)), maxPage)
		if err != nil || len(some) == 0 {
			return all, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// storeHistory stores the run with every change of its history. Until all changes are
// stored, a reader sees the final state of the run with the first part of its history.
func (in *importer) storeHistory(ctx context.Context, after int64) error {
	for _, c := range in.events[min(after, int64(len(in.events))):] {
		r := in.run
		r.Revision = c.Revision
		err := in.deps.Store.PutRun(ctx, r, c)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return fmt.Errorf("record change %d of run %s: %w", c.Revision, r.ID, err)
		}
	}
	return nil
}

// storeArtifact stores an artifact.
func (in *importer) storeArtifact(ctx context.Context, file *incomingFile) error {
	name := strings.TrimPrefix(file.file.Name, artifacts)
	i := slices.IndexFunc(in.files, func(f artifact.File) bool { return f.Name == name })
	return in.deps.Artifacts.Restore(ctx, in.begin.Run, in.files[i], file)
}

// storeEnds stores the end of each stream.
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

// storeDocuments stores the documents, except the run.
func (in *importer) storeDocuments(ctx context.Context) error {
	id := in.begin.Run
	if in.original != in.run.Descriptor {
		if err := put(ctx, in.deps.Store, store.KindOriginalDescriptor, id, store.OriginalDescriptor{Descriptor: in.original}); err != nil {
			return err
		}
	}
	for key, text := range in.manifests {
		if err := put(ctx, in.deps.Store, store.KindManifest, key, manifestDocument{YAML: text}); err != nil {
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

// storePoints stores the points of the run, which are marked as those of an import unless
// one has asked for a place in the history: it ran on another platform.
func (in *importer) storePoints(ctx context.Context) error {
	_, revision, _, err := store.Find[store.Summaries](ctx, in.deps.Store, store.KindSummary, in.begin.Run)
	if err != nil {
		return err
	}
	mark, _, err := store.Get[importMark](ctx, in.deps.Store, store.KindImport, in.begin.Run)
	if err != nil {
		return err
	}
	results := points.Results{Summaries: in.summaries, Revision: revision, Imported: !mark.History}
	if mark.History {
		results.Revision = max(revision, 1) // of a run without samples, too: they replace those that were no points
	}
	if in.environment != nil {
		results.Environment = in.environment.Attempt(in.run.Attempt)
	}
	return in.deps.Store.PutPoints(ctx, points.Of(in.run, results))
}

// put stores v and replaces the value of an earlier import.
func put[T any](ctx context.Context, docs store.Docs, kind store.Kind, key string, v T) error {
	_, err := store.Update(ctx, docs, kind, key, func(T, bool) (T, bool, error) { return v, true, nil })
	return err
}

// mark marks the run as imported, and records whether the import is done.
func (in *importer) mark(ctx context.Context, done bool) error {
	_, err := store.Update(ctx, in.deps.Store, store.KindImport, in.begin.Run, func(is importMark, found bool) (importMark, bool, error) {
		next := importMark{
			Digest: in.digest, By: in.begin.By, At: in.deps.Now().UTC().Round(0), Done: done, History: in.begin.History || is.History,
		}
		if found {
			next.By, next.At = is.By, is.At
		}
		return next, true, nil
	})
	return err
}
