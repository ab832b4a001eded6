package archive

import (
	"context"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
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
	if _, _, k.submitted, err = store.Find[event.Submitted](ctx, st, store.KindSubmission, id); err != nil {
		return k, err
	}
	if k.mark, err = findOptional[Mark](ctx, st, store.KindImport, id); err != nil {
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

// findOptional is store.Find with nil for a document that is missing.
func findOptional[T any](ctx context.Context, docs store.Getter, kind store.Kind, key string) (*T, error) {
	v, _, found, err := store.Find[T](ctx, docs, kind, key)
	if !found {
		return nil, err
	}
	return &v, nil
}

// storedHistory returns the stored history, as far as one is imported.
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
