package dataset

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// InUseError is the reason why data cannot be evicted.
type InUseError struct{ Message string }

// Error implements error.
func (e *InUseError) Error() string { return e.Message }

// List returns the stored objects, sorted by digest, with their sources and the runs
// that need them.
func (c *Cache) List(ctx context.Context) ([]Stored, error) {
	objects := make(map[string]*Stored)
	for d, err := range store.All[store.Object](ctx, c.store, store.KindObject, "") {
		if err != nil {
			return nil, err
		}
		objects[d.Value.SHA256] = &Stored{Object: d.Value, version: d.Version}
	}
	bySource := make(map[string]string) // digest by key of a source
	for d, err := range store.All[Download](ctx, c.store, store.KindDownload, "") {
		if err != nil {
			return nil, err
		}
		bySource[d.Key] = d.Value.SHA256
		if o := objects[d.Value.SHA256]; o != nil {
			o.Sources = append(o.Sources, d.Value.Source)
		}
	}
	if err := errors.Join(c.markNeeded(ctx, objects, bySource), c.markUploadedCode(ctx, objects)); err != nil {
		return nil, err
	}
	all := make([]Stored, 0, len(objects))
	for _, sha256 := range slices.Sorted(maps.Keys(objects)) {
		o := objects[sha256]
		slices.Sort(o.Sources)
		slices.Sort(o.Runs)
		o.Sources, o.Runs = slices.Compact(o.Sources), slices.Compact(o.Runs)
		all = append(all, *o)
	}
	return all, nil
}

// markUploadedCode marks the objects that are code with an owner, who sent it along
// with a run.
func (c *Cache) markUploadedCode(ctx context.Context, objects map[string]*Stored) error {
	type bundle struct {
		Owner  string `json:"owner"`
		SHA256 string `json:"sha256"`
	}
	for code, err := range store.All[bundle](ctx, c.store, store.KindCodeBundle, "") {
		if err != nil {
			return err
		}
		if o := objects[code.Value.SHA256]; o != nil {
			o.HasOwner = true
			o.Sources = append(o.Sources, "code sent by "+code.Value.Owner)
		}
	}
	return nil
}

// markNeeded adds to objects the runs that need them: runs that wait for an object,
// unfinished runs that have it, and runs with which it was sent along.
func (c *Cache) markNeeded(ctx context.Context, objects map[string]*Stored, bySource map[string]string) error {
	note := func(sha256, run string) {
		if o := objects[sha256]; o != nil {
			o.Runs = append(o.Runs, run)
		}
	}
	for d, err := range store.All[Order](ctx, c.store, store.KindOrder, OpenOrderPrefix) {
		if err != nil {
			return err
		}
		for _, from := range d.Value.Sources {
			note(from.SHA256, d.Value.Submitted.Run)
			note(bySource[from.Key()], d.Value.Submitted.Run)
		}
	}
	if err := c.markPinned(ctx, note); err != nil {
		return err
	}
	for d, err := range store.All[Ending](ctx, c.store, store.KindOrder, DoneOrderPrefix) {
		if err != nil {
			return err
		}
		if err := c.markGiven(ctx, strings.TrimPrefix(d.Key, DoneOrderPrefix), d.Value, note); err != nil {
			return err
		}
	}
	return nil
}

// markGiven calls note for the data of a run, unless the run has finished.
func (c *Cache) markGiven(ctx context.Context, run string, e Ending, note func(sha256, run string)) error {
	if len(e.Data) == 0 || strings.HasPrefix(run, prefetchPrefix) {
		return nil
	}
	ended, err := c.RunEnded(ctx, run)
	if err != nil || ended {
		return err
	}
	for _, data := range e.Data {
		note(data.SHA256, run)
	}
	return nil
}

// markPinned calls note for the pinned objects of unfinished runs.
func (c *Cache) markPinned(ctx context.Context, note func(sha256, run string)) error {
	for d, err := range store.All[store.Pin](ctx, c.store, store.KindPin, "") {
		if err != nil {
			return err
		}
		ended, err := c.RunEnded(ctx, d.Value.Run)
		if err != nil {
			return err
		}
		if !ended {
			note(strings.TrimSuffix(d.Key, store.PinKey("", d.Value.Run)), d.Value.Run)
		}
	}
	return nil
}

// Verify reads the object with that digest, and reports whether it is intact. It calls
// onProgress, which may be nil, as it reads. It removes a damaged object, so that the
// source is fetched again when a run needs it. The error is store.ErrNotFound if there
// is no such object.
func (c *Cache) Verify(ctx context.Context, digest string, onProgress func(done, total int64)) (whole bool, err error) {
	o, version, err := store.Get[store.Object](ctx, c.store, store.KindObject, digest)
	if err != nil {
		return false, fmt.Errorf("verify %s: %w", digest, err)
	}
	sum := sha256.New()
	r, err := c.objects.Open(ctx, o.Key)
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
	c.log.Warn("object is damaged", zap.String("key", o.Key), zap.String("sha256", digest))
	return false, c.remove(ctx, Stored{Object: o, version: version})
}

// progressWriter reports the number of bytes written through it.
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

// Evict removes the object with that digest. The error is store.ErrNotFound if there is
// none, and *InUseError, with the runs, if the object is in use.
func (c *Cache) Evict(ctx context.Context, digest string) error {
	return c.underLease(ctx, func(ctx context.Context) error {
		all, err := c.List(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(o Stored) bool { return o.SHA256 == digest })
		switch {
		case i < 0:
			return fmt.Errorf("evict %s: %w", digest, store.ErrNotFound)
		case len(all[i].Runs) > 0:
			return fmt.Errorf("evict %s: %w", digest, &InUseError{"it is needed by " + strings.Join(all[i].Runs, ", ")})
		case all[i].inUse(time.Now()):
			return fmt.Errorf("evict %s: %w", digest, &InUseError{fmt.Sprintf("it is needed: it was used less than %s ago", evictionGrace)})
		}
		return c.remove(ctx, all[i])
	})
}

// prefetchPrefix is the prefix of the names of prefetches, which take the place of a
// run's ID.
const prefetchPrefix = "prefetch-"

// Prefetch orders a source before any run needs it, and returns the name for
// PrefetchResult. The error is *source.Error for a source that can be refused without
// contacting it.
func (c *Cache) Prefetch(ctx context.Context, from Source) (name string, err error) {
	if err := c.Sources.Check(from.URL); err != nil {
		return "", err
	}
	name = prefetchPrefix + strings.ToLower(rand.Text())
	now := time.Now().UTC()
	o := Order{
		Submitted: event.Submitted{Header: event.NewHeader(name, name, "", "", now)},
		Sources:   []Source{from}, RequestedAt: now, Prefetch: true,
	}
	if err := store.Create(ctx, c.store, store.KindOrder, OpenOrderPrefix+name, o); err != nil {
		return "", fmt.Errorf("order a prefetch: %w", err)
	}
	return name, nil
}

// PrefetchResult returns the outcome of a prefetch. While the prefetch is in progress,
// the outcome is nil, and waitReason tells why it waits, if it does. The error is
// store.ErrNotFound for an unknown name, and for a prefetch that ended some time ago.
func (c *Cache) PrefetchResult(ctx context.Context, name string) (ending *Ending, waitReason string, err error) {
	e, err := c.Ending(ctx, name)
	if e != nil || err != nil {
		return e, "", err
	}
	o, _, found, err := store.Find[Order](ctx, c.store, store.KindOrder, OpenOrderPrefix+name)
	if found || err != nil {
		return nil, o.WaitReason, err
	}
	if e, err := c.Ending(ctx, name); e != nil || err != nil { // the prefetch ended between the two reads
		return e, "", err
	}
	return nil, "", fmt.Errorf("look for prefetch %q: %w", name, store.ErrNotFound)
}

// remove removes an object, unless it was used since it was read. It deletes the
// document first, so that no run gets the object any more.
func (c *Cache) remove(ctx context.Context, o Stored) error {
	err := c.store.DeleteDoc(ctx, store.Doc{Kind: store.KindObject, Key: o.SHA256, Version: o.version})
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("evict %s: %w", o.SHA256, &InUseError{"it is needed: it was used just now"})
	}
	if err != nil {
		return err
	}
	return c.objects.Delete(ctx, o.Key)
}
