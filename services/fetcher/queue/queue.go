// Package queue schedules, within one process, the downloads that open orders wait
// for: which order is reconciled next, which download runs next, and how long users
// have had no report. Everything in it is found in the store again.
package queue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Queue has the open orders that this process knows, and the downloads that they wait
// for. Any goroutine may use it.
type Queue struct {
	wake func() // there is something to be done

	mu        sync.Mutex
	orders    map[string]*order    // by run
	downloads map[string]*Download // by key of the source
}

// order is an order that waits for its sources.
type order struct {
	dataset.Order

	dirty           bool            // it is to be reconciled
	reconciled      bool            // it was before, so that missing is right
	fetched         int             // data sets, when it was last reconciled
	reported        int             // the same in the last report to the user; -1 before the first
	noSpaceReported map[string]bool // sources for which the user was told that there is no space
	missing         map[string]bool // keys of the downloads that it waits for
	progressAt      time.Time       // of the last report of progress
	progressBytes   int64           // that it gave
	endedAt         time.Time       // when another process was first seen to have ended it
	reportedAt      time.Time       // of the last report of any kind but of fetched data sets
	waitChanged     bool            // why it waits has changed since
}

// Download is a source that is downloaded for the orders that wait for it.
type Download struct {
	Source dataset.Source
	Key    string // of the source

	// Backoff is for the one that runs it, nil before its first failure.
	Backoff *control.Backoff

	queue       *Queue
	runs        map[string]bool
	requestedAt time.Time // when the last of them was made
	notBefore   time.Time // it does not run
	cancel      context.CancelCauseFunc
	running     bool
	done        int64
	total       int64      // -1 if not known
	waitReason  string     // empty where it moves, or gives none
	lastStop    StopReason // of the last time that it ran
}

// startReported reports whether the user was told how many data sets are fetched:
// every other report comes after that.
func (o *order) startReported() bool { return o.reconciled && o.reported >= 0 }

// StopReason is why a download stopped before its time.
type StopReason int

// The reasons.
const (
	NotStopped    StopReason = iota
	PlatformFault            // the source is not to blame
	NoSpace
	HeldElsewhere // another process runs it
)

// New returns an empty queue, which calls wake when there is something to be done.
func New(wake func()) *Queue {
	return &Queue{wake: wake, orders: make(map[string]*order), downloads: make(map[string]*Download)}
}

// Add takes up an order, unless it is known.
func (q *Queue) Add(o dataset.Order) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.orders[o.Submitted.Run]; ok {
		return
	}
	q.orders[o.Submitted.Run] = &order{
		Order: o, dirty: true, reported: -1, noSpaceReported: make(map[string]bool), missing: make(map[string]bool),
	}
	q.wake()
}

// Requeue has the order of a run reconciled, the next time that any is.
func (q *Queue) Requeue(run string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o, ok := q.orders[run]; ok {
		o.dirty = true
	}
}

// RequeueNow has the order of a run reconciled at once.
func (q *Queue) RequeueNow(run string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o, ok := q.orders[run]; ok {
		o.dirty = true
		q.wake()
	}
}

// EndedSince reports whether it was first called for the order of a run at least so
// long ago.
func (q *Queue) EndedSince(run string, now time.Time, minAge time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	o, ok := q.orders[run]
	if !ok {
		return false
	}
	if o.endedAt.IsZero() {
		o.endedAt = now
	}
	return now.Sub(o.endedAt) >= minAge
}

// Has reports whether the order of a run is known.
func (q *Queue) Has(run string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.orders[run]
	return ok
}

// Runs returns the runs whose orders are known, in order.
func (q *Queue) Runs() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return sortedKeys(q.orders)
}

// TakeDirty returns the orders that are to be reconciled, in the order of their runs,
// each once.
func (q *Queue) TakeDirty() []dataset.Order {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []dataset.Order
	for _, run := range sortedKeys(q.orders) {
		if o := q.orders[run]; o.dirty {
			o.dirty = false
			all = append(all, o.Order)
		}
	}
	return all
}

// SetMissing has the sources that a run lacks downloaded, and no others for it, where
// so many of its data sets are fetched. It reports whether the user was not told that
// number yet, and takes it for reported.
func (q *Queue) SetMissing(run string, sources []dataset.Source, fetched int) (changed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o, ok := q.orders[run]
	if !ok {
		return false
	}
	missing := make(map[string]bool)
	for _, s := range sources {
		missing[s.Key()] = true
		q.downloadOf(s).addRun(run, o.RequestedAt)
	}
	for key := range o.missing {
		if !missing[key] {
			q.removeWaiter(run, key)
		}
	}
	o.reconciled, o.missing, o.fetched = true, missing, fetched
	changed = o.reported != o.fetched
	o.reported = o.fetched
	return changed
}

// MarkUnreported notes that users were not told how many data sets of these orders
// are fetched.
func (q *Queue) MarkUnreported(orders []dataset.Order) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range orders {
		if o, ok := q.orders[one.Submitted.Run]; ok {
			o.dirty, o.reported = true, -1
		}
	}
}

func (q *Queue) downloadOf(s dataset.Source) *Download {
	d, ok := q.downloads[s.Key()]
	if !ok {
		d = &Download{Source: s, Key: s.Key(), queue: q, runs: make(map[string]bool), total: -1}
		q.downloads[d.Key] = d
	}
	return d
}

func (d *Download) addRun(run string, requestedAt time.Time) {
	d.runs[run] = true
	if requestedAt.After(d.requestedAt) {
		d.requestedAt = requestedAt
	}
}

// Drop forgets the order of a run.
func (q *Queue) Drop(run string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o, ok := q.orders[run]
	if !ok {
		return
	}
	delete(q.orders, run)
	for key := range o.missing {
		q.removeWaiter(run, key)
	}
}

// removeWaiter takes a run from those that wait for a download. A download for which
// no run waits, nor may wait once its order is reconciled, is canceled at once.
func (q *Queue) removeWaiter(run, key string) {
	d, ok := q.downloads[key]
	if !ok {
		return
	}
	delete(d.runs, run)
	q.attachNewOrders(d)
	switch {
	case len(d.runs) > 0:
	case d.running:
		d.cancel(download.ErrUnwanted)
	default:
		delete(q.downloads, key)
	}
}

// attachNewOrders has the orders that were not reconciled yet wait for a download of
// a source of theirs. Those that do not lack it leave it when they are reconciled.
func (q *Queue) attachNewOrders(d *Download) {
	for run, o := range q.orders {
		if !o.reconciled && slices.ContainsFunc(o.Sources, func(s dataset.Source) bool { return s.Key() == d.Key }) {
			o.missing[d.Key] = true
			d.addRun(run, o.RequestedAt)
		}
	}
}

// StartNext returns a download that is due, the one whose first run is the oldest, and
// the context to run it in; nil if there is none.
func (q *Queue) StartNext(ctx context.Context, now time.Time) (*Download, context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var next *Download
	for _, d := range q.downloads {
		if !d.running && len(d.runs) > 0 && !d.notBefore.After(now) && (next == nil || d.sortKey() < next.sortKey()) {
			next = d
		}
	}
	if next == nil {
		return nil, nil
	}
	next.running, next.done, next.total, next.waitReason, next.lastStop = true, 0, -1, "", NotStopped
	ctx, next.cancel = context.WithCancelCause(ctx)
	return next, ctx
}

// sortKey is the first run and the key, which orders two downloads of one run.
func (d *Download) sortKey() string {
	first := ""
	for run := range d.runs {
		if first == "" || run < first {
			first = run
		}
	}
	return first + d.Key
}

// RequestedAt returns when the last of the orders that wait was made.
func (d *Download) RequestedAt() time.Time {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return d.requestedAt
}

// Total returns how many bytes the source has, -1 if that is not known.
func (d *Download) Total() int64 {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return d.total
}

// SetProgress notes how far the download has come.
func (d *Download) SetProgress(done, total int64) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if done != d.done {
		d.queue.updateWaitReason(d, "")
	}
	d.done, d.total = done, total
}

// SetWaitReason notes why the download waits, empty where it moves. Users are told
// soon where that has changed.
func (d *Download) SetWaitReason(why string) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	d.queue.updateWaitReason(d, dataset.Clip(why, dataset.MaxMessage/4))
}

// updateWaitReason notes why a download waits, and that this has changed. Of a run
// whose data move again its progress tells; a prefetch has no other report.
func (q *Queue) updateWaitReason(d *Download, why string) {
	if d.waitReason == why {
		return
	}
	d.waitReason = why
	for run := range d.runs {
		if o, ok := q.orders[run]; ok && (why != "" || o.Prefetch) {
			o.waitChanged = true
		}
	}
}

// Complete ends a download that has an outcome: the orders that wait for it are
// reconciled, and ask again where they still lack the source.
func (q *Queue) Complete(d *Download) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wake()
	d.stop()
	for run := range d.runs {
		if o, ok := q.orders[run]; ok {
			o.dirty = true
		}
	}
	delete(q.downloads, d.Key)
}

// Reschedule notes that a download has stopped before its time, why, and when it is
// due again.
func (q *Queue) Reschedule(d *Download, why StopReason, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wake()
	d.stop()
	d.notBefore, d.lastStop = due, why
	if len(d.runs) == 0 {
		delete(q.downloads, d.Key)
	}
}

func (d *Download) stop() {
	d.running = false
	d.cancel(nil)
}

// TakeNoSpaceUnreported returns the runs that were not told yet that a download waits
// for space, each once.
func (q *Queue) TakeNoSpaceUnreported(d *Download) []event.Submitted {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []event.Submitted
	for run := range d.runs {
		if o, ok := q.orders[run]; ok && !o.Prefetch && o.startReported() && !o.noSpaceReported[d.Key] {
			o.noSpaceReported[d.Key] = true
			all = append(all, o.Submitted)
		}
	}
	return all
}

// RunsOfRunning returns the runs of each download that runs.
func (q *Queue) RunsOfRunning() [][]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all [][]string
	for _, d := range q.downloads {
		if d.running {
			all = append(all, sortedKeys(d.runs))
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
