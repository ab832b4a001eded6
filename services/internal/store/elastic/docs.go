package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// page is how many documents one search returns at most.
const page = 10_000

// docRecord is a small document as it is stored.
type docRecord struct {
	Kind    string `json:"kind"`
	Key     string `json:"key"`
	Version int64  `json:"version"`
	Value   string `json:"value,omitempty"`
	Bytes   []byte `json:"bytes,omitempty"` // where Value would not be text
}

func newDocRecord(d store.Doc) docRecord {
	k := docRecord{Kind: string(d.Kind), Key: d.Key, Version: d.Version}
	if utf8.Valid(d.Value) {
		k.Value = string(d.Value)
	} else {
		k.Bytes = d.Value
	}
	return k
}

func (k docRecord) doc() store.Doc {
	d := store.Doc{Kind: store.Kind(k.Kind), Key: k.Key, Version: k.Version, Value: k.Bytes}
	if d.Value == nil {
		d.Value = []byte(k.Value)
	}
	return d
}

// docStore implements store.Docs and store.Lister.
type docStore struct {
	client *client.Client
	schema *schema.Schema
}

// CreateDoc implements store.Docs.
func (s *docStore) CreateDoc(ctx context.Context, d store.Doc) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if err := s.schema.Ensure(ctx); err != nil {
		return err
	}
	d.Version = 1
	err := s.client.Create(ctx, s.client.Index(schema.Docs), names.Doc(d.Kind, d.Key), newDocRecord(d))
	return wrapError(fmt.Sprintf("create %s %q", d.Kind, d.Key), err)
}

// Doc implements store.Docs.
func (s *docStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	k, _, err := s.doc(ctx, kind, key)
	if err != nil {
		return store.Doc{}, wrapError(fmt.Sprintf("read %s %q", kind, key), err)
	}
	return k.doc(), nil
}

func (s *docStore) doc(ctx context.Context, kind store.Kind, key string) (k docRecord, at client.Version, err error) {
	if err := s.schema.Ensure(ctx); err != nil {
		return k, at, err
	}
	at, err = s.client.Get(ctx, s.client.Index(schema.Docs), names.Doc(kind, key), &k)
	return k, at, err
}

// ReplaceDoc implements store.Docs.
func (s *docStore) ReplaceDoc(ctx context.Context, d store.Doc) (int64, error) {
	if err := d.Validate(); err != nil {
		return 0, err
	}
	k, at, err := s.doc(ctx, d.Kind, d.Key)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && k.Version != d.Version:
		err = store.ErrConflict
	case err == nil:
		d.Version++
		err = s.client.Replace(ctx, s.client.Index(schema.Docs), names.Doc(d.Kind, d.Key), at, newDocRecord(d))
	}
	if err != nil {
		return 0, wrapError(fmt.Sprintf("replace version %d of %s %q", d.Version, d.Kind, d.Key), err)
	}
	return d.Version, nil
}

// DeleteDoc implements store.Docs.
func (s *docStore) DeleteDoc(ctx context.Context, d store.Doc) error {
	if err := d.Validate(); err != nil {
		return err
	}
	for {
		k, at, err := s.doc(ctx, d.Kind, d.Key)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err == nil && d.Version != 0 && d.Version != k.Version {
			err = store.ErrConflict
		}
		done := false
		if err == nil {
			done, err = s.client.Delete(ctx, s.client.Index(schema.Docs), names.Doc(d.Kind, d.Key), at)
		}
		if err != nil || done {
			return wrapError(fmt.Sprintf("delete version %d of %s %q", d.Version, d.Kind, d.Key), err)
		}
	}
}

// Docs implements store.Lister.
func (s *docStore) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	if err := positive(limit); err != nil {
		return nil, err
	}
	var docs []store.Doc
	for len(docs) < limit {
		size := min(limit-len(docs), page)
		hits, err := s.client.Search(ctx, s.client.Index(schema.Docs), client.Search{
			Size: size, Sort: []any{client.Asc("key")},
			Query: client.AllOf(client.Term("kind", string(kind)), client.Compare("key", "gt", after)),
		})
		if err != nil {
			return docs, wrapError(fmt.Sprintf("list %s", kind), err)
		}
		for _, h := range hits {
			var k docRecord
			if err := json.Unmarshal(h.Source, &k); err != nil {
				return docs, wrapError(fmt.Sprintf("list %s", kind), err)
			}
			docs, after = append(docs, k.doc()), k.Key
		}
		if len(hits) < size {
			break
		}
	}
	return docs, nil
}

// wrapError names the action that failed.
func wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
