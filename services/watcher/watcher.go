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

// maxLooks is how many attempts are looked at and decided about at a time.
const maxLooks = 16

// watcher looks at attempts, and says what it decides about them.
type watcher struct {
	settings Settings
	deps     Deps
	desk     desk
	agenda   *agenda

	mu    sync.Mutex
	known map[attempt]*memory
}

// memory is what this process remembers of an attempt. All of it can be found
// again, but for what was seen last of one that is gone.
type memory struct {
	watched Watched
	seen    *cluster.Seen // as heard; nil: look
	heard   time.Time     // when that was
	before  cluster.Seen  // the last time that something of it was there
	gone    time.Time     // since when nothing is, by live looks
	told    string        // ID of the last status that was said
	failed  int           // looks in a row that failed
	held    time.Time     // since when its end is not said because a log is being read; zero where it is not
}

func newWatcher(s Settings, d Deps) *watcher {
	return &watcher{settings: s, deps: d, desk: desk{d.Store}, agenda: newAgenda(), known: make(map[attempt]*memory)}
}

// launched hears of an attempt that is to be watched. Of one that has ended it
// says the end again unless the run has it: the topic may have lost it.
func (w *watcher) launched(ctx context.Context, ev event.Launched) ([]event.Event, error) {
	a := attempt{ev.Run, ev.Attempt}
	known, over, err := w.desk.recorded(ctx, a)
	if err != nil || over {
		return nil, err
	}
	ended, err := w.desk.open(ctx, ev)
	if err != nil || ended != nil && !known {
		return nil, err
	}
	if ended != nil {
		return ended.events(), nil
	}
	w.remember(a, Watched{Launched: ev})
	w.agenda.now(a)
	return nil, nil
}

// commanded hears that somebody wants something of a run: its mark is set, so
// it is enough to look.
func (w *watcher) commanded(_ context.Context, c event.Command) ([]event.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.known {
		if a.run == c.Run {
			w.agenda.now(a)
		}
	}
	return nil, nil
}

// listen hears what changes in the cluster. Where that fails it begins anew,
// said once, with growing waits.
func (w *watcher) listen(ctx context.Context) error {
	for tries := 1; ; tries++ {
		began := w.deps.Clock()
		err := w.deps.Cluster.Watch(ctx, w.heard)
		if w.deps.Clock().Sub(began) > w.settings.Reconcile {
			tries = 1
		}
		if tries == 1 && ctx.Err() == nil {
			w.deps.Log.Warn("the watch over the cluster broke, begins anew", zap.Error(err))
		}
		if !sleep(ctx, w.patience(tries)) {
			break
		}
	}
	return nil
}

// heard notes what was seen of an attempt, for who decides about it.
func (w *watcher) heard(s cluster.Seen) {
	a := attempt{s.Ref.Run, s.Ref.Attempt}
	w.mu.Lock()
	if m, ok := w.known[a]; ok {
		m.seen, m.heard = &s, w.deps.Clock()
		if s.Job != nil {
			m.before, m.gone = latest(m.before, s), time.Time{}
		}
	}
	w.mu.Unlock()
	w.agenda.now(a)
}

// run decides about attempts as they come up, and looks at all of them from
// time to time.
func (w *watcher) run(ctx context.Context) error {
	var looks sync.WaitGroup
	defer looks.Wait()
	for range maxLooks {
		looks.Go(func() { w.work(ctx) })
	}
	for tries := 0; ; {
		wait := w.settings.Reconcile
		if err := w.reconcile(ctx); err != nil && ctx.Err() == nil {
			if tries++; tries == 1 {
				w.deps.Log.Warn("cannot look at what is watched, tries again", zap.Error(err))
			}
			wait = w.patience(tries)
		} else {
			tries = 0
		}
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

// work decides about one attempt after the other.
func (w *watcher) work(ctx context.Context) {
	for {
		a, ok := w.agenda.next(ctx)
		if !ok {
			return
		}
		again, err := w.look(ctx, a)
		if err != nil && ctx.Err() == nil {
			again = w.deps.Clock().Add(w.patience(w.failedAgain(a, err)))
		}
		if rest := w.rest(a); rest > 0 {
			time.AfterFunc(rest, func() { w.agenda.done(a, again, w.deps.Clock()) })
			continue
		}
		w.agenda.done(a, again, w.deps.Clock())
	}
}

// rest is for how long an attempt is not looked at after it was: the longer the
// more pods it has, each of whose changes is a reason to look at all of them.
func (w *watcher) rest(a attempt) time.Duration {
	const few, each = 50, 200 * time.Microsecond
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.known[a]; ok && len(m.before.Pods) > few {
		return time.Duration(len(m.before.Pods)) * each
	}
	return 0
}

// failedAgain counts the looks at an attempt that failed in a row, and says so
// once.
func (w *watcher) failedAgain(a attempt, err error) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	tries := 1
	if m, ok := w.known[a]; ok {
		m.failed++
		tries = m.failed
	}
	if tries == 1 {
		w.deps.Log.Warn("cannot look, tries again", zap.String("run", a.run), zap.Int("attempt", a.number), zap.Error(err))
	}
	return tries
}

// patience is how long to wait after so many failures in a row: at most 32 times
// as long as after the first, so that nobody waits longer once all is back.
func (w *watcher) patience(tries int) time.Duration {
	return min(w.settings.Retry<<min(tries-1, 5), w.settings.Reconcile)
}

// silence is for how many rounds of reconcile nothing may be heard of an attempt
// before it is looked at live: all that is there is heard of again more often.
const silence = 3

// reconcile has every watched attempt decided about, whoever launched it, and
// looked at live where nothing was heard of it lately.
func (w *watcher) reconcile(ctx context.Context) error {
	return w.desk.all(ctx, func(d Watched) {
		a := attempt{d.Launched.Run, d.Launched.Attempt}
		w.remember(a, d)
		w.doubtSeen(a)
		w.agenda.now(a)
	})
}

// look gathers what is known of an attempt, decides, and says what follows. It
// returns when to look again though nothing changes.
func (w *watcher) look(ctx context.Context, a attempt) (again time.Time, err error) {
	m, err := w.recall(ctx, a)
	if err != nil || m == nil {
		return time.Time{}, err
	}
	s, err := w.gather(ctx, a, *m)
	if err != nil {
		return time.Time{}, err
	}
	v := Decide(s)
	say := Tell(m.watched.Launched, v, s)
	if v.Phase == event.PhaseFinished {
		if again, err := w.awaitLogs(ctx, a, s); err != nil || !again.IsZero() {
			return again, err
		}
		return time.Time{}, w.end(ctx, a, say)
	}
	if len(say) > 0 && say[0].Head().ID != m.told {
		if err := w.deps.Bus.Publish(ctx, say...); err != nil {
			return time.Time{}, err
		}
		w.told(a, say[0].Head().ID)
	}
	w.succeeded(a)
	return v.Again, nil
}

// gather returns what is known of an attempt. That nothing of it is there is
// believed of a live look only.
func (w *watcher) gather(ctx context.Context, a attempt, m memory) (Sight, error) {
	l, now := m.watched.Launched, w.deps.Clock()
	s := Sight{Before: m.before, Now: now, Grace: w.settings.Grace, PendingDeadline: cmp.Or(l.PendingDeadline, w.settings.PendingDeadline), ReadyDeadline: l.PendingDeadline}
	if m.seen != nil && m.seen.Job != nil && (l.UID == "" || string(m.seen.Job.UID) == l.UID) {
		s.Seen = *m.seen
	} else {
		seen, err := w.deps.Cluster.Observe(ctx, m.watched.ref())
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return s, wrap(err, "look at job %s", l.Job)
		}
		s.Seen = seen
		s.Gone = w.note(a, seen, now)
	}
	canceled, err := w.desk.canceled(ctx, a.run)
	s.Canceled = canceled
	return s, err
}

// end writes down how an attempt ended, says it, and watches it no longer.
// Should another process have been faster, what that one wrote is said. Nothing is
// said of an attempt whose end the run has: only its document was left, or came
// back with a store that was older.
func (w *watcher) end(ctx context.Context, a attempt, say []event.Event) error {
	_, over, err := w.desk.recorded(ctx, a)
	if err != nil {
		return err
	}
	if !over {
		e, err := w.desk.settle(ctx, a, endedBy(say))
		if err != nil {
			return err
		}
		if err := w.deps.Bus.Publish(ctx, e.events()...); err != nil {
			return err
		}
	}
	if err := w.desk.close(ctx, a); err != nil {
		return err
	}
	w.mu.Lock()
	delete(w.known, a)
	w.mu.Unlock()
	w.deps.Log.Info("ended", zap.String("run", a.run), zap.Int("attempt", a.number))
	return nil
}

// remember notes that an attempt is watched.
func (w *watcher) remember(a attempt, d Watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[a] == nil {
		w.known[a] = &memory{watched: d}
	}
}

// recall returns what is remembered of an attempt, nil of one that is not
// watched. One that another process has heard of is looked up.
func (w *watcher) recall(ctx context.Context, a attempt) (*memory, error) {
	if m, ok := w.memory(a); ok {
		return &m, nil
	}
	d, err := w.desk.watched(ctx, a)
	if err != nil || d == nil {
		return nil, err
	}
	w.remember(a, *d)
	return &memory{watched: *d}, nil
}

func (w *watcher) memory(a attempt) (memory, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.known[a]
	if !ok {
		return memory{}, false
	}
	return *m, true
}

// note keeps what a live look saw, and returns since when nothing is there.
func (w *watcher) note(a attempt, seen cluster.Seen, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.known[a]
	switch {
	case !ok:
		return time.Time{}
	case seen.Job != nil || len(seen.Pods) > 0:
		m.before, m.gone = latest(m.before, seen), time.Time{}
	case m.gone.IsZero():
		m.gone = now
	}
	return m.gone
}

func (w *watcher) told(a attempt, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.known[a]; ok {
		m.told = id
	}
}

func (w *watcher) succeeded(a attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.known[a]; ok {
		m.failed = 0
	}
}

func (w *watcher) doubtSeen(a attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.known[a]; ok && w.deps.Clock().Sub(m.heard) >= silence*w.settings.Reconcile {
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
