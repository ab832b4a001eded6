package fetcher

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// DoTask does the task that a fetcher has made a Job for, and returns when an
// answer is remembered, or nobody wants one any more. It says from time to time
// how far it has come. It needs no Bus.
func DoTask(ctx context.Context, s Settings, d Deps, key string) error {
	if err := s.Validate(); err != nil {
		return err
	}
	sources, err := source.New(s.Sources)
	if err != nil {
		return fmt.Errorf("fetcher: %w", err)
	}
	sources.ReadBuckets(d.Buckets)
	sources.ReadRepositories(d.Repositories)
	defer sources.Close()
	f := &fetcher{settings: s.orDefault(), deps: d, sources: sources, scheduler: newScheduler(), holder: rand.Text()}
	t, version, err := store.Get[Task](ctx, d.Store, store.KindOrder, taskKey(key))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read task %s: %w", key, err)
	}
	w := &worker{fetcher: f, key: key, task: t, version: version, download: f.scheduler.downloadFor(t.Source)}
	w.download.addRun(key, t.RequestedAt)
	return w.run(ctx)
}

// worker does one task.
type worker struct {
	*fetcher

	key      string
	task     Task
	version  int64
	download *download
}

// run transfers, as often as another process that did so before still holds the
// lease, or has just died.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var reporter sync.WaitGroup
	defer reporter.Wait()
	defer cancel(nil)
	reporter.Go(func() { w.reportProgress(ctx, cancel) })
	for {
		err := w.downloadSource(ctx, w.download)
		if IsNoSpace(err) {
			return errors.Join(err, w.reportNoSpace(ctx, cancel))
		}
		if errors.Is(context.Cause(ctx), errUnwanted) {
			return nil
		}
		if !errors.Is(err, store.ErrHeld) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(w.settings.PollInterval):
		}
	}
}

// reportProgress writes how far the transfer has come, as often as anybody looks, and
// cancels it once nobody does.
func (w *worker) reportProgress(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(w.settings.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.task.Done, w.task.Total, w.task.WaitReason = w.scheduler.progressOf(w.download)
		version, err := store.Replace(ctx, w.deps.Store, store.KindOrder, taskKey(w.key), w.version, w.task)
		switch {
		case err == nil:
			w.version = version
		case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound):
			cancel(errUnwanted)
			return
		}
	}
}

// reportNoSpace says that there is no space: whoever supervises makes some.
func (w *worker) reportNoSpace(ctx context.Context, cancel context.CancelCauseFunc) error {
	cancel(nil)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	t, version, err := store.Get[Task](ctx, w.deps.Store, store.KindOrder, taskKey(w.key))
	if err == nil {
		t.StoreFull = true
		t.Done, t.Total, _ = w.scheduler.progressOf(w.download)
		_, err = store.Replace(ctx, w.deps.Store, store.KindOrder, taskKey(w.key), version, t)
	}
	return err
}
