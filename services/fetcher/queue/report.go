package queue

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Progress is the progress of the downloads of one run.
type Progress struct {
	Run                    event.Submitted
	SetsFetched, SetsTotal int   // data sets
	Done                   int64 // bytes
	Total                  int64 // bytes; 0 if unknown
	Rate                   int64 // bytes per second
}

// Wait is the reason why an order waits.
type Wait struct {
	Order                  dataset.Order
	SetsFetched, SetsTotal int            // data sets
	Source                 dataset.Source // source that the order waits for
	Started                bool           // the download is running
	QueuePosition          int            // number of downloads that start before this one, if it has not started
	Retrying               bool           // the download has failed and is repeated
	StoreFull              bool           // the download needs space
	Total                  int64          // bytes; -1 if unknown
	Space                  store.Space    // space of the store, if it is full
	Reason                 string         // reason from the download; empty if there is none
	Waited                 time.Duration  // time since the order was made
}

// TakeProgress returns the progress of the orders whose data have advanced since their
// last report, sorted by run, and marks it as reported. That report must be at least
// interval old.
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

// TakeWaits returns the reasons why orders wait, sorted by run, and marks them as
// reported. It returns orders without a report for heartbeat, and orders whose reason
// has changed and that had no report for interval. A prefetch is returned only if its
// reason has changed.
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

// reportDue reports whether a report of an order's reason to wait is due.
func (o *order) reportDue(now time.Time, heartbeat, interval time.Duration) bool {
	elapsed := now.Sub(o.reportedAt)
	if o.waitChanged && elapsed >= interval {
		return o.Prefetch || o.startReported()
	}
	return !o.Prefetch && o.startReported() && elapsed >= heartbeat
}

// positions returns, for each download that waits for its first start, how many
// downloads start before it, by key.
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

// blockingDownload returns the download that an order waits for, preferably a running
// one.
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

// progressOf returns the sum of the progress of an order's downloads.
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
