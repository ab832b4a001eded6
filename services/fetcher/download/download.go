// Package download downloads a source into the object store. A Downloader does so in
// this process. A Supervisor does so with a Job in a cluster, near the object store;
// that Job runs DoTask.
package download

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// ErrUnwanted is the cause of the cancellation of a download for which no order waits
// any more.
var ErrUnwanted = errors.New("nobody waits for it any more")

// Request asks for a source. All its functions are required, and several goroutines may
// call them.
type Request struct {
	Source      dataset.Source
	RequestedAt func() time.Time        // returns the time of the latest order that waits for the source
	OnProgress  func(done, total int64) // receives the progress, often; total is -1 if unknown
	OnWait      func(why string)        // receives the reason why no data arrive at present; empty when they arrive again
}

// Downloader downloads sources in this process.
type Downloader struct {
	cache   *dataset.Cache
	store   dataset.Store
	objects dataset.Objects
	log     *zap.Logger
	lease   time.Duration
}

// New returns a Downloader that fills a cache with the same settings and deps.
func New(s dataset.Settings, d dataset.Deps, cache *dataset.Cache) *Downloader {
	return &Downloader{cache: cache, store: d.Store, objects: d.Objects, log: d.Log, lease: s.OrDefault().Lease}
}

// LeaseName returns the name of the lease for downloads of the source with that key.
func (d *Downloader) LeaseName(key string) string { return "fetch/" + key }

// Download downloads a source into the object store, or stores the reason why that is
// impossible. It does nothing if the state of the source is known already. It holds a
// lease, so that only one process downloads the source at a time. The error is
// store.ErrHeld if another process holds the lease, and control.ErrLost if another
// process has taken it over. After an error no outcome is stored, and the call can be
// repeated.
func (d *Downloader) Download(ctx context.Context, r Request) error {
	lease := control.NewLeader(d.store, d.LeaseName(r.Source.Key()), rand.Text(), d.lease, control.LeaderSettings{Log: d.log})
	err := lease.Do(ctx, func(ctx context.Context, fence int64) error {
		a := &attempt{downloader: d, request: r, fence: fence, progress: &progress{total: -1}}
		return orCause(ctx, a.run(ctx))
	})
	if err != nil {
		return fmt.Errorf("transfer %s: %w", source.Redact(r.Source.URL), err)
	}
	return nil
}

// orCause returns the cause of ctx's end if ctx has ended and err is not nil, and err
// otherwise.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// attempt is one try to download a source under a lease.
type attempt struct {
	downloader *Downloader
	request    Request
	fence      int64
	progress   *progress
	record     dataset.Download
	version    int64 // version of record; 0 if record is not stored
}

func (a *attempt) run(ctx context.Context) error {
	cache, from := a.downloader.cache, a.request.Source
	if err := a.loadRecord(ctx); err != nil {
		return err
	}
	existing, err := cache.Object(ctx, a.record.SHA256)
	if err != nil {
		return err
	}
	if state, err := cache.State(ctx, from, a.request.RequestedAt()); state.Known() || err != nil {
		return err
	}
	req := source.Request{URL: from.URL, OnProgress: a.onProgress, OnWait: a.request.OnWait}
	if existing != nil && a.record.Failure == nil {
		req.Previous = a.record.Validators
	}
	a.record.PartialKey = "objects/" + strings.ToLower(rand.Text())
	if err := a.saveRecord(ctx); err != nil {
		return err
	}
	a.downloader.log.Info("transfer", zap.String("source", a.record.Source), zap.Int64("fence", a.fence))
	var o store.Object
	got, err := cache.Sources.Get(ctx, req, func(ctx context.Context, size int64, fill func(io.Writer) error) (err error) {
		if size >= 0 {
			a.onProgress(0, size) // reports the needed space even if there is no room for the first byte
		}
		o, err = a.downloader.objects.Put(ctx, a.record.PartialKey, size, from.MD5 != "", fill)
		return err
	})
	return a.finish(ctx, o, got, err)
}

func (a *attempt) onProgress(done, total int64) {
	a.progress.set(done, total)
	a.request.OnProgress(done, total)
}

// finish stores the outcome. It keeps content that has arrived completely even if the
// download was canceled, since stopping between the object and its document would leave
// an object without a document.
func (a *attempt) finish(ctx context.Context, o store.Object, got source.Result, err error) error {
	if err != nil && ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	done, total, _ := a.progress.get()
	failure := classifyError(a.request.Source, err, done, total, FreeSpace(ctx, a.downloader.objects, a.downloader.log, err))
	switch {
	case err != nil && failure == nil:
		return err
	case err == nil && !got.Unchanged:
		if failure = a.request.Source.Verify(o, got.Tree); failure == nil {
			err = a.commitObject(ctx, o, got)
		} else {
			err = a.downloader.objects.Delete(ctx, o.Key)
		}
		if err != nil {
			return err
		}
	}
	a.record.Failure = failure
	a.record.CheckedAt, a.record.PartialKey = time.Now().UTC(), ""
	return a.saveRecord(ctx)
}

// commitObject creates the document of a new object, or deletes the object if its
// content is stored already. It writes the record first, so that after a crash the next
// holder of the lease can find out whether the object is in use.
func (a *attempt) commitObject(ctx context.Context, o store.Object, got source.Result) error {
	objects := a.downloader.objects
	a.record.SHA256, a.record.Validators, a.record.Tree, a.record.Revision = o.SHA256, got.Validators, got.Tree, got.Revision
	if err := a.saveRecord(ctx); err != nil {
		return errors.Join(err, objects.Delete(ctx, o.Key))
	}
	o.Created = time.Now().UTC()
	o.LastUsed = o.Created
	unused := "" // key of the object to delete
	_, err := store.Update(ctx, a.downloader.store, store.KindObject, o.SHA256, func(was store.Object, _ bool) (store.Object, bool, error) {
		existing, err := a.downloader.cache.Object(ctx, o.SHA256)
		if unused = was.Key; existing != nil { // otherwise the earlier object is missing or damaged
			unused = o.Key
		}
		return o, existing == nil && err == nil, err
	})
	if err != nil || unused == "" {
		return err
	}
	return objects.Delete(ctx, unused)
}

// loadRecord reads the record, and deletes an object that a crashed holder was writing,
// unless the object is in use.
func (a *attempt) loadRecord(ctx context.Context) (err error) {
	a.record, a.version, _, err = store.Find[dataset.Download](ctx, a.downloader.store, store.KindDownload, a.request.Source.Key())
	if err != nil {
		return err
	}
	if a.record.Fence > a.fence {
		return control.ErrLost
	}
	a.record.Source, a.record.Fence = source.Redact(a.request.Source.URL), a.fence
	if a.record.PartialKey == "" {
		return nil
	}
	used, err := a.inUse(ctx, a.record.PartialKey)
	if err == nil && !used {
		err = a.downloader.objects.Delete(ctx, a.record.PartialKey)
	}
	if err != nil {
		return err
	}
	a.record.PartialKey = ""
	return a.saveRecord(ctx)
}

// inUse reports whether the object with the record's content has that key.
func (a *attempt) inUse(ctx context.Context, key string) (bool, error) {
	if a.record.SHA256 == "" {
		return false, nil
	}
	o, _, found, err := store.Find[store.Object](ctx, a.downloader.store, store.KindObject, a.record.SHA256)
	return found && o.Key == key, err
}

// saveRecord writes the record. The error is control.ErrLost if another holder has
// written it.
func (a *attempt) saveRecord(ctx context.Context) (err error) {
	key := a.request.Source.Key()
	if a.version == 0 {
		if err = store.Create(ctx, a.downloader.store, store.KindDownload, key, a.record); err == nil {
			a.version = 1
		}
	} else {
		a.version, err = store.Replace(ctx, a.downloader.store, store.KindDownload, key, a.version, a.record)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return control.ErrLost
	}
	return err
}
