package fetcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// unreadOrders are the keys of runs whose descriptor could not be read yet. They come
// after the open orders, which are listed.
const unreadOrders = "unread/"

// unread puts a run aside whose descriptor this fetcher cannot read. One that is past
// fetching was read before, by another release, and is left alone.
func (f *fetcher) unread(ctx context.Context, run event.Submitted, faults descriptors.Faults) ([]event.Event, error) {
	r, err := f.deps.Store.Run(ctx, run.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("look at run %s: %w", run.Run, err)
	}
	if Past(r.Phase) {
		return nil, nil
	}
	u, err := f.aside().Put(ctx, run.Run, Unread{Submitted: run, Since: time.Now().UTC()})
	return []event.Event{AwaitsNewer(u, faults)}, err
}

// aside are the runs whose descriptor a fetcher could not read.
func (f *fetcher) aside() skew.Queue[Unread] {
	return skew.NewQueue[Unread](f.deps.Store, store.KindOrder, unreadOrders)
}

// rereadAll looks at the runs that were put aside, by whatever fetcher: one that is new
// enough goes on with them.
func (f *fetcher) rereadAll(ctx context.Context) error { return f.aside().Each(ctx, f.reread) }

// reread decides about one run that was put aside, and says what follows.
func (f *fetcher) reread(ctx context.Context, u Unread) (decided bool, err error) {
	say, decided, err := f.readable(ctx, u)
	if err != nil || !decided || len(say) == 0 {
		return decided && err == nil, err
	}
	return true, f.deps.Bus.Publish(ctx, say...)
}

// readable returns what follows for a run that was put aside, and whether anything does.
func (f *fetcher) readable(ctx context.Context, u Unread) (say []event.Event, decided bool, err error) {
	run := u.Submitted
	if over, err := f.over(ctx, run.Run); over || err != nil {
		return nil, over, err
	}
	want, err := f.wants(ctx, run.Run)
	if err != nil {
		return nil, false, fmt.Errorf("look whether run %s still wants its data: %w", run.Run, err)
	}
	parsed, faults := descriptors.Parse(run.File, []byte(run.Descriptor))
	switch {
	case want != Wanted:
		return []event.Event{Canceled(run)}, true, nil
	case parsed != nil:
		say, err = f.submitted(ctx, run)
		return say, err == nil, err
	case skew.Late(u.Since, run.Descriptor, time.Now()):
		return []event.Event{Skewed(u, faults)}, true, nil
	}
	return nil, false, nil
}
