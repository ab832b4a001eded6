package fetcher

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// unreadableOrderPrefix is the prefix of the keys of runs with an unreadable
// descriptor. These keys sort after those of the open orders, so lists of open orders
// do not read them.
const unreadableOrderPrefix = "unread/"

// deferUnreadable defers a run whose descriptor this fetcher cannot read. It does
// nothing for a run past fetching, whose descriptor another release has read.
func (f *fetcher) deferUnreadable(ctx context.Context, run event.Submitted, faults parser.Faults) ([]event.Event, error) {
	if past, err := f.pastFetching(ctx, run.Run); past || err != nil {
		return nil, err
	}
	u, err := f.unreadableQueue().PutIfAbsent(ctx, run.Run, unreadableRun{Submitted: run, Since: time.Now().UTC()})
	return []event.Event{versionSkewStatus(u, faults)}, err
}

// unreadableQueue returns the queue of runs whose descriptor a fetcher could not read.
func (f *fetcher) unreadableQueue() skew.Queue[unreadableRun] {
	return skew.NewQueue[unreadableRun](f.store, store.KindOrder, unreadableOrderPrefix)
}

// retryUnreadable decides again about the deferred runs of all fetchers. A fetcher that
// can read the descriptor of a run continues with the run.
func (f *fetcher) retryUnreadable(ctx context.Context) error {
	return f.unreadableQueue().ForEach(ctx, f.retryOne)
}

// retryOne decides about one deferred run, and publishes the resulting events.
func (f *fetcher) retryOne(ctx context.Context, u unreadableRun) (decided bool, err error) {
	events, decided, err := f.decideUnreadable(ctx, u)
	if err != nil || !decided || len(events) == 0 {
		return decided && err == nil, err
	}
	return true, f.bus.Publish(ctx, events...)
}

// decideUnreadable returns the events of a deferred run, and reports whether the run
// need not wait any more.
func (f *fetcher) decideUnreadable(ctx context.Context, u unreadableRun) (events []event.Event, decided bool, err error) {
	run := u.Submitted
	state, err := f.runState(ctx, run.Run)
	if err != nil || state == runEnded {
		return nil, err == nil, err
	}
	parsed, faults := parser.Parse(run.File, []byte(run.Descriptor))
	switch {
	case state != runActive:
		return []event.Event{canceled(run)}, true, nil
	case parsed != nil:
		events, err = f.handleSubmitted(ctx, run)
		return events, err == nil, err
	case skew.Expired(u.Since, run.Descriptor, time.Now()):
		return []event.Event{versionSkewFailed(u, faults)}, true, nil
	}
	return nil, false, nil
}
