package skew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Docs keeps what was put aside.
type Docs interface {
	store.Docs
	store.Lister
}

// Queue is what a service put aside: documents of one kind whose keys begin alike.
type Queue[T any] struct {
	docs   Docs
	kind   store.Kind
	prefix string
}

// NewQueue returns the queue of a kind and of the beginning of its keys, which may be
// empty.
func NewQueue[T any](docs Docs, kind store.Kind, prefix string) Queue[T] {
	return Queue[T]{docs: docs, kind: kind, prefix: prefix}
}

// PutIfAbsent puts something aside, and returns what is aside under that key: what was put there
// first stays, so that its time counts from then.
func (q Queue[T]) PutIfAbsent(ctx context.Context, key string, item T) (T, error) {
	err := store.Create(ctx, q.docs, q.kind, q.prefix+key, item)
	if !errors.Is(err, store.ErrExists) {
		if err != nil {
			err = fmt.Errorf("put %s aside: %w", key, err)
		}
		return item, err
	}
	was, _, err := store.Get[T](ctx, q.docs, q.kind, q.prefix+key)
	if errors.Is(err, store.ErrNotFound) {
		return item, nil // somebody has just decided about it
	}
	if err != nil {
		return item, fmt.Errorf("look at %s, which is aside: %w", key, err)
	}
	return was, nil
}

// ForEach hands over all that is aside, and forgets those about which decide has decided.
// Whatever follows is done before that: decide may be called again with the same.
func (q Queue[T]) ForEach(ctx context.Context, decide func(ctx context.Context, item T) (decided bool, err error)) error {
	const page = 100
	for after := q.prefix; ; {
		docs, err := q.docs.Docs(ctx, q.kind, after, page)
		if err != nil {
			return fmt.Errorf("list what waits for a newer release: %w", err)
		}
		for _, d := range docs {
			if after = d.Key; !strings.HasPrefix(d.Key, q.prefix) {
				return nil
			}
			if err := q.handle(ctx, d, decide); err != nil {
				return err
			}
		}
		if len(docs) < page {
			return nil
		}
	}
}

func (q Queue[T]) handle(ctx context.Context, d store.Doc, decide func(context.Context, T) (bool, error)) error {
	var item T
	if err := json.Unmarshal(d.Value, &item); err != nil {
		return fmt.Errorf("read %s, which is aside: %w", d.Key, err)
	}
	decided, err := decide(ctx, item)
	if err != nil || !decided {
		return err
	}
	return q.docs.DeleteDoc(ctx, store.Doc{Kind: q.kind, Key: d.Key})
}

// Delete forgets what is aside under a key, if something is.
func (q Queue[T]) Delete(ctx context.Context, key string) error {
	return q.docs.DeleteDoc(ctx, store.Doc{Kind: q.kind, Key: q.prefix + key})
}
