package fetcher

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Why a transfer is ended that could have gone on.
var (
	errUnwanted  = errors.New("nobody waits for it any more")
	errLeaseLost = errors.New("another process has taken it over")
)

// downloadSource brings one source into the object store, or remembers why that
// cannot be, unless an answer is remembered already that is new enough. It does
// so under a lease, so that one process does it at a time: the error is
// store.ErrHeld where that is another. Another error means that nothing was
// remembered, and that it may be tried again.
func (f *fetcher) downloadSource(ctx context.Context, j *download) error {
	lease, err := store.Acquire(ctx, f.deps.Store, "fetch/"+j.key, f.holder, time.Now(), f.settings.Lease)
	if err != nil {
		return fmt.Errorf("transfer %s: %w", source.Redact(j.source.URL), err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	release := f.holdLease(ctx, cancel, lease)
	defer release()
	defer cancel(nil)
	c := &downloader{fetcher: f, download: j, fence: lease.Fence}
	if err := c.run(ctx); err != nil {
		if end := context.Cause(ctx); end != nil {
			err = end
		}
		return fmt.Errorf("transfer %s: %w", source.Redact(j.source.URL), err)
	}
	return nil
}

// holdLease renews a lease until what it returns is called, which gives it back, and
// cancels what goes on under it when it is lost.
func (f *fetcher) holdLease(ctx context.Context, cancel context.CancelCauseFunc, lease store.Lease) (release func()) {
	var w sync.WaitGroup
	done := make(chan struct{})
	w.Go(func() {
		tick := time.NewTicker(f.settings.Lease / 4)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			now := time.Now()
			renewed, err := store.Acquire(ctx, f.deps.Store, lease.Name, f.holder, now, f.settings.Lease)
			switch {
			case err == nil && renewed.Fence == lease.Fence:
				lease = renewed
			case err == nil: // it was somebody else's meanwhile
				lease = renewed
				cancel(errLeaseLost)
				return
			case errors.Is(err, store.ErrHeld) || now.After(lease.ExpiresAt):
				cancel(errLeaseLost)
				return
			}
		}
	})
	return func() {
		close(done)
		w.Wait()
		// Also when everything is about to end: who comes next need not wait.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := store.Release(ctx, f.deps.Store, lease); err != nil {
			f.deps.Log.Warn("lease runs out by itself", zap.String("lease", lease.Name), zap.Error(err))
		}
	}
}

// downloader carries one source, under a lease.
type downloader struct {
	*fetcher

	download *download
	fence    int64
	record   DownloadRecord
	version  int64 // of memory; 0 if there is none
}

func (c *downloader) run(ctx context.Context) error {
	if err := c.loadRecord(ctx); err != nil {
		return err
	}
	existing, err := c.object(ctx, c.record.SHA256)
	if err != nil {
		return err
	}
	answer, err := c.sourceState(ctx, c.download.source, c.scheduler.requestedAt(c.download))
	if answer.Object != nil || answer.Failure != nil || err != nil {
		return err
	}
	req := source.Request{
		URL: c.download.source.URL, OnProgress: func(done, total int64) { c.scheduler.setProgress(c.download, done, total) },
		OnWait: func(why string) { c.scheduler.setWaitReason(c.download, why) },
	}
	if existing != nil && c.record.Failure == nil {
		req.Previous = c.record.Validators
	}
	c.record.PartialKey = "objects/" + strings.ToLower(rand.Text())
	if err := c.saveRecord(ctx); err != nil {
		return err
	}
	c.deps.Log.Info("transfer", zap.String("source", c.record.Source), zap.Int64("fence", c.fence))
	var o store.Object
	got, err := c.sources.Get(ctx, req, func(ctx context.Context, size int64, fill func(io.Writer) error) (err error) {
		if size >= 0 {
			c.scheduler.setProgress(c.download, 0, size) // how much room is to be made is known, also if there is none for the first byte
		}
		o, err = c.deps.Objects.Put(ctx, c.record.PartialKey, size, c.download.source.MD5 != "", fill)
		return err
	})
	return c.finish(ctx, o, got, err)
}

// finish remembers what became of a transfer. What has arrived whole is kept
// even if nobody waits for it any more: to end between the object and the memory
// of it would leave a file that nobody knows of.
func (c *downloader) finish(ctx context.Context, o store.Object, got source.Result, err error) error {
	if err != nil && ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	done, total, _ := c.scheduler.progressOf(c.download)
	failure := ClassifyError(c.download.source, err, done, total, c.space(ctx, err))
	switch {
	case err != nil && failure == nil:
		return err
	case err == nil && !got.Unchanged:
		if failure = c.download.source.Verify(o, got.Tree); failure == nil {
			err = c.commitObject(ctx, o, got)
		} else {
			err = c.deps.Objects.Delete(ctx, o.Key)
		}
		if err != nil {
			return err
		}
	}
	c.record.Failure = failure
	c.record.CheckedAt, c.record.PartialKey = time.Now().UTC(), ""
	return c.saveRecord(ctx)
}

// space says what the object store has room for, where a transfer has ended for
// want of it.
func (f *fetcher) space(ctx context.Context, err error) store.Space {
	unknown := store.Space{Free: -1, Total: -1}
	if !IsNoSpace(err) || errors.Is(err, syscall.EDQUOT) { // a quota is not the disk's
		return unknown
	}
	s, err := f.deps.Objects.Space(ctx)
	if err != nil {
		f.deps.Log.Warn("cannot look for free space", zap.Error(err))
		return unknown
	}
	return s
}

// commitObject makes a new object the one of its content, or throws it away where
// there is one. What is remembered before tells the next holder, whenever this
// one dies, whether the object is in use.
func (c *downloader) commitObject(ctx context.Context, o store.Object, got source.Result) error {
	c.record.SHA256, c.record.Validators, c.record.Tree, c.record.Revision = o.SHA256, got.Validators, got.Tree, got.Revision
	if err := c.saveRecord(ctx); err != nil {
		return errors.Join(err, c.deps.Objects.Delete(ctx, o.Key))
	}
	o.Created = time.Now().UTC()
	o.LastUsed = o.Created
	for {
		existing, err := c.object(ctx, o.SHA256)
		if err != nil {
			return err
		}
		if existing != nil {
			return c.deps.Objects.Delete(ctx, o.Key)
		}
		before, version, err := store.Get[store.Object](ctx, c.deps.Store, store.KindObject, o.SHA256)
		switch {
		case errors.Is(err, store.ErrNotFound):
			err = store.Create(ctx, c.deps.Store, store.KindObject, o.SHA256, o)
		case err == nil: // its object is gone, or damaged
			if _, err = store.Replace(ctx, c.deps.Store, store.KindObject, o.SHA256, version, o); err == nil {
				err = c.deps.Objects.Delete(ctx, before.Key)
			}
		}
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// loadRecord reads what is remembered, and removes what a holder that died was
// writing, unless it had come to be used.
func (c *downloader) loadRecord(ctx context.Context) (err error) {
	c.record, c.version, err = store.Get[DownloadRecord](ctx, c.deps.Store, store.KindDownload, c.download.key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if c.record.Fence > c.fence {
		return errLeaseLost
	}
	c.record.Source, c.record.Fence = source.Redact(c.download.source.URL), c.fence
	if c.record.PartialKey == "" {
		return nil
	}
	used, err := c.inUse(ctx, c.record.PartialKey)
	if err == nil && !used {
		err = c.deps.Objects.Delete(ctx, c.record.PartialKey)
	}
	if err != nil {
		return err
	}
	c.record.PartialKey = ""
	return c.saveRecord(ctx)
}

// inUse reports whether a key is that of the object with the content that came
// last.
func (c *downloader) inUse(ctx context.Context, key string) (bool, error) {
	if c.record.SHA256 == "" {
		return false, nil
	}
	o, _, err := store.Get[store.Object](ctx, c.deps.Store, store.KindObject, c.record.SHA256)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && o.Key == key, err
}

// saveRecord writes the memory, unless another holder has written its own.
func (c *downloader) saveRecord(ctx context.Context) (err error) {
	if c.version == 0 {
		if err = store.Create(ctx, c.deps.Store, store.KindDownload, c.download.key, c.record); err == nil {
			c.version = 1
		}
	} else {
		c.version, err = store.Replace(ctx, c.deps.Store, store.KindDownload, c.download.key, c.version, c.record)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return errLeaseLost
	}
	return err
}
