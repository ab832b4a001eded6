package dataset

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Sweep removes everything that the settings do not retain: outcomes of orders of runs
// that finished long ago, pins of finished runs, objects without a document and
// documents without an object, objects beyond the limits, and code without an owner.
// Objects in use are never removed. The error is store.ErrHeld while another sweep is
// in progress.
func (c *Cache) Sweep(ctx context.Context) error {
	return c.underLease(ctx, func(ctx context.Context) error {
		return errors.Join(c.deleteExpiredEndings(ctx), c.deleteExpiredPins(ctx), c.deleteOrphans(ctx), c.evict(ctx))
	})
}

// underLease calls do under the lease that all removals of objects need.
func (c *Cache) underLease(ctx context.Context, do func(context.Context) error) error {
	lease := control.NewLeader(c.store, "fetch/sweep", rand.Text(), c.settings.Lease, control.LeaderSettings{Log: c.log})
	err := lease.Do(ctx, func(ctx context.Context, _ int64) error { return do(ctx) })
	if errors.Is(err, store.ErrHeld) {
		return fmt.Errorf("look after the object store: %w", err)
	}
	return err
}

// deleteExpiredEndings deletes the outcomes of orders of runs that finished long ago.
func (c *Cache) deleteExpiredEndings(ctx context.Context) error {
	for d, err := range store.AllDocs(ctx, c.store, store.KindOrder, DoneOrderPrefix) {
		if err != nil {
			return err
		}
		expired, err := c.endingExpired(ctx, strings.TrimPrefix(d.Key, DoneOrderPrefix))
		if err == nil && expired {
			err = c.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: d.Key, Version: d.Version})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) endingExpired(ctx context.Context, run string) (bool, error) {
	if strings.HasPrefix(run, prefetchPrefix) {
		_, err := c.store.Doc(ctx, store.KindOrder, OpenOrderPrefix+run)
		return errors.Is(err, store.ErrNotFound), nil
	}
	r, err := c.store.Run(ctx, run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && endingExpired(r, c.settings.EndingRetention, time.Now()), err
}

// deleteExpiredPins deletes the pins of finished runs.
func (c *Cache) deleteExpiredPins(ctx context.Context) error {
	for d, err := range store.All[store.Pin](ctx, c.store, store.KindPin, "") {
		if err != nil {
			return err
		}
		expired, err := c.pinExpired(ctx, d.Key, d.Value)
		if err == nil && expired {
			err = c.store.DeleteDoc(ctx, store.Doc{Kind: store.KindPin, Key: d.Key, Version: d.Version})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) pinExpired(ctx context.Context, key string, p store.Pin) (bool, error) {
	r, err := c.store.Run(ctx, p.Run)
	if err == nil {
		return pinExpired(p, &r, false, time.Now()), nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	referenced, err := c.pinnedBySchedule(ctx, key, p)
	if err == nil && !referenced {
		referenced, err = c.pinnedBySet(ctx, p)
	}
	if err != nil {
		return false, err
	}
	_, submitted, err := store.FindSubmission(ctx, c.store, p.Run)
	if err == nil && !submitted {
		_, err = c.store.Doc(ctx, store.KindOutbox, p.Run)
		submitted = err == nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	return pinExpired(p, nil, referenced || submitted, time.Now()), nil
}

// pinnedBySchedule reports whether a pin keeps the code that a schedule sends along
// with its firings.
func (c *Cache) pinnedBySchedule(ctx context.Context, key string, p store.Pin) (bool, error) {
	plan, _, found, err := store.Find[store.ScheduleRetention](ctx, c.store, store.KindSchedule, p.Run)
	return found && plan.Deleted.IsZero() && key == store.PinKey(plan.Script, p.Run), err
}

// pinnedBySet reports whether a pin keeps the code that a set sends along with its runs.
func (c *Cache) pinnedBySet(ctx context.Context, p store.Pin) (bool, error) {
	set, _, found, err := store.Find[store.SetRetention](ctx, c.store, store.KindSet, p.Run)
	return found && set.Ended.IsZero(), err
}

// deleteOrphans removes objects without a document, and documents without an object. An
// object without a document is removed in the second sweep that finds it so: the time of
// an object may be that at which its upload began, and its document follows the object.
func (c *Cache) deleteOrphans(ctx context.Context) error {
	present, known := make(map[string]bool), make(map[string]Stored)
	for d, err := range store.All[store.Object](ctx, c.store, store.KindObject, "") {
		if err != nil {
			return err
		}
		known[d.Value.Key] = Stored{Object: d.Value, version: d.Version}
	}
	before, orphans := c.lastOrphans(), make(map[string]bool)
	var errs []error
	for it, err := range c.objects.Items(ctx) {
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		present[it.Key] = true
		if _, ok := known[it.Key]; !isOrphan(it, ok, time.Now()) {
			continue
		}
		if orphans[it.Key] = true; before[it.Key] {
			c.log.Info("object is nobody's", zap.String("key", it.Key), zap.Int64("size", it.Size))
			errs = append(errs, c.objects.Delete(ctx, it.Key))
		}
	}
	c.rememberOrphans(orphans)
	for key, o := range known {
		if !present[key] && !o.inUse(time.Now()) {
			errs = append(errs, ignoreInUse(c.remove(ctx, o)))
		}
	}
	return errors.Join(errs...)
}

func (c *Cache) lastOrphans() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orphans
}

func (c *Cache) rememberOrphans(keys map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orphans = keys
}

// MakeRoom evicts objects that no run needs, by the rules of victims, so that bytes are
// free (-1: unknown); free is the number of free bytes now, or -1 if unknown. The error
// is store.ErrHeld while a sweep is in progress.
func (c *Cache) MakeRoom(ctx context.Context, bytes, free int64) error {
	return c.underLease(ctx, func(ctx context.Context) error {
		all, err := c.List(ctx)
		if err != nil {
			return err
		}
		return c.evictAll(ctx, victims(all, bytes, free, time.Now()))
	})
}

// evict removes objects beyond the limits, and code without an owner.
func (c *Cache) evict(ctx context.Context) error {
	all, err := c.List(ctx)
	if err != nil {
		return err
	}
	return c.evictAll(ctx, evictable(all, limits{Size: c.settings.MaxStored, Age: c.settings.MaxUnused}, time.Now()))
}

func (c *Cache) evictAll(ctx context.Context, all []Stored) error {
	var errs []error
	for _, o := range all {
		c.log.Info("object is evicted", zap.String("sha256", o.SHA256), zap.Int64("size", o.Size), zap.Time("used", o.LastUsed))
		errs = append(errs, ignoreInUse(c.remove(ctx, o)))
	}
	return errors.Join(errs...)
}

// ignoreInUse returns nil for an object that was used in the meantime, and err
// otherwise.
func ignoreInUse(err error) error {
	if _, inUse := errors.AsType[*InUseError](err); inUse {
		return nil
	}
	return err
}
