package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// known returns what the store has of the run that is imported.
func (in *importing) known(ctx context.Context) (k known, err error) {
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
	if k.mark, err = maybe[Mark](ctx, st, store.KindImport, id); err != nil {
		return k, err
	}
	if k.environment, err = maybe[store.Environment](ctx, st, store.KindEnvironment, id); err != nil {
		return k, err
	}
	if k.summaries, err = maybe[store.Summaries](ctx, st, store.KindSummary, id); err != nil {
		return k, err
	}
	if k.streams, err = st.Streams(ctx, id); err != nil {
		return k, err
	}
	if k.files, err = in.deps.Artifacts.List(ctx, id); err != nil {
		return k, err
	}
	k.events, err = in.past(ctx, id)
	return k, err
}

// maybe reads a document as a T; nil where there is none.
func maybe[T any](ctx context.Context, docs store.Getter, kind store.Kind, key string) (*T, error) {
	v, _, ok, err := get[T](ctx, docs, kind, key)
	if !ok {
		return nil, err
	}
	return &v, nil
}

// past returns the history that is there, as far as one is imported.
func (in *importing) past(ctx context.Context, id string) ([]store.Change, error) {
	var all []store.Change
	for len(all) < len(in.events) {
		some, err := in.deps.Store.Changes(ctx, id, int64(len(all)), mostPage)
		if err != nil || len(some) == 0 {
			return all, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// hold is the right to import a run alone.
type hold struct {
	docs   store.Docs
	now    func() time.Time
	holder string
	lease  store.Lease
	at     time.Time // when it was last renewed
}

// hold takes the right to import a run, or says *BusyError.
func (t *Transfer) hold(ctx context.Context, run string) (*hold, error) {
	h := &hold{docs: t.deps.Store, now: t.deps.Now, holder: rand.Text()}
	err := h.acquire(ctx, "import/"+run)
	if errors.Is(err, store.ErrHeld) {
		return nil, &BusyError{Run: run}
	}
	return h, err
}

func (h *hold) acquire(ctx context.Context, name string) (err error) {
	now := h.now()
	if h.lease, err = store.Acquire(ctx, h.docs, name, h.holder, now, leaseTTL); err != nil {
		return fmt.Errorf("hold %s: %w", name, err)
	}
	h.at = now
	return nil
}

// renew gives a sign of life, where it is time for one.
func (h *hold) renew(ctx context.Context) error {
	if h.now().Sub(h.at) < leaseAgain {
		return nil
	}
	return h.acquire(ctx, h.lease.Name)
}

// release gives the right back. Where that cannot be, it ends by itself.
func (h *hold) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = store.Release(ctx, h.docs, h.lease)
}
