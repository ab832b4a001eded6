package watcher

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// maxWorkers is how many attempts are looked at and decided about at a time.
const maxWorkers = 16

// watcher looks at attempts, and says what it decides about them.
type watcher struct {
	settings Settings
	deps     Deps
	docs     documents
	queue    *workQueue

	mu       sync.Mutex
	attempts map[attempt]*tracked
}

// tracked is what this process remembers of an attempt. All of it can be found
// again, but for what was seen last of one that is gone.
type tracked struct {
	doc          WatchedAttempt
	seen         *cluster.Snapshot // as heard; nil: look
	observedAt   time.Time         // when that was
	lastSeen     cluster.Snapshot  // the last time that something of it was there
	goneSince    time.Time         // since when nothing is, by live looks
	lastReported string            // ID of the last status that was said
	failures     int               // looks in a row that failed
	heldSince    time.Time         // since when its end is not said because a log is being read; zero where it is not
}

func newWatcher(s Settings, d Deps) *watcher {
	return &watcher{settings: s, deps: d, docs: documents{d.Store}, queue: newWorkQueue(), attempts: make(map[attempt]*tracked)}
}

// onLaunched hears of an attempt that is to be watched. Of one that has ended it
// says the end again unless the run has it: the topic may have lost it.
func (w *watcher) onLaunched(ctx context.Context, ev event.Launched) ([]event.Event, error) {
	a := attempt{ev.Run, ev.Attempt}
	runExists, runEnded, err := w.docs.runState(ctx, a)
	if err != nil || runEnded {
		return nil, err
	}
	ended, err := w.docs.startWatch(ctx, ev)
	if err != nil || ended != nil && !runExists {
		return nil, err
	}
	if ended != nil {
		return ended.events(), nil
	}
	w.track(a, WatchedAttempt{Launched: ev})
	w.queue.enqueue(a)
	return nil, nil
}

// onCommand hears that somebody wants something of a run: its mark is set, so
// it is enough to look.
func (w *watcher) onCommand(_ context.Context, c event.Command) ([]event.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.attempts {
		if a.run == c.Run {
			w.queue.enqueue(a)
		}
	}
	return nil, nil
}

// watchCluster hears what changes in the cluster. Where that fails it begins anew,
// said once, with growing waits.
func (w *watcher) watchCluster(ctx context.Context) error {
	for tries := 1; ; tries++ {
		began := w.deps.Clock()
		err := w.deps.Cluster.Watch(ctx, w.onChange)
		if w.deps.Clock().Sub(began) > w.settings.Reconcile {
			tries = 1
		}
		if tries == 1 && ctx.Err() == nil {
			w.deps.Log.Warn("the watch over the cluster broke, begins anew", zap.Error(err))
		}
		if !sleep(ctx, w.backoff(tries)) {
			break
		}
	}
	return nil
}

// onChange notes what was seen of an attempt, for who decides about it.
func (w *watcher) onChange(s cluster.Snapshot) {
	a := attempt{s.Ref.Run, s.Ref.Attempt}
	w.mu.Lock()
	if m, ok := w.attempts[a]; ok {
		m.seen, m.observedAt = &s, w.deps.Clock()
		if s.Job != nil {
			m.lastSeen, m.goneSince = mergeLastSeen(m.lastSeen, s), time.Time{}
		}
	}
	w.mu.Unlock()
	w.queue.enqueue(a)
}

// run decides about attempts as they come up, and looks at all of them from
// time to time.
func (w *watcher) run(ctx context.Context) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	for range maxWorkers {
		workers.Go(func() { w.worker(ctx) })
	}
	for tries := 0; ; {
		wait := w.settings.Reconcile
		if err := w.resync(ctx); err != nil && ctx.Err() == nil {
			if tries++; tries == 1 {
				w.deps.Log.Warn("cannot look at what is watched, tries again", zap.Error(err))
			}
			wait = w.backoff(tries)
		} else {
			tries = 0
		}
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

// worker decides about one attempt after the other.
func (w *watcher) worker(ctx context.Context) {
	for {
		a, ok := w.queue.get(ctx)
		if !ok {
			return
		}
		requeueAt, err := w.reconcile(ctx, a)
		if err != nil && ctx.Err() == nil {
			requeueAt = w.deps.Clock().Add(w.backoff(w.recordFailure(a, err)))
		}
		if throttle := w.throttle(a); throttle > 0 {
			time.AfterFunc(throttle, func() { w.queue.done(a, requeueAt, w.deps.Clock()) })
			continue
		}
		w.queue.done(a, requeueAt, w.deps.Clock())
	}
}

// throttle is for how long an attempt is not looked at after it was: the longer the
// more pods it has, each of whose changes is a reason to look at all of them.
func (w *watcher) throttle(a attempt) time.Duration {
	const few, each = 50, 200 * time.Microsecond
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.attempts[a]; ok && len(m.lastSeen.Pods) > few {
		return time.Duration(len(m.lastSeen.Pods)) * each
	}
	return 0
}

// recordFailure counts the looks at an attempt that failed in a row, and says so
// once.
func (w *watcher) recordFailure(a attempt, err error) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	tries := 1
	if m, ok := w.attempts[a]; ok {
		m.failures++
		tries = m.failures
	}
	if tries == 1 {
		w.deps.Log.Warn("cannot look, tries again", zap.String("run", a.run), zap.Int("attempt", a.number), zap.Error(err))
	}
	return tries
}

// backoff is how long to wait after so many failures in a row: at most 32 times
// as long as after the first, so that nobody waits longer once all is back.
func (w *watcher) backoff(tries int) time.Duration {
	return min(w.settings.Retry<<min(tries-1, 5), w.settings.Reconcile)
}

// staleRounds is for how many rounds of reconcile nothing may be heard of an attempt
// before it is looked at live: all that is there is heard of again more often.
const staleRounds = 3

// resync has every watched attempt decided about, whoever launched it, and
// looked at live where nothing was heard of it lately.
func (w *watcher) resync(ctx context.Context) error {
	return w.docs.forEachWatched(ctx, func(d WatchedAttempt) {
		a := attempt{d.Launched.Run, d.Launched.Attempt}
		w.track(a, d)
		w.invalidate(a)
		w.queue.enqueue(a)
	})
}

// reconcile gathers what is known of an attempt, decides, and says what follows. It
// returns when to look again though nothing changes.
func (w *watcher) reconcile(ctx context.Context, a attempt) (recheckAt time.Time, err error) {
	m, err := w.findTracked(ctx, a)
	if err != nil || m == nil {
		return time.Time{}, err
	}
	s, err := w.observe(ctx, a, *m)
	if err != nil {
		return time.Time{}, err
	}
	v := Decide(s)
	events := EventsFor(m.doc.Launched, v, s)
	if v.Phase == event.PhaseFinished {
		if recheckAt, err := w.awaitLogs(ctx, a, s); err != nil || !recheckAt.IsZero() {
			return recheckAt, err
		}
		return time.Time{}, w.finish(ctx, a, events)
	}
	if len(events) > 0 && events[0].Head().ID != m.lastReported {
		if err := w.deps.Bus.Publish(ctx, events...); err != nil {
			return time.Time{}, err
		}
		w.setLastReported(a, events[0].Head().ID)
	}
	w.resetFailures(a)
	return v.RecheckAt, nil
}

// observe returns what is known of an attempt. That nothing of it is there is
// believed of a live look only.
func (w *watcher) observe(ctx context.Context, a attempt, m tracked) (Observation, error) {
	l, now := m.doc.Launched, w.deps.Clock()
	s := Observation{LastSeen: m.lastSeen, Now: now, Grace: w.settings.Grace, PendingDeadline: cmp.Or(l.PendingDeadline, w.settings.PendingDeadline), ReadyDeadline: l.PendingDeadline}
	if m.seen != nil && m.seen.Job != nil && (l.UID == "" || string(m.seen.Job.UID) == l.UID) {
		s.Seen = *m.seen
	} else {
		seen, err := w.deps.Cluster.Observe(ctx, m.doc.ref())
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return s, wrapError(err, "look at job %s", l.Job)
		}
		s.Seen = seen
		s.GoneSince = w.recordObservation(a, seen, now)
	}
	canceled, err := w.docs.hasCancelMark(ctx, a.run)
	s.Canceled = canceled
	return s, err
}

// finish writes down how an attempt ended, says it, and watches it no longer.
// Should another process have been faster, what that one wrote is said. Nothing is
// said of an attempt whose end the run has: only its document was left, or came
// back with a store that was older.
func (w *watcher) finish(ctx context.Context, a attempt, events []event.Event) error {
	_, runEnded, err := w.docs.runState(ctx, a)
	if err != nil {
		return err
	}
	if !runEnded {
		e, err := w.docs.putEndIfAbsent(ctx, a, newEndedAttempt(events))
		if err != nil {
			return err
		}
		if err := w.deps.Bus.Publish(ctx, e.events()...); err != nil {
			return err
		}
	}
	if err := w.docs.endWatch(ctx, a); err != nil {
		return err
	}
	w.mu.Lock()
	delete(w.attempts, a)
	w.mu.Unlock()
	w.deps.Log.Info("ended", zap.String("run", a.run), zap.Int("attempt", a.number))
	return nil
}

// track notes that an attempt is watched.
func (w *watcher) track(a attempt, d WatchedAttempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attempts[a] == nil {
		w.attempts[a] = &tracked{doc: d}
	}
}

// findTracked returns what is remembered of an attempt, nil of one that is not
// watched. One that another process has heard of is looked up.
func (w *watcher) findTracked(ctx context.Context, a attempt) (*tracked, error) {
	if m, ok := w.lookup(a); ok {
		return &m, nil
	}
	d, err := w.docs.watchedAttempt(ctx, a)
	if err != nil || d == nil {
		return nil, err
	}
	w.track(a, *d)
	return &tracked{doc: *d}, nil
}

func (w *watcher) lookup(a attempt) (tracked, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.attempts[a]
	if !ok {
		return tracked{}, false
	}
	return *m, true
}

// recordObservation keeps what a live look saw, and returns since when nothing is there.
func (w *watcher) recordObservation(a attempt, seen cluster.Snapshot, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.attempts[a]
	switch {
	case !ok:
		return time.Time{}
	case seen.Job != nil || len(seen.Pods) > 0:
		m.lastSeen, m.goneSince = mergeLastSeen(m.lastSeen, seen), time.Time{}
	case m.goneSince.IsZero():
		m.goneSince = now
	}
	return m.goneSince
}

func (w *watcher) setLastReported(a attempt, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.attempts[a]; ok {
		m.lastReported = id
	}
}

func (w *watcher) resetFailures(a attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.attempts[a]; ok {
		m.failures = 0
	}
}

func (w *watcher) invalidate(a attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.attempts[a]; ok && w.deps.Clock().Sub(m.observedAt) >= staleRounds*w.settings.Reconcile {
		m.seen = nil
	}
}

// sleep waits for d. It is false once ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
