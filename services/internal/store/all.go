package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// pageOfDocs is how many documents one request lists.
const pageOfDocs = 200

// Document is a Doc with a decoded value.
type Document[T any] struct {
	Key     string
	Version int64
	Value   T
}

// AllDocs yields the documents of kind whose keys begin with prefix, in the byte order of their keys, without the one whose key is prefix
// itself. It reads pages as they are needed; documents may be written and deleted meanwhile. It yields an error of the store last.
func AllDocs(ctx context.Context, docs Lister, kind Kind, prefix string) iter.Seq2[Doc, error] {
	return docsAfter(ctx, docs, kind, prefix, prefix)
}

// docsAfter is AllDocs for keys greater than after, which begins with prefix.
func docsAfter(ctx context.Context, docs Lister, kind Kind, prefix, after string) iter.Seq2[Doc, error] {
	return func(yield func(Doc, error) bool) {
		for after, more := after, true; more; {
			page, err := docs.Docs(ctx, kind, after, pageOfDocs)
			if err != nil {
				yield(Doc{}, fmt.Errorf("list %s: %w", kind, err))
				return
			}
			for _, d := range page {
				if !strings.HasPrefix(d.Key, prefix) || !yield(d, nil) {
					return
				}
				after = d.Key
			}
			more = len(page) == pageOfDocs
		}
	}
}

// All is AllDocs with each value decoded as a T. An error beside a key means that this document cannot be decoded, and others follow; an
// error without a key is that of the store, and the last.
func All[T any](ctx context.Context, docs Lister, kind Kind, prefix string) iter.Seq2[Document[T], error] {
	return decoded[T](kind, AllDocs(ctx, docs, kind, prefix))
}

// AllAfter is All for keys greater than after, whatever they begin with.
func AllAfter[T any](ctx context.Context, docs Lister, kind Kind, after string) iter.Seq2[Document[T], error] {
	return decoded[T](kind, docsAfter(ctx, docs, kind, "", after))
}

// decoded decodes each value of documents.
func decoded[T any](kind Kind, all iter.Seq2[Doc, error]) iter.Seq2[Document[T], error] {
	return func(yield func(Document[T], error) bool) {
		for d, err := range all {
			v := Document[T]{Key: d.Key, Version: d.Version}
			if err == nil {
				if err = json.Unmarshal(d.Value, &v.Value); err != nil {
					err = fmt.Errorf("read %s %q: %w", kind, d.Key, err)
				}
			}
			if !yield(v, err) {
				return
			}
		}
	}
}
