package download

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// DoTask does the task of a Job that a Supervisor has created. It returns when the
// outcome is stored or the task is deleted, and writes its progress at intervals.
func DoTask(ctx context.Context, s dataset.Settings, d dataset.Deps, key string) error {
	cache, err := dataset.New(s, d)
	if err != nil {
		return err
	}
	defer cache.Sources.Close()
	t, version, found, err := store.Find[Task](ctx, d.Store, store.KindOrder, taskKey(key))
	if err != nil {
		return fmt.Errorf("read task %s: %w", key, err)
	}
	if !found {
		return nil
	}
	w := &worker{
		store: d.Store, downloader: New(s, d, cache), pollInterval: s.OrDefault().PollInterval,
		key: key, task: t, version: version, progress: &progress{total: -1},
	}
	return w.run(ctx)
}

// worker does one task.
type worker struct {
	store        store.Docs
	downloader   *Downloader
	pollInterval time.Duration
	key          string
	task         Task
	version      int64 // version of the task's document
	progress     *progress
}

// run downloads the source. It retries while another process holds the lease, or has
// just crashed with it.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var reporter sync.WaitGroup
	defer reporter.Wait()
	defer cancel(nil)
	reporter.Go(func() { w.reportProgress(ctx, cancel) })
	r := Request{
		Source: w.task.Source, RequestedAt: func() time.Time { return w.task.RequestedAt },
		OnProgress: w.progress.set, OnWait: w.progress.setWaitReason,
	}
	for {
		err := w.downloader.Download(ctx, r)
		switch {
		case IsNoSpace(err):
			return errors.Join(err, w.reportNoSpace(ctx, cancel))
		case errors.Is(context.Cause(ctx), ErrUnwanted):
			return nil
		case !errors.Is(err, store.ErrHeld):
			return err
		case !control.Sleep(ctx, w.pollInterval):
			return ctx.Err()
		}
	}
}

// reportProgress writes the progress of the download as often as a supervisor reads it.
// It cancels the download once the task is deleted or replaced.
func (w *worker) reportProgress(ctx context.Context, cancel context.CancelCauseFunc) {
	task := w.task
	for control.Sleep(ctx, w.pollInterval) {
		task.Done, task.Total, task.WaitReason = w.progress.get()
		version, err := store.Replace(ctx, w.store, store.KindOrder, taskKey(w.key), w.version, task)
		switch {
		case err == nil:
			w.version = version
		case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound):
			cancel(ErrUnwanted)
			return
		}
	}
}

// reportNoSpace writes that the object store is full, so that the supervisor makes
// room.
func (w *worker) reportNoSpace(ctx context.Context, cancel context.CancelCauseFunc) error {
	cancel(nil)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	_, err := store.Update(ctx, w.store, store.KindOrder, taskKey(w.key), func(t Task, found bool) (Task, bool, error) {
		if !found {
			return t, false, store.ErrNotFound
		}
		t.StoreFull = true
		t.Done, t.Total, _ = w.progress.get()
		return t, true, nil
	})
	return err
}
