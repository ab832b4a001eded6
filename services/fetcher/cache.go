package fetcher

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// DatasetCache is what the object store holds, for those who look after it. All its
// verbs can be repeated, and used by several processes at once.
type DatasetCache struct{ *fetcher }

// NewDatasetCache returns the stock that a fetcher with these settings and deps fills.
// It needs no Bus.
func NewDatasetCache(s Settings, d Deps) (*DatasetCache, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	sources, err := source.New(s.Sources)
	if err != nil {
		return nil, fmt.Errorf("fetcher: %w", err)
	}
	sources.ReadBuckets(d.Buckets)
	sources.ReadRepositories(d.Repositories)
	return &DatasetCache{&fetcher{settings: s.orDefault(), deps: d, sources: sources, holder: rand.Text()}}, nil
}

// ErrNeeded says that data cannot be evicted, because runs need them.
var ErrNeeded = errors.New("is needed")

// List returns what is stored, in the order of the digests, with the sources
// that it came from and the runs that need it.
func (s *DatasetCache) List(ctx context.Context) ([]CachedObject, error) {
	objects := make(map[string]*CachedObject)
	err := each(ctx, s, store.KindObject, "", func(d store.Doc, o store.Object) error {
		objects[o.SHA256] = &CachedObject{Object: o, version: d.Version}
		return nil
	})
	if err != nil {
		return nil, err
	}
	bySource := make(map[string]string) // key of a source → digest
	err = each(ctx, s, store.KindDownload, "", func(d store.Doc, t DownloadRecord) error {
		bySource[d.Key] = t.SHA256
		if o := objects[t.SHA256]; o != nil {
			o.Sources = append(o.Sources, t.Source)
		}
		return nil
	})
	if err == nil {
		err = errors.Join(s.markNeeded(ctx, objects, bySource), s.markUploadedCode(ctx, objects))
	}
	if err != nil {
		return nil, err
	}
	all := make([]CachedObject, 0, len(objects))
	for _, o := range objects {
		slices.Sort(o.Sources)
		slices.Sort(o.Runs)
		o.Sources, o.Runs = slices.Compact(o.Sources), slices.Compact(o.Runs)
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b CachedObject) int { return strings.Compare(a.SHA256, b.SHA256) })
	return all, nil
}

// markUploadedCode notes which objects are code that users sent along with runs, and who did.
func (s *DatasetCache) markUploadedCode(ctx context.Context, objects map[string]*CachedObject) error {
	return each(ctx, s, store.KindCodeBundle, "", func(_ store.Doc, code struct {
		Owner  string `json:"owner"`
		SHA256 string `json:"sha256"`
	},
	) error {
		if o := objects[code.SHA256]; o != nil {
			o.HasOwner = true
			o.Sources = append(o.Sources, "code sent by "+code.Owner)
		}
		return nil
	})
}

// markNeeded notes which runs need which objects: those that wait, those that were
// given them and go on, and those with which they were sent along.
func (s *DatasetCache) markNeeded(ctx context.Context, objects map[string]*CachedObject, bySource map[string]string) error {
	note := func(sha256, run string) {
		if o := objects[sha256]; o != nil {
			o.Runs = append(o.Runs, run)
		}
	}
	err := each(ctx, s, store.KindOrder, openOrderPrefix, func(_ store.Doc, o Order) error {
		for _, from := range o.Sources {
			note(from.SHA256, o.Submitted.Run)
			note(bySource[from.Key()], o.Submitted.Run)
		}
		return nil
	})
	if err == nil {
		err = s.markPinned(ctx, note)
	}
	if err != nil {
		return err
	}
	return each(ctx, s, store.KindOrder, doneOrderPrefix, func(d store.Doc, e Ending) error {
		run := strings.TrimPrefix(d.Key, doneOrderPrefix)
		if len(e.Data) == 0 || strings.HasPrefix(run, prefetchPrefix) {
			return nil
		}
		ended, err := s.runEnded(ctx, run)
		if err != nil || ended {
			return err
		}
		for _, data := range e.Data {
			note(data.SHA256, run)
		}
		return nil
	})
}

// markPinned notes which runs need what was sent along with them.
func (s *DatasetCache) markPinned(ctx context.Context, note func(sha256, run string)) error {
	return each(ctx, s, store.KindPin, "", func(d store.Doc, p store.Pin) error {
		ended, err := s.runEnded(ctx, p.Run)
		if err == nil && !ended {
			note(strings.TrimSuffix(d.Key, store.PinKey("", p.Run)), p.Run)
		}
		return err
	})
}

// each reads all documents of a kind whose keys begin so.
func each[T any](ctx context.Context, s *DatasetCache, kind store.Kind, prefix string, do func(store.Doc, T) error) error {
	for after, more := prefix, true; more; {
		docs, err := s.deps.Store.Docs(ctx, kind, after, page)
		if err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		for _, d := range docs {
			if !strings.HasPrefix(d.Key, prefix) {
				return nil
			}
			var v T
			if err := json.Unmarshal(d.Value, &v); err != nil {
				return fmt.Errorf("read %s %q: %w", kind, d.Key, err)
			}
			if err := do(d, v); err != nil {
				return err
			}
			after = d.Key
		}
		more = len(docs) == page
	}
	return nil
}

// Verify reads the object with that digest, and reports whether it is whole; it
// tells read, if that is not nil, how much of it was read. One that is not is
// forgotten: it is fetched again when it is wanted. The error is
// store.ErrNotFound if there is none.
func (s *DatasetCache) Verify(ctx context.Context, digest string, onProgress func(done, total int64)) (whole bool, err error) {
	o, version, err := store.Get[store.Object](ctx, s.deps.Store, store.KindObject, digest)
	if err != nil {
		return false, fmt.Errorf("verify %s: %w", digest, err)
	}
	sum := sha256.New()
	r, err := s.deps.Objects.Open(ctx, o.Key)
	if err == nil {
		_, err = io.CopyBuffer(&progressWriter{w: sum, total: o.Size, onProgress: onProgress}, r, make([]byte, 1<<20))
		err = errors.Join(err, r.Close())
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return false, fmt.Errorf("verify %s: %w", digest, err)
	case hex.EncodeToString(sum.Sum(nil)) == o.SHA256:
		return true, nil
	}
	s.deps.Log.Warn("object is damaged", zap.String("key", o.Key), zap.String("sha256", digest))
	return false, s.remove(ctx, CachedObject{Object: o, version: version})
}

// progressWriter is a writer that tells how much was written.
type progressWriter struct {
	w           io.Writer
	done, total int64
	onProgress  func(done, total int64) // may be nil
}

// Write implements io.Writer.
func (t *progressWriter) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.done += int64(n)
	if t.onProgress != nil {
		t.onProgress(t.done, t.total)
	}
	return n, err
}

// Evict removes the object with that digest. The error is store.ErrNotFound if
// there is none, and ErrNeeded, with the runs, if it must stay.
func (s *DatasetCache) Evict(ctx context.Context, digest string) error {
	return s.withSweepLease(ctx, func(ctx context.Context) error {
		all, err := s.List(ctx)
		if err != nil {
			return err
		}
		for _, o := range all {
			switch {
			case o.SHA256 != digest:
			case len(o.Runs) > 0:
				return fmt.Errorf("evict %s: it %w by %s", digest, ErrNeeded, strings.Join(o.Runs, ", "))
			case o.InUse(time.Now()):
				return fmt.Errorf("evict %s: it %w: it was used less than %s ago", digest, ErrNeeded, evictionGrace)
			default:
				return s.remove(ctx, o)
			}
		}
		return fmt.Errorf("evict %s: %w", digest, store.ErrNotFound)
	})
}

// prefetchPrefix is what the names of orders begin with that are nobody's runs.
const prefetchPrefix = "prefetch-"

// Prefetch orders a source to be brought before any run wants it, and returns
// the name by which Prefetched tells what became of that. A source that can be
// refused without asking it is a *source.Error.
func (s *DatasetCache) Prefetch(ctx context.Context, from Source) (name string, err error) {
	if err := s.sources.Check(from.URL); err != nil {
		return "", err
	}
	name = prefetchPrefix + strings.ToLower(rand.Text())
	now := time.Now().UTC()
	o := Order{Submitted: event.Submitted{Header: event.NewHeader(name, name, "", "", now)}, Sources: []Source{from}, RequestedAt: now, Prefetch: true}
	if err := store.Create(ctx, s.deps.Store, store.KindOrder, openOrderPrefix+name, o); err != nil {
		return "", fmt.Errorf("order a prefetch: %w", err)
	}
	return name, nil
}

// PrefetchResult returns the end of a prefetch; nil while it goes on, and then what it
// waits for, if for anything. A prefetch is forgotten some time after its end: then,
// and for a name that never was one, the error is store.ErrNotFound.
func (s *DatasetCache) PrefetchResult(ctx context.Context, name string) (ending *Ending, waitReason string, err error) {
	e, err := s.ending(ctx, name)
	if e != nil || err != nil {
		return e, "", err
	}
	o, _, err := store.Get[Order](ctx, s.deps.Store, store.KindOrder, openOrderPrefix+name)
	if !errors.Is(err, store.ErrNotFound) {
		return nil, o.WaitReason, err
	}
	if e, err := s.ending(ctx, name); e != nil || err != nil { // it ended between the two looks
		return e, "", err
	}
	return nil, "", fmt.Errorf("look for prefetch %q: %w", name, store.ErrNotFound)
}

// remove removes an object, unless it was used since it was looked at. Nobody
// is given it from the moment on that it is not remembered.
func (s *DatasetCache) remove(ctx context.Context, o CachedObject) error {
	err := s.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindObject, Key: o.SHA256, Version: o.version})
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("evict %s: it %w: it was used just now", o.SHA256, ErrNeeded)
	}
	if err != nil {
		return err
	}
	return s.deps.Objects.Delete(ctx, o.Key)
}
