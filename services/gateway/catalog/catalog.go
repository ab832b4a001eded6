// Package catalog stores descriptors under names, each with its versions, and fetches
// descriptors from other addresses.
//
// Each version is a create-only document. So two users who push at the same time get
// different versions, and no version is ever overwritten.
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

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	HTTP bool `toml:"http"` // descriptors may be read over http, too
}

// Store stores the versions of descriptors.
type Store interface {
	store.Docs
	store.Lister
}

// Source reads descriptors from other addresses.
type Source interface {
	// Read returns the content of a URL. The error is *SourceError. Read fetches only
	// addresses that users may reach through the platform, reads at most the maximum
	// size of a descriptor, and has a time limit.
	Read(ctx context.Context, url string) ([]byte, error)
}

// StoredDescriptor is one version of a descriptor.
type StoredDescriptor struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Version   int       `json:"version"` // from 1
	Owner     string    `json:"owner"`   // user who pushed the version
	SHA256    string    `json:"sha256"`  // digest of Text, in hex
	Created   time.Time `json:"created"`
	Text      string    `json:"text,omitempty"`
}

// Catalog stores descriptors. Several goroutines may use it, and so may several
// processes on one store.
type Catalog struct {
	settings Settings
	store    Store
	source   Source
	parser   parser.Parser
	now      func() time.Time
}

// New returns a Catalog that checks descriptors with p. Without a source it finds only
// stored descriptors.
func New(s Settings, docs Store, source Source, p parser.Parser, now func() time.Time) *Catalog {
	return &Catalog{settings: s, store: docs, source: source, parser: p, now: now}
}

// Push is the request to store a descriptor.
type Push struct {
	Namespace, Name, Owner string
	File                   string // file that the user read, for faults
	Text                   []byte
}

// Push stores a descriptor as the next version of its name. If the newest version is
// the same, Push returns that version and reports true. The error is
// *submit.InvalidError if the user must change the request. The warnings are those of
// the descriptor.
func (s *Catalog) Push(ctx context.Context, p Push) (stored StoredDescriptor, repeated bool, warnings parser.Faults, err error) {
	_, _, faults := submit.Parse(s.parser.In(p.Namespace), p.File, p.Text, nil)
	faults = slices.Concat(submit.CheckName(p.Name), submit.CheckNamespace(p.Namespace), submit.CheckOwner(p.Owner), faults)
	if len(faults.Errors()) > 0 {
		return StoredDescriptor{}, false, nil, &submit.InvalidError{Faults: submit.TruncateFaults(faults)}
	}
	sum := sha256.Sum256(p.Text)
	mine := StoredDescriptor{
		Namespace: p.Namespace, Name: p.Name, Owner: p.Owner, SHA256: hex.EncodeToString(sum[:]),
		Created: s.now().UTC().Round(0), Text: string(p.Text),
	}
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

// newest returns the newest version of a name, or version 0 if there is none. It also
// finds versions by key that the list does not show yet.
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

// List returns up to limit descriptors without their text, and the token of the next
// page, which is empty after the last. With a name, they are all versions of that name,
// newest first; without one, they are the newest version of each name, sorted by name.
// The error is store.ErrCursor for a token that List did not return for the same list.
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

// Find returns the text of the descriptor that a URI names, and its origin without
// credentials. The error is *RefError for an invalid URI, *MissingError for a
// descriptor that is not stored, *SourceError for a source that cannot be read, and
// *submit.InvalidError for a file that is not a descriptor.
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
	// The platform may be able to read more than its users, so only a valid descriptor
	// is returned.
	if _, _, faults := submit.Parse(s.parser.In(namespace), redactURL(url), text, nil); len(faults.Errors()) > 0 {
		return nil, event.Provenance{}, &submit.InvalidError{Faults: submit.TruncateFaults(faults)}
	}
	sum := sha256.Sum256(text)
	return text, event.Provenance{URI: redactURL(url), SHA256: hex.EncodeToString(sum[:])}, nil
}
