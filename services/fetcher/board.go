package fetcher

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// board is what this process knows of the open orders, and of the transfers
// that they wait for. What it forgets is found in the store again.
type board struct {
	mu     sync.Mutex
	orders map[string]*waiting // by run
	jobs   map[string]*job     // by key of the source
	look   chan struct{}       // something is to be looked at; holds one
}

// waiting is an order that waits for its sources.
type waiting struct {
	Order

	dirty   bool            // it is to be settled
	known   bool            // it was settled before, so that missed is right
	there   int             // data sets, when it was last settled
	said    int             // the same, when the user was last told; -1 at first
	full    map[string]bool // sources for which the user was told that there is no space
	missed  map[string]bool // keys of the jobs that it waits for
	at      time.Time       // when the progress was last told
	bytes   int64           // and what it was
	ended   time.Time       // when it was first seen that somebody else has ended it
	heard   time.Time       // when the user was last told how it moves, or what it waits for
	updated bool            // what it waits for has changed since
}

// job is a source that is to be transferred for the runs that wait for it.
type job struct {
	source  Source
	key     string
	runs    map[string]bool
	since   time.Time // when the last of them asked
	due     time.Time // not before
	tries   int       // in vain; of the transfer's own
	cancel  context.CancelCauseFunc
	running bool
	done    int64
	total   int64  // -1 if not known
	why     string // what it says that it waits for; empty where it says nothing
	last    stop   // how it was ended before its time
}

// told reports whether the user has been told how many data sets are there, before
// which nothing else is told of the order.
func (w *waiting) told() bool { return w.known && w.said >= 0 }

// stop is why a transfer ended before its time.
type stop int

const (
	never  stop = iota
	failed      // for no fault of the source
	noRoom
	abroad // another process does it
)

func newBoard() *board {
	return &board{orders: make(map[string]*waiting), jobs: make(map[string]*job), look: make(chan struct{}, 1)}
}

func (b *board) wake() {
	select {
	case b.look <- struct{}{}:
	default:
	}
}

// add takes up an order, unless it is known.
func (b *board) add(o Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.orders[o.Submitted.Run]; ok {
		return
	}
	b.orders[o.Submitted.Run] = &waiting{Order: o, dirty: true, said: -1, full: make(map[string]bool), missed: make(map[string]bool)}
	b.wake()
}

// touch has the order of a run settled again.
func (b *board) touch(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w, ok := b.orders[run]; ok {
		w.dirty = true
		b.wake()
	}
}

// redo has the order of a run settled again, but not at once.
func (b *board) redo(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w, ok := b.orders[run]; ok {
		w.dirty = true
	}
}

// ended reports whether the order of a run is known to have ended for at least
// so long.
func (b *board) ended(run string, now time.Time, long time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, ok := b.orders[run]
	if !ok {
		return false
	}
	if w.ended.IsZero() {
		w.ended = now
	}
	return now.Sub(w.ended) >= long
}

// has reports whether the order of a run is known.
func (b *board) has(run string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.orders[run]
	return ok
}

// runs returns the runs whose orders are known, in order.
func (b *board) runs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	runs := make([]string, 0, len(b.orders))
	for run := range b.orders {
		runs = append(runs, run)
	}
	slices.Sort(runs)
	return runs
}

// dirty returns the orders that are to be settled, in the order of their runs,
// and takes them for settled.
func (b *board) dirty() []Order {
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

// want has the sources that a run lacks transferred, and no others for it. It
// reports whether the user has not been told yet how many are there, and takes it
// for told.
func (b *board) want(run string, plan Plan) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, ok := b.orders[run]
	if !ok {
		return false
	}
	missed := make(map[string]bool)
	for _, s := range plan.Missing {
		missed[s.Key()] = true
		b.job(s).wait(run, w.Asked)
	}
	for key := range w.missed {
		if !missed[key] {
			b.leave(run, key)
		}
	}
	w.known, w.missed, w.there = true, missed, int(plan.Status.Progress.Done)
	news = w.said != w.there
	w.said = w.there
	return news
}

// untold notes that the users of these runs could not be told how many data sets
// are there.
func (b *board) untold(orders []Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range orders {
		if w, ok := b.orders[o.Submitted.Run]; ok {
			w.dirty, w.said = true, -1
		}
	}
}

func (b *board) job(s Source) *job {
	j, ok := b.jobs[s.Key()]
	if !ok {
		j = &job{source: s, key: s.Key(), runs: make(map[string]bool), total: -1}
		b.jobs[s.Key()] = j
	}
	return j
}

func (j *job) wait(run string, asked time.Time) {
	j.runs[run] = true
	if asked.After(j.since) {
		j.since = asked
	}
}

// drop forgets the order of a run.
func (b *board) drop(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, ok := b.orders[run]
	if !ok {
		return
	}
	delete(b.orders, run)
	for key := range w.missed {
		b.leave(run, key)
	}
}

// leave takes a run from those that wait for a job. A job that nobody waits for,
// or may wait for once it is settled, ends at once.
func (b *board) leave(run, key string) {
	j, ok := b.jobs[key]
	if !ok {
		return
	}
	delete(j.runs, run)
	b.adopt(j)
	if len(j.runs) > 0 {
		return
	}
	if j.running {
		j.cancel(errUnwanted)
		return
	}
	delete(b.jobs, key)
}

// adopt has the orders that were not settled yet wait for a job that fetches a
// source of theirs. What they do not lack they leave when they are.
func (b *board) adopt(j *job) {
	for run, w := range b.orders {
		if !w.known && slices.ContainsFunc(w.Sources, func(s Source) bool { return s.Key() == j.key }) {
			w.missed[j.key] = true
			j.wait(run, w.Asked)
		}
	}
}

// start returns a job that is due and makes it run, the one whose first run is
// the oldest, and nil if there is none.
func (b *board) start(ctx context.Context, now time.Time) (*job, context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next *job
	for _, j := range b.jobs {
		if !j.running && len(j.runs) > 0 && !j.due.After(now) && (next == nil || j.first() < next.first()) {
			next = j
		}
	}
	if next == nil {
		return nil, nil
	}
	next.running, next.done, next.total, next.why, next.last = true, 0, -1, "", never
	ctx, next.cancel = context.WithCancelCause(ctx)
	return next, ctx
}

// first returns the first run and the key: two jobs of one run have an order.
func (j *job) first() string {
	first := ""
	for run := range j.runs {
		if first == "" || run < first {
			first = run
		}
	}
	return first + j.key
}

// asked returns when the last of those who wait for a job have asked.
func (b *board) asked(j *job) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return j.since
}

// come returns how far a job has come, and what it waits for.
func (b *board) come(j *job) (done, total int64, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return j.done, j.total, j.why
}

// moved notes how far a job has come.
func (b *board) moved(j *job, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if done != j.done {
		b.changes(j, "")
	}
	j.done, j.total = done, total
}

// waits notes what a job waits for, if for anything. Users are told soon where that
// has changed.
func (b *board) waits(j *job, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes(j, clip(why, wordy/4))
}

// changes notes what a job waits for, and that there is news of it. Of a run whose
// data move again the progress is told; of a prefetch nothing but this.
func (b *board) changes(j *job, why string) {
	if j.why == why {
		return
	}
	j.why = why
	for run := range j.runs {
		if w, ok := b.orders[run]; ok && (why != "" || w.Prefetch) {
			w.updated = true
		}
	}
}

// stop notes that a job has done what it could: the runs that wait for it are
// settled.
func (b *board) stop(j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wake()
	j.halt()
	for run := range j.runs {
		if w, ok := b.orders[run]; ok {
			w.dirty = true
		}
	}
	delete(b.jobs, j.key) // who still lacks it when settled asks again
}

// later notes that a job has ended before its time, why, and when it is due
// again.
func (b *board) later(j *job, why stop, due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wake()
	j.halt()
	j.due, j.last = due, why
	if len(j.runs) == 0 {
		delete(b.jobs, j.key)
	}
}

func (j *job) halt() {
	j.running = false
	j.cancel(nil)
}

// full returns the runs to which nobody has said yet that a job waits for space.
func (b *board) full(j *job) []event.Submitted {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []event.Submitted
	for run := range j.runs {
		if w, ok := b.orders[run]; ok && !w.Prefetch && w.told() && !w.full[j.key] {
			w.full[j.key] = true
			all = append(all, w.Submitted)
		}
	}
	return all
}

// moving returns the runs of each job that runs.
func (b *board) moving() [][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all [][]string
	for _, j := range b.jobs {
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
func (b *board) progress(now time.Time, pace time.Duration) []event.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []event.Event
	for _, w := range b.orders {
		p := b.sum(w)
		if w.at.IsZero() {
			w.at = now // the first look has nothing to compare with
		}
		past := now.Sub(w.at)
		if w.Prefetch || !w.told() || past < pace || p.Done <= 0 || p.Done == w.bytes {
			continue
		}
		p.Rate = max(int64(float64(p.Done-w.bytes)/past.Seconds()), 0)
		w.at, w.bytes, w.heard, w.updated = now, p.Done, now, false
		all = append(all, Moving(w.Submitted, p))
	}
	slices.SortFunc(all, func(x, y event.Event) int { return compare(x.Head().Run, y.Head().Run) })
	return all
}

// stuck is an order of which the user has heard nothing for long, or that waits for
// something else than before.
type stuck struct {
	order Order
	Wait
}

// stuck returns the orders of which the user has heard nothing for so long before
// now, or for pace where there is news of what they wait for, and what each waits
// for, and takes them for told. Of a prefetch there is only news.
func (b *board) stuck(now time.Time, silence, pace time.Duration) []stuck {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []stuck
	var ahead map[string]int
	for _, w := range b.orders {
		if w.heard.IsZero() {
			w.heard = now // the first look has nothing to compare with
		}
		if !w.due(now, silence, pace) {
			continue
		}
		w.heard, w.updated = now, false
		if ahead == nil {
			ahead = b.line()
		}
		if j := b.holds(w); j != nil {
			all = append(all, stuck{w.Order, Wait{
				There: w.there, All: len(w.Sources), Source: j.source, Begun: j.running, Before: ahead[j.key], Tried: j.last == failed,
				Full: j.last == noRoom, Total: j.total, Why: j.why, Long: now.Sub(w.Asked),
			}})
		}
	}
	slices.SortFunc(all, func(x, y stuck) int { return compare(x.order.Submitted.Run, y.order.Submitted.Run) })
	return all
}

// due reports whether it is time to tell what an order waits for.
func (w *waiting) due(now time.Time, silence, pace time.Duration) bool {
	past := now.Sub(w.heard)
	switch {
	case w.updated && past >= pace:
		return w.Prefetch || w.told()
	default:
		return !w.Prefetch && w.told() && past >= silence
	}
}

// line returns how many jobs that do not work each of them has before it.
func (b *board) line() map[string]int {
	var names []string
	keys := make(map[string]string)
	for _, j := range b.jobs {
		if !j.running && j.last == never {
			name := j.first()
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

// holds returns the job that an order waits for, one that works if there is one.
func (b *board) holds(w *waiting) *job {
	var one *job
	for _, key := range slices.Sorted(maps.Keys(w.missed)) {
		j, ok := b.jobs[key]
		if ok && (one == nil || j.running && !one.running) {
			one = j
		}
	}
	return one
}

// sum adds up the jobs of an order that run.
func (b *board) sum(w *waiting) Progress {
	p, known := Progress{There: w.there, All: len(w.Sources)}, true
	for key := range w.missed {
		j, ok := b.jobs[key]
		if !ok {
			continue
		}
		p.Done += j.done
		p.Total += max(j.total, 0)
		known = known && j.total >= 0
	}
	if !known {
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
