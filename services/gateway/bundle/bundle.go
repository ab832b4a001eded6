// Package bundle stores code that is sent along with runs. Each archive is one object
// in the object store, whoever sends it, under the digest of its bytes.
//
// # Order of the writes
//
//   - The content has a random key. The document of store.KindObject makes it visible,
//     and is created when the content is complete and its digest is right. An
//     interrupted upload is never visible, and leaves at most an object without a
//     document, which the sweep of the object store removes.
//   - A document of store.KindCodeBundle stores the code for one owner. The code of an
//     owner has a maximum size, and the least recently used code makes room for new
//     code. The same sweep removes code that no owner has and no run needs.
//   - A document of store.KindPin keeps code for a run, from before the run is stored
//     until the run has finished, even if its owner's code is evicted.
package bundle

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	MaxSize  int64 `toml:"max_size"`  // maximum bytes of one archive; zero means 64 MiB
	MaxTotal int64 `toml:"max_total"` // maximum bytes of all code that is stored for one owner; zero means 1 GiB
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.MaxSize < 0 {
		errs = append(errs, errors.New("gateway.scripts.max_size: must not be negative"))
	}
	if s.MaxTotal < 0 {
		errs = append(errs, errors.New("gateway.scripts.max_total: must not be negative"))
	}
	return errors.Join(errs...)
}

// Objects stores content.
type Objects interface {
	// Put stores the bytes that fill writes under key, which is used only once, and
	// returns their size and digests. The object becomes visible when it is complete;
	// after an error there is none.
	Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error)
	// Size returns the size of an object, or store.ErrNotFound.
	Size(ctx context.Context, key string) (int64, error)
	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, key string) error
}

// Index stores the documents of code.
type Index interface {
	store.Docs
	store.Lister
}

// Store stores code. Several goroutines may use it, and so may several processes on one
// store.
type Store struct {
	settings Settings
	objects  Objects
	index    Index
	now      func() time.Time
}

// New returns a Store. Without objects it has no code and stores none.
func New(s Settings, objects Objects, index Index, now func() time.Time) *Store {
	s.MaxSize = cmp.Or(s.MaxSize, 64<<20)
	s.MaxTotal = max(cmp.Or(s.MaxTotal, 1<<30), s.MaxSize)
	return &Store{settings: s, objects: objects, index: index, now: now}
}

// Find returns the code with that digest, and keeps it for some minutes at least. The
// error is store.ErrNotFound for missing code, and *DigestError for text that is no
// digest.
func (k *Store) Find(ctx context.Context, digest string) (event.Bundle, error) {
	if err := checkDigest(digest); err != nil {
		return event.Bundle{}, err
	}
	o, err := k.findObject(ctx, digest)
	if err != nil {
		return event.Bundle{}, fmt.Errorf("look for code %s: %w", digest, err)
	}
	return event.Bundle{SHA256: o.SHA256, Size: o.Size}, nil
}

// findObject returns a complete object, and claims it. The error is store.ErrNotFound
// if there is none.
func (k *Store) findObject(ctx context.Context, digest string) (store.Object, error) {
	if k.objects == nil {
		return store.Object{}, store.ErrNotFound
	}
	o, _, err := store.Get[store.Object](ctx, k.index, store.KindObject, digest)
	if err != nil {
		return store.Object{}, err
	}
	size, err := k.objects.Size(ctx, o.Key)
	if err == nil && size != o.Size {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Object{}, err
	}
	claimed, err := store.Claim(ctx, k.index, o, k.now())
	if err == nil && !claimed {
		err = store.ErrNotFound
	}
	return o, err
}

// Pin keeps code until a run has finished, and records that the run's owner uses the
// code. The error is store.ErrNotFound for code that is not stored. Pin can be
// repeated.
func (k *Store) Pin(ctx context.Context, owner, digest, run string) (event.Bundle, error) {
	pin := store.Pin{Run: run, At: k.now().UTC().Round(0)}
	err := store.Create(ctx, k.index, store.KindPin, store.PinKey(digest, run), pin)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return event.Bundle{}, fmt.Errorf("pin code %s: %w", digest, err)
	}
	code, err := k.Find(ctx, digest)
	if err == nil {
		err = k.recordUse(ctx, owner, code)
	}
	if errors.Is(err, store.ErrNotFound) {
		err = errors.Join(err, k.index.DeleteDoc(ctx, store.Doc{Kind: store.KindPin, Key: store.PinKey(digest, run)}))
	}
	return code, err
}

// recordUse records that an owner uses code now.
func (k *Store) recordUse(ctx context.Context, owner string, code event.Bundle) error {
	mine := Bundle{Owner: owner, SHA256: code.SHA256, Size: code.Size, Used: k.now().UTC().Round(0)}
	touch := func(is Bundle, found bool) (Bundle, bool, error) {
		return mine, !found || is.needsTouch(mine.Used), nil
	}
	_, err := store.Update(ctx, k.index, store.KindCodeBundle, keyOf(owner, code.SHA256), touch)
	return err
}

// Put stores body, which has that size and digest, for an owner, and reports whether
// the same code was stored before. The error is *DigestError for another size or
// digest, *LimitError for too much code, and *BodyError for an error of body. After an
// error nothing is stored.
func (k *Store) Put(ctx context.Context, owner, digest string, size int64, body io.Reader) (event.Bundle, bool, error) {
	if err := k.settings.check(digest, size); err != nil {
		return event.Bundle{}, false, err
	}
	if k.objects == nil {
		return event.Bundle{}, false, errNoObjects
	}
	code := event.Bundle{SHA256: digest, Size: size}
	_, err := k.findObject(ctx, digest)
	repeated := err == nil
	switch {
	case repeated:
		err = compare(code, body)
	case errors.Is(err, store.ErrNotFound):
		err = k.write(ctx, owner, code, body)
	}
	if err == nil {
		err = k.recordUse(ctx, owner, code)
	}
	if err != nil {
		return event.Bundle{}, false, fmt.Errorf("keep code %s: %w", digest, err)
	}
	return code, repeated, nil
}

// compare checks that body is code.
func compare(code event.Bundle, body io.Reader) error {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(bodyReader{body}, code.Size+1))
	if err != nil {
		return err
	}
	return checkReceived(code.SHA256, code.Size, hex.EncodeToString(sum.Sum(nil)), n)
}

// write stores code under a new key, and makes it visible.
func (k *Store) write(ctx context.Context, owner string, code event.Bundle, body io.Reader) error {
	if err := k.makeRoom(ctx, owner, code); err != nil {
		return err
	}
	o, err := k.objects.Put(ctx, "objects/"+strings.ToLower(rand.Text()), code.Size, false, func(w io.Writer) error {
		_, err := io.Copy(w, io.LimitReader(bodyReader{body}, code.Size+1))
		return err
	})
	if err != nil {
		return err
	}
	if err := checkReceived(code.SHA256, code.Size, o.SHA256, o.Size); err != nil {
		return errors.Join(err, k.objects.Delete(ctx, o.Key))
	}
	return k.publish(ctx, o)
}

// publish makes a new object visible, or deletes it if another object has the same
// content. If the store fails, the new object may be visible, so it stays until the
// sweep removes it.
func (k *Store) publish(ctx context.Context, o store.Object) error {
	o.Created, o.Uploaded = k.now().UTC().Round(0), true
	o.LastUsed = o.Created
	for {
		_, err := k.findObject(ctx, o.SHA256)
		if err == nil {
			return k.objects.Delete(ctx, o.Key)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		err = k.putIndex(ctx, o)
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// putIndex stores the document of an object. It replaces the document of an object that
// is lost, and deletes that object's key.
func (k *Store) putIndex(ctx context.Context, o store.Object) error {
	before, version, err := store.Get[store.Object](ctx, k.index, store.KindObject, o.SHA256)
	if errors.Is(err, store.ErrNotFound) {
		return store.Create(ctx, k.index, store.KindObject, o.SHA256, o)
	}
	if err != nil {
		return err
	}
	if _, err := store.Replace(ctx, k.index, store.KindObject, o.SHA256, version, o); err != nil {
		return err
	}
	return k.objects.Delete(ctx, before.Key)
}

// makeRoom evicts an owner's bundles until code fits.
func (k *Store) makeRoom(ctx context.Context, owner string, code event.Bundle) error {
	all, total, err := k.list(ctx, owner)
	if err != nil || total+code.Size <= k.settings.MaxTotal {
		return err
	}
	for i := range all {
		if all[i].pinned, err = k.isPinned(ctx, all[i].SHA256); err != nil {
			return err
		}
	}
	evicted, err := k.settings.Evictions(all, code.SHA256, code.Size)
	if err != nil {
		return err
	}
	for _, f := range evicted {
		err := k.index.DeleteDoc(ctx, store.Doc{Kind: store.KindCodeBundle, Key: keyOf(owner, f.SHA256), Version: f.version})
		if err != nil && !errors.Is(err, store.ErrConflict) { // a conflict means that the bundle was used just now
			return err
		}
	}
	return nil
}

// list returns the bundles of an owner, and the sum of their sizes.
func (k *Store) list(ctx context.Context, owner string) (all []Bundle, total int64, err error) {
	for d, err := range store.All[Bundle](ctx, k.index, store.KindCodeBundle, keyOf(owner, "")) {
		if err != nil {
			return nil, 0, fmt.Errorf("list the code of owner %q: %w", owner, err)
		}
		d.Value.version = d.Version
		all, total = append(all, d.Value), total+d.Value.Size
	}
	return all, total, nil
}

// isPinned reports whether a run needs code.
func (k *Store) isPinned(ctx context.Context, digest string) (bool, error) {
	docs, err := k.index.Docs(ctx, store.KindPin, store.PinKey(digest, ""), 1)
	return err == nil && len(docs) > 0 && strings.HasPrefix(docs[0].Key, store.PinKey(digest, "")), err
}
