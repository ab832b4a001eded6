package queue

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Progress is how far the downloads for one run have come.
type Progress struct {
	Run                    event.Submitted
	SetsFetched, SetsTotal int   // data sets
	Done                   int64 // bytes
	Total                  int64 // bytes; 0 where that is not known
	Rate                   int64 // bytes a second
}

// Wait is why an order waits.
type Wait struct {
	Order                  dataset.Order
	SetsFetched, SetsTotal int            // data sets
	Source                 dataset.Source // that it waits for
	Started                bool           // the download runs
	QueuePosition          int            // downloads that start before it, where it has not
	Retrying               bool           // it failed
	StoreFull              bool           // for want of space
	Total                  int64          // bytes; -1 where that is not known
	Space                  store.Space    // where the store is full
	Reason                 string         // that the download gives; empty where it gives none
	Waited                 time.Duration  // since the order was made
}

// TakeProgress returns, in the order of their runs, the progress of orders whose data
// have moved since their last report, at least interval before now, and takes it for
// reported.
func (q *Queue) TakeProgress(now time.Time, interval time.Duration) []Progress {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []Progress
	for _, run := range sortedKeys(q.orders) {
		o := q.orders[run]
		p := q.progressOf(o)
		if o.progressAt.IsZero() {
			o.progressAt = now // the first call has nothing to compare with
		}
		elapsed := now.Sub(o.progressAt)
		if o.Prefetch || !o.startReported() || elapsed < interval || p.Done <= 0 || p.Done == o.progressBytes {
			continue
		}
		p.Rate = max(int64(float64(p.Done-o.progressBytes)/elapsed.Seconds()), 0)
		o.progressAt, o.progressBytes, o.reportedAt, o.waitChanged = now, p.Done, now, false
		all = append(all, p)
	}
	return all
}

// TakeWaits returns, in the order of their runs, why orders wait that had no report
// for heartbeat, or for interval where the reason has changed, and takes it for
// reported. A prefetch is among them only where the reason has changed.
func (q *Queue) TakeWaits(now time.Time, heartbeat, interval time.Duration) []Wait {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []Wait
	var positions map[string]int
	for _, run := range sortedKeys(q.orders) {
		o := q.orders[run]
		if o.reportedAt.IsZero() {
			o.reportedAt = now // the first call has nothing to compare with
		}
		if !o.reportDue(now, heartbeat, interval) {
			continue
		}
		o.reportedAt, o.waitChanged = now, false
		if positions == nil {
			positions = q.positions()
		}
		if d := q.blockingDownload(o); d != nil {
			all = append(all, Wait{
				Order: o.Order, SetsFetched: o.fetched, SetsTotal: len(o.Sources), Source: d.Source, Started: d.running,
				QueuePosition: positions[d.Key],
				Retrying:      d.lastStop == PlatformFault, StoreFull: d.lastStop == NoSpace, Total: d.total,
				Reason: d.waitReason, Waited: now.Sub(o.RequestedAt),
			})
		}
	}
	return all
}

// reportDue reports whether it is time to report why an order waits.
func (o *order) reportDue(now time.Time, heartbeat, interval time.Duration) bool {
	elapsed := now.Sub(o.reportedAt)
	if o.waitChanged && elapsed >= interval {
		return o.Prefetch || o.startReported()
	}
	return !o.Prefetch && o.startReported() && elapsed >= heartbeat
}

// positions returns, by key, how many downloads start before each that waits for its
// first start.
func (q *Queue) positions() map[string]int {
	waiting := make(map[string]string) // sort key → key
	for _, d := range q.downloads {
		if !d.running && d.lastStop == NotStopped {
			waiting[d.sortKey()] = d.Key
		}
	}
	ahead := make(map[string]int, len(waiting))
	for i, first := range sortedKeys(waiting) {
		ahead[waiting[first]] = i
	}
	return ahead
}

// blockingDownload returns the download that an order waits for, one that runs if
// there is one.
func (q *Queue) blockingDownload(o *order) *Download {
	var all []*Download
	for _, key := range sortedKeys(o.missing) {
		if d, ok := q.downloads[key]; ok {
			all = append(all, d)
		}
	}
	if i := slices.IndexFunc(all, func(d *Download) bool { return d.running }); i > 0 {
		return all[i]
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// progressOf adds up the downloads of an order that run.
func (q *Queue) progressOf(o *order) Progress {
	p, sizesKnown := Progress{Run: o.Submitted, SetsFetched: o.fetched, SetsTotal: len(o.Sources)}, true
	for key := range o.missing {
		d, ok := q.downloads[key]
		if !ok {
			continue
		}
		p.Done += d.done
		p.Total += max(d.total, 0)
		sizesKnown = sizesKnown && d.total >= 0
	}
	if !sizesKnown {
		p.Total = 0
	}
	return p
}
