package store

import (
	"context"
	"errors"
	"fmt"
)

// Find is Get for a document that may be missing, which is not an error: found is false then, and the version is 0.
func Find[T any](ctx context.Context, docs Getter, kind Kind, key string) (v T, version int64, found bool, err error) {
	v, version, err = Get[T](ctx, docs, kind, key)
	if errors.Is(err, ErrNotFound) {
		return v, 0, false, nil
	}
	return v, version, err == nil, err
}

// Mutation returns the next value of a document, and whether to write it. Found is false if there is no document yet.
type Mutation[T any] func(is T, found bool) (next T, write bool, err error)

// Update reads the document of kind and key, calls change for its next value, and writes that unless write is false. It creates the
// document if there is none. If another writer changes the document in between, Update starts again, until ctx is done: change may be
// called several times, and may get its own earlier value. Update returns the value that change returned last. An error of change ends
// Update, which returns it unchanged.
func Update[T any](ctx context.Context, docs Docs, kind Kind, key string, change Mutation[T]) (T, error) {
	for {
		is, version, found, err := Find[T](ctx, docs, kind, key)
		if err != nil {
			return is, err
		}
		next, write, err := change(is, found)
		if err != nil || !write {
			return next, err
		}
		if found {
			_, err = Replace(ctx, docs, kind, key, version, next)
		} else {
			err = Create(ctx, docs, kind, key, next)
		}
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrExists) {
			return next, err
		}
		if ctx.Err() != nil {
			return next, ctx.Err()
		}
	}
}

// Canceled reports whether run has a cancel mark. Find reads the mark itself, which is an event.Command of KindCancel.
func Canceled(ctx context.Context, docs Getter, run string) (bool, error) {
	_, err := docs.Doc(ctx, KindCancel, run)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the cancel mark of run %s: %w", run, err)
	}
	return true, nil
}
