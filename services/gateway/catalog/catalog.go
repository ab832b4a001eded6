// Package catalog stores descriptors under names, each as a row of versions, and
// fetches those of other addresses.
//
// Each version is a create-only document, so that two users who push at the same
// time get different versions and no version is ever overwritten.
package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	HTTP bool `toml:"http"` // descriptors may be read over http, too
}

// Store stores versions.
type Store interface {
	store.Docs
	store.Lister
}

// Source reads descriptors of other addresses.
type Source interface {
	// Read returns the content of a URL, or *SourceError. It reads nothing that
	// users may not reach through the platform, no more bytes than a descriptor
	// may have, and ends after a time.
	Read(ctx context.Context, url string) ([]byte, error)
}

// StoredDescriptor is one version of a descriptor.
type StoredDescriptor struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Version   int       `json:"version"` // from 1
	Owner     string    `json:"owner"`   // the user who pushed it
	SHA256    string    `json:"sha256"`  // of Text, hex
	Created   time.Time `json:"created"`
	Text      string    `json:"text,omitempty"`
}

// Catalog stores descriptors. It may be used by several goroutines, and by several
// processes on one store.
type Catalog struct {
	settings Settings
	store    Store
	source   Source
	parser   descriptors.Parser
	now      func() time.Time
}

// New returns a Catalog, whose descriptors p checks. Without a source it finds only
// stored descriptors.
func New(s Settings, docs Store, source Source, p descriptors.Parser, now func() time.Time) *Catalog {
	return &Catalog{settings: s, store: docs, source: source, parser: p, now: now}
}

// Push is the request to store a descriptor.
type Push struct {
	Namespace, Name, Owner string
	File                   string // where the user read it; used in faults
	Text                   []byte
}

// Push stores a descriptor as the next version of its name, and reports whether
// it is the newest already, which is returned then. The error is
// *submit.InvalidError where the user must change the request. The warnings are those
// of the descriptor.
func (s *Catalog) Push(ctx context.Context, p Push) (stored StoredDescriptor, repeated bool, warnings descriptors.Faults, err error) {
	_, _, faults := submit.Parse(s.parser.In(p.Namespace), p.File, p.Text, nil)
	faults = slices.Concat(submit.CheckName(p.Name), submit.CheckNamespace(p.Namespace), submit.CheckOwner(p.Owner), faults)
	if len(faults.Errors()) > 0 {
		return StoredDescriptor{}, false, nil, &submit.InvalidError{Faults: submit.TruncateFaults(faults)}
	}
	sum := sha256.Sum256(p.Text)
	mine := StoredDescriptor{Namespace: p.Namespace, Name: p.Name, Owner: p.Owner, SHA256: hex.EncodeToString(sum[:]), Created: s.now().UTC().Round(0), Text: string(p.Text)}
	for {
		newest, err := s.newest(ctx, p.Namespace, p.Name)
		if err != nil {
			return StoredDescriptor{}, false, nil, err
		}
		if newest.SHA256 == mine.SHA256 {
			return newest, true, submit.TruncateFaults(faults.Warnings()), nil
		}
		mine.Version = newest.Version + 1
		err = store.Create(ctx, s.store, store.KindDescriptor, keyOf(p.Namespace, p.Name, mine.Version), mine)
		if !errors.Is(err, store.ErrExists) {
			return mine, false, submit.TruncateFaults(faults.Warnings()), err
		}
	}
}

// newest returns the newest version of a name; version 0 is none. A version
// that a list does not show yet is looked for by its key.
func (s *Catalog) newest(ctx context.Context, namespace, name string) (StoredDescriptor, error) {
	var newest StoredDescriptor
	docs, err := s.store.Docs(ctx, store.KindDescriptor, prefixOf(namespace, name), 1)
	if err != nil {
		return StoredDescriptor{}, fmt.Errorf("look for descriptor %q: %w", name, err)
	}
	if len(docs) > 0 && strings.HasPrefix(docs[0].Key, prefixOf(namespace, name)) {
		if newest, err = decodeDoc(docs[0]); err != nil {
			return StoredDescriptor{}, err
		}
	}
	for {
		next, err := s.getVersion(ctx, namespace, name, newest.Version+1)
		if errors.Is(err, store.ErrNotFound) {
			return newest, nil
		}
		if err != nil {
			return StoredDescriptor{}, err
		}
		newest = next
	}
}

func (s *Catalog) getVersion(ctx context.Context, namespace, name string, version int) (StoredDescriptor, error) {
	k, _, err := store.Get[StoredDescriptor](ctx, s.store, store.KindDescriptor, keyOf(namespace, name, version))
	return k, err
}

func decodeDoc(d store.Doc) (StoredDescriptor, error) {
	var k StoredDescriptor
	if err := json.Unmarshal(d.Value, &k); err != nil {
		return StoredDescriptor{}, fmt.Errorf("read descriptor %q: %w", d.Key, err)
	}
	return k, nil
}

// List returns up to limit descriptors, without their text, and the token of
// the next page, empty after the last: all versions of a name, newest first, or,
// without a name, the newest version of each, by name. The error is
// store.ErrCursor for a token that it never gave for this list.
func (s *Catalog) List(ctx context.Context, namespace, name, token string, limit int) ([]StoredDescriptor, string, error) {
	at, ok := parseToken(namespace, name, token)
	if !ok {
		return nil, "", store.ErrCursor
	}
	prefix := at.After
	if token != "" {
		start, _ := parseToken(namespace, name, "")
		prefix = start.After
	}
	var all []StoredDescriptor
	for {
		docs, err := s.store.Docs(ctx, store.KindDescriptor, at.After, 1)
		if err != nil {
			return nil, "", fmt.Errorf("list descriptors: %w", err)
		}
		if len(docs) == 0 || !strings.HasPrefix(docs[0].Key, prefix) {
			return all, "", nil
		}
		if len(all) == limit {
			return all, at.token(), nil
		}
		k, err := decodeDoc(docs[0])
		if err != nil {
			return nil, "", err
		}
		k.Text = ""
		all, at.After = append(all, k), docs[0].Key
		if name == "" {
			at.After = keyAfter(k.Namespace, k.Name)
		}
	}
}

// Find returns the text of the descriptor that a URI names, and where it came
// from, without credentials. The error is *RefError for a URI of no meaning,
// *MissingError for a descriptor that is not stored, *SourceError for a source that
// cannot be read, and *submit.InvalidError for a file that is no descriptor.
func (s *Catalog) Find(ctx context.Context, namespace, uri string) ([]byte, event.Provenance, error) {
	ref, err := parseRef(uri, s.settings)
	if err != nil {
		return nil, event.Provenance{}, err
	}
	if ref.URL != "" {
		return s.fetch(ctx, namespace, ref.URL)
	}
	k, err := s.getStored(ctx, namespace, ref)
	if err != nil {
		return nil, event.Provenance{}, err
	}
	return []byte(k.Text), k.provenance(), nil
}

func (s *Catalog) getStored(ctx context.Context, namespace string, ref Ref) (StoredDescriptor, error) {
	if faults := slices.Concat(submit.CheckName(ref.Name), submit.CheckNamespace(namespace)); len(faults) > 0 {
		return StoredDescriptor{}, &submit.InvalidError{Faults: faults}
	}
	if ref.Version == 0 {
		k, err := s.newest(ctx, namespace, ref.Name)
		if err == nil && k.Version == 0 {
			err = &MissingError{Namespace: namespace, Ref: ref}
		}
		return k, err
	}
	k, err := s.getVersion(ctx, namespace, ref.Name, ref.Version)
	if errors.Is(err, store.ErrNotFound) {
		return StoredDescriptor{}, &MissingError{Namespace: namespace, Ref: ref}
	}
	return k, err
}

func (s *Catalog) fetch(ctx context.Context, namespace, url string) ([]byte, event.Provenance, error) {
	if s.source == nil {
		return nil, event.Provenance{}, &SourceError{Message: "this server reads no descriptors from elsewhere", User: true}
	}
	text, err := s.source.Read(ctx, url)
	if err != nil {
		return nil, event.Provenance{}, err
	}
	// The platform may read more than its users: they are sent descriptors alone.
	if _, _, faults := submit.Parse(s.parser.In(namespace), redactURL(url), text, nil); len(faults.Errors()) > 0 {
		return nil, event.Provenance{}, &submit.InvalidError{Faults: submit.TruncateFaults(faults)}
	}
	sum := sha256.Sum256(text)
	return text, event.Provenance{URI: redactURL(url), SHA256: hex.EncodeToString(sum[:])}, nil
}
