package fetcher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// sweep is the part that removes what need not be kept, now and then, until ctx
// is done. Of several processes one does it.
func (s *DatasetCache) sweep(ctx context.Context) error {
	tick := time.NewTicker(s.settings.SweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrHeld) {
			s.deps.Log.Warn("sweep is not complete", zap.Error(err))
		}
	}
}

// Sweep removes what settings say need not be kept: the ends of orders of runs
// that are long over, Jobs that nobody waits for, what runs that are over needed, objects that nobody
// remembers, the memory of objects that are gone, objects beyond the limits, and
// code that nobody keeps. What a run needs stays. The error is
// store.ErrHeld while another process does it.
func (s *DatasetCache) Sweep(ctx context.Context) error {
	return s.withSweepLease(ctx, func(ctx context.Context) error {
		limits := Limits{Size: s.settings.MaxStored, Age: s.settings.MaxUnused}
		return errors.Join(s.deleteExpiredEndings(ctx), s.deleteOrphanJobs(ctx), s.deleteExpiredPins(ctx), s.deleteOrphans(ctx), s.evict(ctx, limits))
	})
}

// withSweepLease does something under a lease that all share who remove objects.
func (s *DatasetCache) withSweepLease(ctx context.Context, do func(context.Context) error) error {
	lease, err := store.Acquire(ctx, s.deps.Store, "fetch/sweep", s.holder, time.Now(), s.settings.Lease)
	if err != nil {
		return fmt.Errorf("look after the object store: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	release := s.holdLease(ctx, cancel, lease)
	defer release()
	defer cancel(nil)
	return do(ctx)
}

// deleteExpiredEndings forgets how the orders ended of runs that are long over.
func (s *DatasetCache) deleteExpiredEndings(ctx context.Context) error {
	return each(ctx, s, store.KindOrder, doneOrderPrefix, func(d store.Doc, _ Ending) error {
		run := strings.TrimPrefix(d.Key, doneOrderPrefix)
		forget, err := s.endingExpired(ctx, run)
		if err != nil || !forget {
			return err
		}
		return s.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: d.Key, Version: d.Version})
	})
}

func (s *DatasetCache) endingExpired(ctx context.Context, run string) (bool, error) {
	if strings.HasPrefix(run, prefetchPrefix) {
		_, err := s.deps.Store.Doc(ctx, store.KindOrder, openOrderPrefix+run)
		return errors.Is(err, store.ErrNotFound), nil
	}
	r, err := s.deps.Store.Run(ctx, run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && EndingExpired(r, s.settings.EndingRetention, time.Now()), err
}

// deleteExpiredPins forgets that objects are needed by runs that are over.
func (s *DatasetCache) deleteExpiredPins(ctx context.Context) error {
	return each(ctx, s, store.KindPin, "", func(d store.Doc, p store.Pin) error {
		expired, err := s.pinExpired(ctx, d.Key, p)
		if err != nil || !expired {
			return err
		}
		return s.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindPin, Key: d.Key, Version: d.Version})
	})
}

func (s *DatasetCache) pinExpired(ctx context.Context, key string, p store.Pin) (bool, error) {
	r, err := s.deps.Store.Run(ctx, p.Run)
	if err == nil {
		return PinExpired(p, &r, false, time.Now()), nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	referenced, err := s.pinnedBySchedule(ctx, key, p)
	if err != nil {
		return false, err
	}
	for _, kind := range [...]store.Kind{store.KindOutbox, store.KindSubmission} {
		_, err := s.deps.Store.Doc(ctx, kind, p.Run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		referenced = referenced || err == nil
	}
	return PinExpired(p, nil, referenced, time.Now()), nil
}

// pinnedBySchedule reports whether a pin is that of the code which a schedule's firings
// take along.
func (s *DatasetCache) pinnedBySchedule(ctx context.Context, key string, p store.Pin) (bool, error) {
	plan, _, err := store.Get[store.ScheduleRetention](ctx, s.deps.Store, store.KindSchedule, p.Run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && plan.Deleted.IsZero() && key == store.PinKey(plan.Script, p.Run), err
}

// deleteOrphans removes objects that nobody remembers.
func (s *DatasetCache) deleteOrphans(ctx context.Context) error {
	keys, present := make(map[string]bool), make(map[string]bool)
	remembered := make(map[string]CachedObject)
	err := each(ctx, s, store.KindObject, "", func(d store.Doc, o store.Object) error {
		keys[o.Key], remembered[o.Key] = true, CachedObject{Object: o, version: d.Version}
		return nil
	})
	if err != nil {
		return err
	}
	var errs []error
	for it, err := range s.deps.Objects.Items(ctx) {
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		present[it.Key] = true
		if IsOrphan(it, keys, time.Now()) {
			s.deps.Log.Info("object is nobody's", zap.String("key", it.Key), zap.Int64("size", it.Size))
			errs = append(errs, s.deps.Objects.Delete(ctx, it.Key))
		}
	}
	for key, o := range remembered {
		if !present[key] && !o.InUse(time.Now()) {
			errs = append(errs, ignoreNeeded(s.remove(ctx, o)))
		}
	}
	return errors.Join(errs...)
}

// MakeRoom removes what no run needs until so many bytes are free (-1: nobody knows
// how many are wanted), as MakeRoom says. Free is what is free now, -1 where
// nobody knows. The error is store.ErrHeld while another process looks after the
// object store.
func (s *DatasetCache) MakeRoom(ctx context.Context, bytes, free int64) error {
	return s.withSweepLease(ctx, func(ctx context.Context) error {
		all, err := s.List(ctx)
		if err != nil {
			return err
		}
		return s.evictAll(ctx, MakeRoom(all, bytes, free, time.Now()))
	})
}

// evict removes what is beyond the limits, and what nobody keeps.
func (s *DatasetCache) evict(ctx context.Context, limits Limits) error {
	all, err := s.List(ctx)
	if err != nil {
		return err
	}
	return s.evictAll(ctx, Evict(all, limits, time.Now()))
}

func (s *DatasetCache) evictAll(ctx context.Context, victims []CachedObject) error {
	var errs []error
	for _, o := range victims {
		s.deps.Log.Info("object is evicted", zap.String("sha256", o.SHA256), zap.Int64("size", o.Size), zap.Time("used", o.LastUsed))
		errs = append(errs, ignoreNeeded(s.remove(ctx, o)))
	}
	return errors.Join(errs...)
}

// ignoreNeeded is err, unless that is only that an object came to be used.
func ignoreNeeded(err error) error {
	if errors.Is(err, ErrNeeded) {
		return nil
	}
	return err
}
