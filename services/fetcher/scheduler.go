package fetcher

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// scheduler is what this process knows of the open orders, and of the transfers
// that they wait for. What it forgets is found in the store again.
type scheduler struct {
	mu        sync.Mutex
	orders    map[string]*waitingOrder // by run
	downloads map[string]*download     // by key of the source
	wakeCh    chan struct{}            // something is to be looked at; holds one
}

// waitingOrder is an order that waits for its sources.
type waitingOrder struct {
	Order

	dirty           bool            // it is to be settled
	reconciled      bool            // it was settled before, so that missed is right
	fetchedCount    int             // data sets, when it was last settled
	reported        int             // the same, when the user was last told; -1 at first
	noSpaceReported map[string]bool // sources for which the user was told that there is no space
	missing         map[string]bool // keys of the jobs that it waits for
	progressAt      time.Time       // when the progress was last told
	progressBytes   int64           // and what it was
	endedAt         time.Time       // when it was first seen that somebody else has ended it
	reportedAt      time.Time       // when the user was last told how it moves, or what it waits for
	waitChanged     bool            // what it waits for has changed since
}

// download is a source that is to be transferred for the runs that wait for it.
type download struct {
	source      Source
	key         string
	runs        map[string]bool
	requestedAt time.Time // when the last of them asked
	notBefore   time.Time // not before
	failures    int       // in vain; of the transfer's own
	cancel      context.CancelCauseFunc
	running     bool
	done        int64
	total       int64      // -1 if not known
	waitReason  string     // what it says that it waits for; empty where it says nothing
	lastStop    stopReason // how it was ended before its time
}

// startReported reports whether the user has been told how many data sets are there, before
// which nothing else is told of the order.
func (w *waitingOrder) startReported() bool { return w.reconciled && w.reported >= 0 }

// stopReason is why a transfer ended before its time.
type stopReason int

const (
	notStopped    stopReason = iota
	platformFault            // for no fault of the source
	noSpace
	heldElsewhere // another process does it
)

func newScheduler() *scheduler {
	return &scheduler{orders: make(map[string]*waitingOrder), downloads: make(map[string]*download), wakeCh: make(chan struct{}, 1)}
}

func (b *scheduler) wake() {
	select {
	case b.wakeCh <- struct{}{}:
	default:
	}
}

// add takes up an order, unless it is known.
func (b *scheduler) add(o Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.orders[o.Submitted.Run]; ok {
		return
	}
	b.orders[o.Submitted.Run] = &waitingOrder{Order: o, dirty: true, reported: -1, noSpaceReported: make(map[string]bool), missing: make(map[string]bool)}
	b.wake()
}

// requeueNow has the order of a run settled again.
func (b *scheduler) requeueNow(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w, ok := b.orders[run]; ok {
		w.dirty = true
		b.wake()
	}
}

// requeue has the order of a run settled again, but not at once.
func (b *scheduler) requeue(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w, ok := b.orders[run]; ok {
		w.dirty = true
	}
}

// endedSince reports whether the order of a run is known to have ended for at least
// so long.
func (b *scheduler) endedSince(run string, now time.Time, minAge time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, ok := b.orders[run]
	if !ok {
		return false
	}
	if w.endedAt.IsZero() {
		w.endedAt = now
	}
	return now.Sub(w.endedAt) >= minAge
}

// has reports whether the order of a run is known.
func (b *scheduler) has(run string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.orders[run]
	return ok
}

// runs returns the runs whose orders are known, in order.
func (b *scheduler) runs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	runs := make([]string, 0, len(b.orders))
	for run := range b.orders {
		runs = append(runs, run)
	}
	slices.Sort(runs)
	return runs
}

// takeDirty returns the orders that are to be settled, in the order of their runs,
// and takes them for settled.
func (b *scheduler) takeDirty() []Order {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Order
	for _, w := range b.orders {
		if w.dirty {
			w.dirty = false
			all = append(all, w.Order)
		}
	}
	slices.SortFunc(all, func(x, y Order) int { return compare(x.Submitted.Run, y.Submitted.Run) })
	return all
}

// setMissing has the sources that a run lacks transferred, and no others for it. It
// reports whether the user has not been told yet how many are there, and takes it
// for told.
func (b *scheduler) setMissing(run string, plan Decision) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, ok := b.orders[run]
	if !ok {
		return false
	}
	missing := make(map[string]bool)
	for _, s := range plan.Missing {
		missing[s.Key()] = true
		b.downloadFor(s).addRun(run, w.RequestedAt)
	}
	for key := range w.missing {
		if !missing[key] {
			b.removeWaiter(run, key)
		}
	}
	w.reconciled, w.missing, w.fetchedCount = true, missing, int(plan.Status.Progress.Done)
	changed = w.reported != w.fetchedCount
	w.reported = w.fetchedCount
	return changed
}

// markUnreported notes that the users of these runs could not be told how many data sets
// are there.
func (b *scheduler) markUnreported(orders []Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range orders {
		if w, ok := b.orders[o.Submitted.Run]; ok {
			w.dirty, w.reported = true, -1
		}
	}
}

func (b *scheduler) downloadFor(s Source) *download {
	j, ok := b.downloads[s.Key()]
	if !ok {
		j = &download{source: s, key: s.Key(), runs: make(map[string]bool), total: -1}
		b.downloads[s.Key()] = j
	}
	return j
}

func (j *download) addRun(run string, requestedAt time.Time) {
	j.runs[run] = true
	if requestedAt.After(j.requestedAt) {
		j.requestedAt = requestedAt
	}
}

// drop forgets the order of a run.
func (b *scheduler) drop(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, ok := b.orders[run]
	if !ok {
		return
	}
	delete(b.orders, run)
	for key := range w.missing {
		b.removeWaiter(run, key)
	}
}

// removeWaiter takes a run from those that wait for a job. A job that nobody waits for,
// or may wait for once it is settled, ends at once.
func (b *scheduler) removeWaiter(run, key string) {
	j, ok := b.downloads[key]
	if !ok {
		return
	}
	delete(j.runs, run)
	b.attachNewOrders(j)
	if len(j.runs) > 0 {
		return
	}
	if j.running {
		j.cancel(errUnwanted)
		return
	}
	delete(b.downloads, key)
}

// attachNewOrders has the orders that were not settled yet wait for a job that fetches a
// source of theirs. What they do not lack they leave when they are.
func (b *scheduler) attachNewOrders(j *download) {
	for run, w := range b.orders {
		if !w.reconciled && slices.ContainsFunc(w.Sources, func(s Source) bool { return s.Key() == j.key }) {
			w.missing[j.key] = true
			j.addRun(run, w.RequestedAt)
		}
	}
}

// startNext returns a job that is due and makes it run, the one whose first run is
// the oldest, and nil if there is none.
func (b *scheduler) startNext(ctx context.Context, now time.Time) (*download, context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next *download
	for _, j := range b.downloads {
		if !j.running && len(j.runs) > 0 && !j.notBefore.After(now) && (next == nil || j.sortKey() < next.sortKey()) {
			next = j
		}
	}
	if next == nil {
		return nil, nil
	}
	next.running, next.done, next.total, next.waitReason, next.lastStop = true, 0, -1, "", notStopped
	ctx, next.cancel = context.WithCancelCause(ctx)
	return next, ctx
}

// sortKey returns the first run and the key: two jobs of one run have an order.
func (j *download) sortKey() string {
	first := ""
	for run := range j.runs {
		if first == "" || run < first {
			first = run
		}
	}
	return first + j.key
}

// requestedAt returns when the last of those who wait for a job have asked.
func (b *scheduler) requestedAt(j *download) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return j.requestedAt
}

// progressOf returns how far a job has come, and what it waits for.
func (b *scheduler) progressOf(j *download) (done, total int64, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return j.done, j.total, j.waitReason
}

// setProgress notes how far a job has come.
func (b *scheduler) setProgress(j *download, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if done != j.done {
		b.updateWaitReason(j, "")
	}
	j.done, j.total = done, total
}

// setWaitReason notes what a job waits for, if for anything. Users are told soon where that
// has changed.
func (b *scheduler) setWaitReason(j *download, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updateWaitReason(j, clip(why, maxMessageBytes/4))
}

// updateWaitReason notes what a job waits for, and that there is news of it. Of a run whose
// data move again the progress is told; of a prefetch nothing but this.
func (b *scheduler) updateWaitReason(j *download, why string) {
	if j.waitReason == why {
		return
	}
	j.waitReason = why
	for run := range j.runs {
		if w, ok := b.orders[run]; ok && (why != "" || w.Prefetch) {
			w.waitChanged = true
		}
	}
}

// complete notes that a job has done what it could: the runs that wait for it are
// settled.
func (b *scheduler) complete(j *download) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wake()
	j.halt()
	for run := range j.runs {
		if w, ok := b.orders[run]; ok {
			w.dirty = true
		}
	}
	delete(b.downloads, j.key) // who still lacks it when settled asks again
}

// reschedule notes that a job has ended before its time, why, and when it is due
// again.
func (b *scheduler) reschedule(j *download, why stopReason, due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wake()
	j.halt()
	j.notBefore, j.lastStop = due, why
	if len(j.runs) == 0 {
		delete(b.downloads, j.key)
	}
}

func (j *download) halt() {
	j.running = false
	j.cancel(nil)
}

// takeNoSpaceUnreported returns the runs to which nobody has said yet that a job waits for space.
func (b *scheduler) takeNoSpaceUnreported(j *download) []event.Submitted {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []event.Submitted
	for run := range j.runs {
		if w, ok := b.orders[run]; ok && !w.Prefetch && w.startReported() && !w.noSpaceReported[j.key] {
			w.noSpaceReported[j.key] = true
			all = append(all, w.Submitted)
		}
	}
	return all
}

// runsOfRunning returns the runs of each job that runs.
func (b *scheduler) runsOfRunning() [][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all [][]string
	for _, j := range b.downloads {
		if !j.running {
			continue
		}
		var runs []string
		for run := range j.runs {
			runs = append(runs, run)
		}
		slices.Sort(runs)
		all = append(all, runs)
	}
	return all
}

// progress returns what there is to tell about orders whose data have moved
// since they were last told of, that is, at least pace before now.
func (b *scheduler) progress(now time.Time, interval time.Duration) []event.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []event.Event
	for _, w := range b.orders {
		p := b.totalProgress(w)
		if w.progressAt.IsZero() {
			w.progressAt = now // the first look has nothing to compare with
		}
		elapsed := now.Sub(w.progressAt)
		if w.Prefetch || !w.startReported() || elapsed < interval || p.Done <= 0 || p.Done == w.progressBytes {
			continue
		}
		p.Rate = max(int64(float64(p.Done-w.progressBytes)/elapsed.Seconds()), 0)
		w.progressAt, w.progressBytes, w.reportedAt, w.waitChanged = now, p.Done, now, false
		all = append(all, ProgressStatus(w.Submitted, p))
	}
	slices.SortFunc(all, func(x, y event.Event) int { return compare(x.Head().Run, y.Head().Run) })
	return all
}

// staleOrder is an order of which the user has heard nothing for long, or that waits for
// something else than before.
type staleOrder struct {
	order Order
	Wait
}

// staleOrders returns the orders of which the user has heard nothing for so long before
// now, or for pace where there is news of what they wait for, and what each waits
// for, and takes them for told. Of a prefetch there is only news.
func (b *scheduler) staleOrders(now time.Time, heartbeat, interval time.Duration) []staleOrder {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []staleOrder
	var ahead map[string]int
	for _, w := range b.orders {
		if w.reportedAt.IsZero() {
			w.reportedAt = now // the first look has nothing to compare with
		}
		if !w.reportDue(now, heartbeat, interval) {
			continue
		}
		w.reportedAt, w.waitChanged = now, false
		if ahead == nil {
			ahead = b.queuePositions()
		}
		if j := b.blockingDownload(w); j != nil {
			all = append(all, staleOrder{w.Order, Wait{
				SetsFetched: w.fetchedCount, SetsTotal: len(w.Sources), Source: j.source, Started: j.running, QueuePosition: ahead[j.key], Retrying: j.lastStop == platformFault,
				StoreFull: j.lastStop == noSpace, Total: j.total, Reason: j.waitReason, Waited: now.Sub(w.RequestedAt),
			}})
		}
	}
	slices.SortFunc(all, func(x, y staleOrder) int { return compare(x.order.Submitted.Run, y.order.Submitted.Run) })
	return all
}

// reportDue reports whether it is time to tell what an order waits for.
func (w *waitingOrder) reportDue(now time.Time, heartbeat, interval time.Duration) bool {
	elapsed := now.Sub(w.reportedAt)
	switch {
	case w.waitChanged && elapsed >= interval:
		return w.Prefetch || w.startReported()
	default:
		return !w.Prefetch && w.startReported() && elapsed >= heartbeat
	}
}

// queuePositions returns how many jobs that do not work each of them has before it.
func (b *scheduler) queuePositions() map[string]int {
	var names []string
	keys := make(map[string]string)
	for _, j := range b.downloads {
		if !j.running && j.lastStop == notStopped {
			name := j.sortKey()
			names, keys[name] = append(names, name), j.key
		}
	}
	slices.Sort(names)
	ahead := make(map[string]int, len(names))
	for i, name := range names {
		ahead[keys[name]] = i
	}
	return ahead
}

// blockingDownload returns the job that an order waits for, one that works if there is one.
func (b *scheduler) blockingDownload(w *waitingOrder) *download {
	var one *download
	for _, key := range slices.Sorted(maps.Keys(w.missing)) {
		j, ok := b.downloads[key]
		if ok && (one == nil || j.running && !one.running) {
			one = j
		}
	}
	return one
}

// totalProgress adds up the jobs of an order that run.
func (b *scheduler) totalProgress(w *waitingOrder) Progress {
	p, sizesKnown := Progress{SetsFetched: w.fetchedCount, SetsTotal: len(w.Sources)}, true
	for key := range w.missing {
		j, ok := b.downloads[key]
		if !ok {
			continue
		}
		p.Done += j.done
		p.Total += max(j.total, 0)
		sizesKnown = sizesKnown && j.total >= 0
	}
	if !sizesKnown {
		p.Total = 0
	}
	return p
}

func compare(x, y string) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
