package store

import (
	"context"
	"errors"
	"fmt"
)

// Find is Get for a document that may be missing, which is not an error: found is
// false then, and the version is 0.
func Find[T any](ctx context.Context, docs Getter, kind Kind, key string) (v T, version int64, found bool, err error) {
	v, version, err = Get[T](ctx, docs, kind, key)
	if errors.Is(err, ErrNotFound) {
		return v, 0, false, nil
	}
	return v, version, err == nil, err
}

// Mutation makes the next value of a document, found saying whether there is one
// yet, and reports whether to write it.
type Mutation[T any] func(is T, found bool) (next T, write bool, err error)

// Update reads the document of kind and key, has change make the next value of it,
// and writes that unless write is false, creating the document where it was not
// found. While others write the document in between, all of this begins anew, until
// ctx is done: so change may be called several times, and may find its own
// earlier value. Update returns the value that change returned last. An error of change
// ends it, and is returned as it is.
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

// Canceled reports whether run has a cancel mark. Find reads the mark itself, which
// is an event.Command of KindCancel.
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
