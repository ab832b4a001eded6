// Package queue schedules, within one process, the downloads that open orders wait for.
// It tracks which order is reconciled next, which download runs next, and how long
// users have had no report. All its state can be rebuilt from the store.
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

// Queue has the open orders that this process knows, and the downloads that these
// orders wait for. Any goroutine may use it.
type Queue struct {
	wake func() // called when there is work to do

	mu        sync.Mutex
	orders    map[string]*order    // by run
	downloads map[string]*Download // by key of the source
}

// order is an open order.
type order struct {
	dataset.Order

	dirty           bool            // to be reconciled
	reconciled      bool            // reconciled before, so missing is right
	fetched         int             // number of fetched data sets at the last reconciliation
	reported        int             // the same number in the last report to the user; -1 before the first
	noSpaceReported map[string]bool // sources for which the user was informed that there is no space
	missing         map[string]bool // keys of the downloads that the order waits for
	progressAt      time.Time       // time of the last progress report
	progressBytes   int64           // bytes in that report
	endedAt         time.Time       // time at which another process was first seen to have ended the order
	reportedAt      time.Time       // time of the last progress or wait report
	waitChanged     bool            // the reason for waiting has changed since then
}

// Download is the download of a source for all orders that wait for it.
type Download struct {
	Source dataset.Source
	Key    string // key of the source

	// Backoff is used by the goroutine that runs the download. It is nil before the
	// first failure.
	Backoff *control.Backoff

	queue       *Queue
	runs        map[string]bool
	requestedAt time.Time // time of the latest of these orders
	notBefore   time.Time // earliest time of the next start
	cancel      context.CancelCauseFunc
	running     bool
	done        int64
	total       int64      // -1 if unknown
	waitReason  string     // empty while data arrive, or without a reason
	lastStop    StopReason // why it stopped the last time
}

// startReported reports whether the user has had a report of the number of fetched data
// sets. All other reports come after that one.
func (o *order) startReported() bool { return o.reconciled && o.reported >= 0 }

// StopReason is the reason why a download stopped early.
type StopReason int

// Reasons to stop.
const (
	NotStopped    StopReason = iota
	PlatformFault            // not a fault of the source
	NoSpace
	HeldElsewhere // another process runs the download
)

// New returns an empty queue that calls wake when there is work to do.
func New(wake func()) *Queue {
	return &Queue{wake: wake, orders: make(map[string]*order), downloads: make(map[string]*Download)}
}

// Add adds an order, unless the queue has it.
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

// Requeue marks the order of a run to be reconciled in the next pass.
func (q *Queue) Requeue(run string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o, ok := q.orders[run]; ok {
		o.dirty = true
	}
}

// RequeueNow marks the order of a run to be reconciled, and starts a pass.
func (q *Queue) RequeueNow(run string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o, ok := q.orders[run]; ok {
		o.dirty = true
		q.wake()
	}
}

// EndedSince reports whether it was first called for the order of a run at least minAge
// ago.
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

// Has reports whether the queue has the order of a run.
func (q *Queue) Has(run string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.orders[run]
	return ok
}

// Runs returns the runs whose orders the queue has, in order.
func (q *Queue) Runs() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return sortedKeys(q.orders)
}

// TakeDirty returns the orders to reconcile, sorted by run, each once.
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

// SetMissing sets the sources that a run still lacks, and the number of its fetched
// data sets. These sources are downloaded for the run, and no others. It reports
// whether the number has not been reported to the user yet, and marks it as reported.
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

// MarkUnreported marks the number of fetched data sets of these orders as not reported.
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

// Drop removes the order of a run.
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

// removeWaiter removes a run from the runs that wait for a download. A download for
// which no run waits is canceled at once, unless an order that is not reconciled yet
// has its source.
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

// attachNewOrders makes the orders that are not reconciled yet wait for a download of
// one of their sources. Reconciliation removes the orders that do not lack the source.
func (q *Queue) attachNewOrders(d *Download) {
	for run, o := range q.orders {
		if !o.reconciled && slices.ContainsFunc(o.Sources, func(s dataset.Source) bool { return s.Key() == d.Key }) {
			o.missing[d.Key] = true
			d.addRun(run, o.RequestedAt)
		}
	}
}

// StartNext returns the due download whose first run is the oldest, and the context to
// run it in. It returns nil if there is none.
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

// sortKey returns the first run with the key, so that downloads of one run have an
// order too.
func (d *Download) sortKey() string {
	first := ""
	for run := range d.runs {
		if first == "" || run < first {
			first = run
		}
	}
	return first + d.Key
}

// RequestedAt returns the time of the latest waiting order.
func (d *Download) RequestedAt() time.Time {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return d.requestedAt
}

// Total returns the number of bytes of the source, or -1 if unknown.
func (d *Download) Total() int64 {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return d.total
}

// SetProgress sets the progress of the download.
func (d *Download) SetProgress(done, total int64) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if done != d.done {
		d.queue.updateWaitReason(d, "")
	}
	d.done, d.total = done, total
}

// SetWaitReason sets the reason why the download waits, or "" while data arrive. A
// change is soon reported to users.
func (d *Download) SetWaitReason(why string) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	d.queue.updateWaitReason(d, dataset.Clip(why, dataset.MaxMessage/4))
}

// updateWaitReason sets the reason why a download waits, and marks the change. If data
// arrive again, only prefetches are marked, since the progress report informs the users
// of other orders.
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

// Complete ends a download that has an outcome. The orders that wait for it are
// reconciled, and request the source again if they still lack it.
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

// Reschedule records that a download has stopped early, the reason, and when the next
// try is due.
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

// TakeNoSpaceUnreported returns the runs that have had no report yet that a download
// waits for space, each once.
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

// RunsOfRunning returns the runs of each running download.
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
