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
	errUnwanted = errors.New("nobody waits for it any more")
	errLost     = errors.New("another process has taken it over")
)

// transfer brings one source into the object store, or remembers why that
// cannot be, unless an answer is remembered already that is new enough. It does
// so under a lease, so that one process does it at a time: the error is
// store.ErrHeld where that is another. Another error means that nothing was
// remembered, and that it may be tried again.
func (f *fetcher) transfer(ctx context.Context, j *job) error {
	lease, err := store.Acquire(ctx, f.deps.Store, "fetch/"+j.key, f.holder, time.Now(), f.settings.Lease)
	if err != nil {
		return fmt.Errorf("transfer %s: %w", source.Redact(j.source.URL), err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	release := f.keep(ctx, cancel, lease)
	defer release()
	defer cancel(nil)
	c := &carrier{fetcher: f, job: j, fence: lease.Fence}
	if err := c.carry(ctx); err != nil {
		if end := context.Cause(ctx); end != nil {
			err = end
		}
		return fmt.Errorf("transfer %s: %w", source.Redact(j.source.URL), err)
	}
	return nil
}

// keep renews a lease until what it returns is called, which gives it back, and
// cancels what goes on under it when it is lost.
func (f *fetcher) keep(ctx context.Context, cancel context.CancelCauseFunc, lease store.Lease) (release func()) {
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
				cancel(errLost)
				return
			case errors.Is(err, store.ErrHeld) || now.After(lease.Ends):
				cancel(errLost)
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

// carrier carries one source, under a lease.
type carrier struct {
	*fetcher

	job     *job
	fence   int64
	memory  Transfer
	version int64 // of memory; 0 if there is none
}

func (c *carrier) carry(ctx context.Context) error {
	if err := c.recall(ctx); err != nil {
		return err
	}
	there, err := c.object(ctx, c.memory.SHA256)
	if err != nil {
		return err
	}
	answer, err := c.answer(ctx, c.job.source, c.board.asked(c.job))
	if answer.Object != nil || answer.Failure != nil || err != nil {
		return err
	}
	req := source.Request{
		URL: c.job.source.URL, Progress: func(done, total int64) { c.board.moved(c.job, done, total) },
		Waits: func(why string) { c.board.waits(c.job, why) },
	}
	if there != nil && c.memory.Failure == nil {
		req.Known = c.memory.Validators
	}
	c.memory.Writing = "objects/" + strings.ToLower(rand.Text())
	if err := c.remember(ctx); err != nil {
		return err
	}
	c.deps.Log.Info("transfer", zap.String("source", c.memory.Source), zap.Int64("fence", c.fence))
	var o store.Object
	got, err := c.sources.Get(ctx, req, func(ctx context.Context, size int64, fill func(io.Writer) error) (err error) {
		if size >= 0 {
			c.board.moved(c.job, 0, size) // how much room is to be made is known, also if there is none for the first byte
		}
		o, err = c.deps.Objects.Put(ctx, c.memory.Writing, size, c.job.source.MD5 != "", fill)
		return err
	})
	return c.conclude(ctx, o, got, err)
}

// conclude remembers what became of a transfer. What has arrived whole is kept
// even if nobody waits for it any more: to end between the object and the memory
// of it would leave a file that nobody knows of.
func (c *carrier) conclude(ctx context.Context, o store.Object, got source.Answer, err error) error {
	if err != nil && ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	done, total, _ := c.board.come(c.job)
	failure := Judge(c.job.source, err, done, total, c.space(ctx, err))
	switch {
	case err != nil && failure == nil:
		return err
	case err == nil && !got.Unchanged:
		if failure = c.job.source.Verify(o, got.Tree); failure == nil {
			err = c.keepObject(ctx, o, got)
		} else {
			err = c.deps.Objects.Delete(ctx, o.Key)
		}
		if err != nil {
			return err
		}
	}
	c.memory.Failure = failure
	c.memory.Checked, c.memory.Writing = time.Now().UTC(), ""
	return c.remember(ctx)
}

// space says what the object store has room for, where a transfer has ended for
// want of it.
func (f *fetcher) space(ctx context.Context, err error) store.Space {
	unknown := store.Space{Free: -1, All: -1}
	if !Full(err) || errors.Is(err, syscall.EDQUOT) { // a quota is not the disk's
		return unknown
	}
	s, err := f.deps.Objects.Space(ctx)
	if err != nil {
		f.deps.Log.Warn("cannot look for free space", zap.Error(err))
		return unknown
	}
	return s
}

// keepObject makes a new object the one of its content, or throws it away where
// there is one. What is remembered before tells the next holder, whenever this
// one dies, whether the object is in use.
func (c *carrier) keepObject(ctx context.Context, o store.Object, got source.Answer) error {
	c.memory.SHA256, c.memory.Validators, c.memory.Tree, c.memory.Revision = o.SHA256, got.Validators, got.Tree, got.Revision
	if err := c.remember(ctx); err != nil {
		return errors.Join(err, c.deps.Objects.Delete(ctx, o.Key))
	}
	o.Created = time.Now().UTC()
	o.Used = o.Created
	for {
		there, err := c.object(ctx, o.SHA256)
		if err != nil {
			return err
		}
		if there != nil {
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

// recall reads what is remembered, and removes what a holder that died was
// writing, unless it had come to be used.
func (c *carrier) recall(ctx context.Context) (err error) {
	c.memory, c.version, err = store.Get[Transfer](ctx, c.deps.Store, store.KindTransfer, c.job.key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if c.memory.Fence > c.fence {
		return errLost
	}
	c.memory.Source, c.memory.Fence = source.Redact(c.job.source.URL), c.fence
	if c.memory.Writing == "" {
		return nil
	}
	used, err := c.inUse(ctx, c.memory.Writing)
	if err == nil && !used {
		err = c.deps.Objects.Delete(ctx, c.memory.Writing)
	}
	if err != nil {
		return err
	}
	c.memory.Writing = ""
	return c.remember(ctx)
}

// inUse reports whether a key is that of the object with the content that came
// last.
func (c *carrier) inUse(ctx context.Context, key string) (bool, error) {
	if c.memory.SHA256 == "" {
		return false, nil
	}
	o, _, err := store.Get[store.Object](ctx, c.deps.Store, store.KindObject, c.memory.SHA256)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && o.Key == key, err
}

// remember writes the memory, unless another holder has written its own.
func (c *carrier) remember(ctx context.Context) (err error) {
	if c.version == 0 {
		if err = store.Create(ctx, c.deps.Store, store.KindTransfer, c.job.key, c.memory); err == nil {
			c.version = 1
		}
	} else {
		c.version, err = store.Replace(ctx, c.deps.Store, store.KindTransfer, c.job.key, c.version, c.memory)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return errLost
	}
	return err
}
