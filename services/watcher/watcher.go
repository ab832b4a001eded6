package watcher

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan/always"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// maxWorkers is how many attempts on an engine are decided about at a time.
const maxWorkers = 16

// watcher observes attempts, decides about them and publishes the decisions.
type watcher struct {
	settings Settings
	deps     Deps
	docs     documents
	engines  engines

	mu       sync.Mutex
	attempts map[attempt]*tracked
}

// tracked is the state of an attempt in this process. It can all be read again, except the last snapshot of an attempt that is gone.
type tracked struct {
	// Only the worker at the attempt uses these.
	doc          watchedAttempt
	lastReported string    // ID of the last status that was published
	freeAt       time.Time // when it was last found not to wait for other runs, though it lacked room
	heldSince    time.Time // since when its end waits for a log to be read; zero while it does not
	// reportsOutage is whether this process has published that the engine does not answer.
	reportsOutage bool

	mu         sync.Mutex
	seen       *cluster.Snapshot // the last snapshot of the watch; nil: read live
	observedAt time.Time         // when that was
	lastSeen   cluster.Snapshot  // the last in which the attempt had a job or pods
	goneSince  time.Time         // since when it has none, according to live reads
	// missingSince is since when it misses one of its jobs; zero while it has all.
	missingSince time.Time

	steps map[string]always.StepResult // how steps at the end ended, in pods that were ever seen
}

func newWatcher(s Settings, d Deps) *watcher {
	return &watcher{settings: s, deps: d, docs: documents{d.Store}, engines: newEngines(s, d), attempts: make(map[attempt]*tracked)}
}

// onLaunched starts to watch an attempt. If the attempt has ended and the run does not show that, it returns the end once more: the topic
// may have lost it.
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
	w.track(a, watchedAttempt{Launched: ev})
	w.engines.of(ev).queue.Add(a)
	return nil, nil
}

// onCommand queues the attempts of a run: the cancel mark of the run is set before the command is published.
func (w *watcher) onCommand(_ context.Context, c event.Command) ([]event.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a, m := range w.attempts {
		if a.run == c.Run {
			w.engines.of(m.doc.Launched).queue.Add(a)
		}
	}
	return nil, nil
}

// watchCluster returns the loop that watches the cluster of an engine. It restarts a broken watch.
func (w *watcher) watchCluster(e *engine) *control.Loop {
	watch := func(ctx context.Context) (time.Duration, error) {
		return 0, e.Cluster.Watch(ctx, func(s cluster.Snapshot) { w.onChange(e, s) })
	}
	return control.NewLoop("watch", w.settings.Retry, w.deps.Log, watch, control.LoopSettings{
		Backoff: w.backoff(), Steady: w.settings.Reconcile, Failing: "the watch over the cluster broke, begins anew",
	})
}

// onChange stores a snapshot of an attempt on an engine, and queues the attempt. Snapshots of attempts on other engines do not count.
func (w *watcher) onChange(e *engine, s cluster.Snapshot) {
	a := attempt{s.Ref.Run, s.Ref.Attempt}
	if m := w.lookup(a); m != nil {
		if w.engines.of(m.doc.Launched) != e {
			return
		}
		m.note(verdict.WithMainJob(s, m.doc.Launched), w.deps.Clock())
	}
	e.queue.Add(a)
}

// note stores a snapshot of the watch.
func (m *tracked) note(s cluster.Snapshot, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.observedAt = &s, now
	if s.Job != nil {
		m.remember(s, now)
	}
	m.noteSteps(s)
}

// run decides about queued attempts, and about all of them in every round of resync.
func (w *watcher) run(ctx context.Context) error {
	resync := control.NewLoop("resync", w.settings.Reconcile, w.deps.Log, w.resync, control.LoopSettings{
		Backoff: w.backoff(), Failing: "cannot look at what is watched, tries again",
	})
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _ = resync.Run(ctx) })
	for _, e := range w.engines.all() {
		all.Go(func() {
			_ = e.queue.Run(ctx, maxWorkers, func(ctx context.Context, a attempt) (queue.Result, error) { return w.work(ctx, e, a) })
		})
	}
	return nil
}

// work decides about an attempt, if it is watched and on that engine.
func (w *watcher) work(ctx context.Context, e *engine, a attempt) (queue.Result, error) {
	m, err := w.findTracked(ctx, a)
	if err != nil || m == nil || w.engines.of(m.doc.Launched) != e {
		return queue.Result{}, err
	}
	recheckAt, err := w.reconcile(ctx, e, a, m)
	if err != nil {
		err = errors.Join(err, w.reportOutage(ctx, a, m, err))
	}
	r := queue.Result{Rest: m.throttle()}
	if !recheckAt.IsZero() {
		r.RequeueAfter = cmp.Or(recheckAt.Sub(w.deps.Clock()), -1)
	}
	return r, err
}

// throttle returns the pause before an attempt is decided about again. It grows with the number of pods, because a change of each pod is a
// reason to check all of them.
func (m *tracked) throttle() time.Duration {
	const few, each = 50, 200 * time.Microsecond
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.lastSeen.Pods); n > few {
		return time.Duration(n) * each
	}
	return 0
}

// backoff is the pause after failures in a row: at most 32 times that after the first, so that a recovery is found in time.
func (w *watcher) backoff() control.Backoff {
	return control.Backoff{First: w.settings.Retry, Max: w.settings.maxRetry()}
}

// staleRounds is how many rounds of reconcile may pass without a snapshot of an attempt before it is read live: the watch delivers each
// attempt more often.
const staleRounds = 3

// resync queues every watched attempt, whichever process received its launch. It invalidates the snapshot of an attempt about which the
// watch was silent.
func (w *watcher) resync(ctx context.Context) (time.Duration, error) {
	stale := w.deps.Clock().Add(-staleRounds * w.settings.Reconcile)
	for d, err := range store.All[watchedAttempt](ctx, w.deps.Store, store.KindWatch, livePrefix) {
		if err != nil {
			return 0, err
		}
		a := attempt{d.Value.Launched.Run, d.Value.Launched.Attempt}
		w.track(a, d.Value).invalidate(stale)
		w.engines.of(d.Value.Launched).queue.Add(a)
	}
	return 0, nil
}

// reconcile observes the state of an attempt, decides, and publishes the decision. It returns when to decide again without a change.
func (w *watcher) reconcile(ctx context.Context, e *engine, a attempt, m *tracked) (recheckAt time.Time, err error) {
	p, decided, err := w.pendingEnd(ctx, m.doc.Launched)
	if err != nil {
		return time.Time{}, err
	}
	if decided {
		return w.awaitSteps(ctx, a, m, p)
	}
	s, err := w.observe(ctx, e, a, m)
	if err != nil {
		return time.Time{}, err
	}
	unshared := w.sharePeers(ctx, e, s.Seen)
	v := verdict.Decide(s)
	if v.Phase == event.PhaseFinished {
		s.Occupancy = w.observeNodes(ctx, e)
	}
	events := verdict.EventsFor(m.doc.Launched, v, s)
	if v.Phase == event.PhaseFinished {
		if recheckAt, err := w.awaitLogs(ctx, m, s); err != nil || !recheckAt.IsZero() {
			return recheckAt, err
		}
		return w.end(ctx, e, a, m, s, events)
	}
	if len(events) > 0 && (events[0].Head().ID != m.lastReported || !m.doc.Outage.IsZero()) {
		if err := w.deps.Bus.Publish(ctx, verdict.AfterOutage(events, m.doc.Outage)...); err != nil {
			return time.Time{}, err
		}
		m.lastReported = events[0].Head().ID
	}
	return v.RecheckAt, errors.Join(unshared, w.endOutage(ctx, a, m))
}

// observe returns the state of an attempt. Only a live read can find that the attempt is gone, or that an engine which is away answers
// nevertheless.
func (w *watcher) observe(ctx context.Context, e *engine, a attempt, m *tracked) (s verdict.Observation, err error) {
	l, now := m.doc.Launched, w.deps.Clock()
	s = verdict.Observation{Now: now, Grace: w.settings.Grace, ReadyDeadline: l.PendingDeadline}
	s.PendingDeadline = cmp.Or(l.PendingDeadline, w.settings.PendingDeadline)
	var heard bool
	since, away := e.isAway()
	if s.Seen, s.LastSeen, heard = m.heard(l.UID); !heard || away {
		s.Seen, err = e.Cluster.Observe(ctx, m.doc.ref())
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			err = wrapError(err, "look at job %s", l.Job)
			if away {
				err = &outageError{err, since}
			}
			return s, err
		}
		s.GoneSince = m.recordObservation(s.Seen, now)
	}
	s.MissingSince = m.missing()
	if s.Canceled, err = store.Canceled(ctx, w.deps.Store, a.run); err != nil {
		return s, err
	}
	return s, w.observeNodeWait(ctx, e, a, m, &s)
}

// observeNodeWait adds to an observation, if the attempt lacks room for a pod, where the pods of other runs are and how long it waits for
// them. It stores the beginning and the end of that wait.
func (w *watcher) observeNodeWait(ctx context.Context, e *engine, a attempt, m *tracked, s *verdict.Observation) (err error) {
	needs := verdict.NeedsRoom(*s)
	if !needs && m.doc.NodeWait.Since.IsZero() {
		return nil
	}
	began := s.Now
	if needs {
		if s.Occupancy, err = e.Cluster.Occupancy(ctx); err != nil {
			return wrapError(err, "look where the pods of other runs are")
		}
		if began = verdict.LacksRoomSince(*s); m.freeAt.After(began) {
			began = m.freeAt
		}
	}
	waits := needs && verdict.WaitsForOthers(*s)
	if !waits {
		m.freeAt = s.Now
	}
	s.NodeWait, err = w.docs.updateNodeWait(ctx, a, waits, began, s.Now)
	m.doc.NodeWait = s.NodeWait
	return err
}

// observeNodes returns the nodes of the cluster, for the types of the machines that an attempt used. An end waits for no answer: without
// one the types are those that the pods asked for.
func (w *watcher) observeNodes(ctx context.Context, e *engine) cluster.Occupancy {
	all, err := e.Cluster.Occupancy(ctx)
	if err != nil {
		w.deps.Log.Debug("the types of the nodes are not known now", zap.Error(err))
		return cluster.Occupancy{}
	}
	return cluster.Occupancy{Nodes: all.Nodes}
}

// heard returns the last snapshot of the watch, if it shows the Job with that UID, and the last in which the attempt had a job or pods.
func (m *tracked) heard(uid string) (seen, lastSeen cluster.Snapshot, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil || m.seen.Job == nil || uid != "" && string(m.seen.Job.UID) != uid {
		return cluster.Snapshot{}, m.lastSeen, false
	}
	return *m.seen, m.lastSeen, true
}

// finish stores how an attempt ended, publishes the end, and ends the watch. If another process stored the end first, finish publishes that
// one. It publishes nothing if the run shows the end already: then only the document of the attempt was left, or came back with an older
// store.
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

// track starts to watch an attempt, and returns its state.
func (w *watcher) track(a attempt, d watchedAttempt) *tracked {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attempts[a] == nil {
		w.attempts[a] = &tracked{doc: d}
	}
	return w.attempts[a]
}

// findTracked returns the state of an attempt, nil if it is not watched. For an attempt whose launch another process received, it reads the
// document.
func (w *watcher) findTracked(ctx context.Context, a attempt) (*tracked, error) {
	if m := w.lookup(a); m != nil {
		return m, nil
	}
	d, _, watched, err := store.Find[watchedAttempt](ctx, w.deps.Store, store.KindWatch, a.key(livePrefix))
	if err != nil || !watched {
		return nil, wrapError(err, "look whether %s is watched", a.key(""))
	}
	return w.track(a, d), nil
}

func (w *watcher) lookup(a attempt) *tracked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attempts[a]
}

// remember stores the last snapshot in which the locked attempt had a job or pods.
func (m *tracked) remember(seen cluster.Snapshot, now time.Time) {
	switch missing := verdict.MissesJob(m.lastSeen, seen); {
	case !missing:
		m.missingSince = time.Time{}
	case m.missingSince.IsZero():
		m.missingSince = now
	}
	m.lastSeen, m.goneSince = verdict.MergeLastSeen(m.lastSeen, seen), time.Time{}
}

// missing returns since when the attempt misses one of its jobs, zero if it has all.
func (m *tracked) missing() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.missingSince
}

// recordObservation stores the snapshot of a live read, and returns since when the attempt is gone.
func (m *tracked) recordObservation(seen cluster.Snapshot, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteSteps(seen)
	switch {
	case seen.Job != nil || len(seen.Pods) > 0:
		m.remember(seen, now)
	case m.goneSince.IsZero():
		m.goneSince = now
	}
	return m.goneSince
}

// invalidate makes the next observation a live read if the watch was silent since stale.
func (m *tracked) invalidate(stale time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.observedAt.After(stale) {
		m.seen = nil
	}
}
