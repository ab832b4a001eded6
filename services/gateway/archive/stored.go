package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// loadStored returns what the store has of the run that is imported.
func (in *importer) loadStored(ctx context.Context) (k storedRun, err error) {
	id, st := in.begin.Run, in.deps.Store
	run, err := st.Run(ctx, id)
	switch {
	case err == nil:
		k.run = &run
	case !errors.Is(err, store.ErrNotFound):
		return k, err
	}
	if _, _, k.submitted, err = get[event.Submitted](ctx, st, store.KindSubmission, id); err != nil {
		return k, err
	}
	if k.mark, err = getOptional[Mark](ctx, st, store.KindImport, id); err != nil {
		return k, err
	}
	if k.environment, err = getOptional[store.RunEnvironment](ctx, st, store.KindEnvironment, id); err != nil {
		return k, err
	}
	if k.summaries, err = getOptional[store.Summaries](ctx, st, store.KindSummary, id); err != nil {
		return k, err
	}
	if k.streams, err = st.Streams(ctx, id); err != nil {
		return k, err
	}
	if k.files, err = in.deps.Artifacts.List(ctx, id); err != nil {
		return k, err
	}
	k.events, err = in.storedHistory(ctx, id)
	return k, err
}

// getOptional reads a document as a T; nil where there is none.
func getOptional[T any](ctx context.Context, docs store.Getter, kind store.Kind, key string) (*T, error) {
	v, _, ok, err := get[T](ctx, docs, kind, key)
	if !ok {
		return nil, err
	}
	return &v, nil
}

// storedHistory returns the history that is there, as far as one is imported.
func (in *importer) storedHistory(ctx context.Context, id string) ([]store.Change, error) {
	var all []store.Change
	for len(all) < len(in.events) {
		some, err := in.deps.Store.Changes(ctx, id, int64(len(all)), maxPage)
		if err != nil || len(some) == 0 {
			return all, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// importLease is the right to import a run alone.
type importLease struct {
	docs      store.Docs
	now       func() time.Time
	holder    string
	lease     store.Lease
	renewedAt time.Time // when it was last renewed
}

// acquireLease takes the right to import a run, or says *ImportInProgressError.
func (t *Archiver) acquireLease(ctx context.Context, run string) (*importLease, error) {
	h := &importLease{docs: t.deps.Store, now: t.deps.Now, holder: rand.Text()}
	err := h.acquire(ctx, "import/"+run)
	if errors.Is(err, store.ErrHeld) {
		return nil, &ImportInProgressError{Run: run}
	}
	return h, err
}

func (h *importLease) acquire(ctx context.Context, name string) (err error) {
	now := h.now()
	if h.lease, err = store.Acquire(ctx, h.docs, name, h.holder, now, leaseTTL); err != nil {
		return fmt.Errorf("hold %s: %w", name, err)
	}
	h.renewedAt = now
	return nil
}

// renew gives a sign of life, where it is time for one.
func (h *importLease) renew(ctx context.Context) error {
	if h.now().Sub(h.renewedAt) < renewInterval {
		return nil
	}
	return h.acquire(ctx, h.lease.Name)
}

// release gives the right back. Where that cannot be, it ends by itself.
func (h *importLease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = store.Release(ctx, h.docs, h.lease)
}
