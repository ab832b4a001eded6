package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// page is how many documents one search returns at most.
const page = 10_000

// docRecord is a small document as it is kept.
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

// docVersion is where a document was found, for compare-and-set.
type docVersion struct {
	seq  int64
	term int64
}

func (p docVersion) query() url.Values {
	return url.Values{"if_seq_no": {strconv.FormatInt(p.seq, 10)}, "if_primary_term": {strconv.FormatInt(p.term, 10)}}
}

// get reads one document as it was last written by anybody, or says
// store.ErrNotFound.
func (s *Store) get(ctx context.Context, index, id string, into any) (docVersion, error) {
	a, err := s.call(ctx, http.MethodGet, "/"+index+"/_doc/"+url.PathEscape(id), nil, nil, http.StatusNotFound)
	if err != nil {
		return docVersion{}, err
	}
	var got struct {
		Found  bool            `json:"found"`
		Seq    int64           `json:"_seq_no"`
		Term   int64           `json:"_primary_term"`
		Source json.RawMessage `json:"_source"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		return docVersion{}, err
	}
	if !got.Found {
		return docVersion{}, store.ErrNotFound
	}
	return docVersion{got.Seq, got.Term}, json.Unmarshal(got.Source, into)
}

// create writes a document, or says store.ErrExists.
func (s *Store) create(ctx context.Context, index, id string, body any) error {
	a, err := s.call(ctx, http.MethodPut, "/"+index+"/_create/"+url.PathEscape(id), nil, body, http.StatusConflict)
	if err == nil && a.status == http.StatusConflict {
		return store.ErrExists
	}
	return asRefused(err)
}

// replace writes a document in place of the one found there, or says
// store.ErrConflict.
func (s *Store) replace(ctx context.Context, index, id string, at docVersion, body any) error {
	a, err := s.call(ctx, http.MethodPut, "/"+index+"/_doc/"+url.PathEscape(id), at.query(), body, http.StatusConflict)
	if err == nil && a.status == http.StatusConflict {
		return store.ErrConflict
	}
	return asRefused(err)
}

// asRefused turns the server's refusal of a document itself into store.ErrRefused.
func asRefused(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.permanent() {
		return fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	return err
}

// CreateDoc implements store.Docs.
func (s *Store) CreateDoc(ctx context.Context, d store.Doc) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if err := s.ensureSetup(ctx); err != nil {
		return err
	}
	d.Version = 1
	err := s.create(ctx, s.index(indexDocs), docID(d.Kind, d.Key), newDocRecord(d))
	if d.Kind == store.KindSummary && (err == nil || errors.Is(err, store.ErrExists)) {
		if resultsErr := s.writeStoredResults(ctx, d.Key); resultsErr != nil { // who writes a summary does so until it goes through
			err = resultsErr
		}
	}
	return wrapError(fmt.Sprintf("create %s %q", d.Kind, d.Key), err)
}

// Doc implements store.Docs.
func (s *Store) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	k, _, err := s.doc(ctx, kind, key)
	if err != nil {
		return store.Doc{}, wrapError(fmt.Sprintf("read %s %q", kind, key), err)
	}
	return k.doc(), nil
}

func (s *Store) doc(ctx context.Context, kind store.Kind, key string) (k docRecord, at docVersion, err error) {
	if err := s.ensureSetup(ctx); err != nil {
		return k, at, err
	}
	at, err = s.get(ctx, s.index(indexDocs), docID(kind, key), &k)
	return k, at, err
}

// ReplaceDoc implements store.Docs.
func (s *Store) ReplaceDoc(ctx context.Context, d store.Doc) (int64, error) {
	if err := d.Validate(); err != nil {
		return 0, err
	}
	k, at, err := s.doc(ctx, d.Kind, d.Key)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && k.Version != d.Version:
		err = store.ErrConflict
	case err == nil:
		d.Version++
		err = s.replace(ctx, s.index(indexDocs), docID(d.Kind, d.Key), at, newDocRecord(d))
	}
	if err == nil && d.Kind == store.KindSummary {
		err = s.writeResults(ctx, d) // who writes a summary does so until it goes through
	}
	if err != nil {
		return 0, wrapError(fmt.Sprintf("replace version %d of %s %q", d.Version, d.Kind, d.Key), err)
	}
	return d.Version, nil
}

// DeleteDoc implements store.Docs.
func (s *Store) DeleteDoc(ctx context.Context, d store.Doc) error {
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
		var a response
		if err == nil {
			a, err = s.call(ctx, http.MethodDelete, "/"+s.index(indexDocs)+"/_doc/"+docID(d.Kind, d.Key), at.query(), nil, http.StatusConflict, http.StatusNotFound)
		}
		if err != nil || a.status != http.StatusConflict {
			return wrapError(fmt.Sprintf("delete version %d of %s %q", d.Version, d.Kind, d.Key), err)
		}
	}
}

// Docs implements store.Lister.
func (s *Store) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	if err := positive(limit); err != nil {
		return nil, err
	}
	var docs []store.Doc
	for len(docs) < limit {
		size := min(limit-len(docs), page)
		hits, err := s.search(ctx, s.index(indexDocs), search{
			Size: size, Sort: []any{asc("key")},
			Query: allOf(term("kind", string(kind)), compare("key", "gt", after)),
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

// wrapError says what was being done.
func wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
