package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// open is the prefix of the keys of documents about logs that are not shipped to
// their end.
const open = "open/"

// follower follows the logs of all containers that it sees.
type follower struct {
	settings Settings
	deps     Deps
	room     chan struct{} // holds one for each log that is read

	mu     sync.Mutex
	known  map[string]*trail // by UID of the pod
	trails sync.WaitGroup
}

// trail is a container that is followed.
type trail struct {
	target  Target
	changed chan struct{} // holds one

	mu           sync.Mutex
	began, ended bool
	since        time.Time // when it was first seen that it had ended

	announced bool // that it waits for a newer release; of the one who follows

	gone, over bool // the pod is; its log is shipped: both belong to the follower's lock
}

func newFollower(s Settings, d Deps) *follower {
	return &follower{settings: s, deps: d, room: make(chan struct{}, s.Most), known: map[string]*trail{}}
}

// run follows until ctx is done.
func (f *follower) run(ctx context.Context) {
	defer f.trails.Wait()
	f.trails.Go(func() { f.reconcileAll(ctx) })
	for tries := 1; ; tries++ {
		err := f.deps.Cluster.Watch(ctx, func(s cluster.Seen) { f.heard(ctx, s) })
		if tries == 1 && ctx.Err() == nil {
			f.deps.Log.Warn("the watch over the cluster broke, begins anew", zap.Error(err))
		}
		if !sleep(ctx, f.patience(tries)) {
			return
		}
	}
}

// patience is how long to wait after so many failures in a row.
func (f *follower) patience(tries int) time.Duration {
	return min(f.settings.Retry<<min(tries-1, 5), f.settings.Reconcile) // once all is back, nobody waits longer
}

// heard begins to follow what is new of an attempt, and tells those who follow
// it how it stands.
func (f *follower) heard(ctx context.Context, s cluster.Seen) {
	there := map[string]bool{}
	for _, t := range Targets(s) {
		there[t.UID] = true
		f.see(ctx, t)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, t := range f.known { // those that are gone write no more
		if t.target.Ref.Run == s.Ref.Run && t.target.Ref.Attempt == s.Ref.Attempt && !there[uid] {
			t.gone = true
			t.tell(true, true, f.deps.Clock())
			f.drop(t)
		}
	}
}

func (f *follower) see(ctx context.Context, s Sighting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.known[s.UID]
	if !ok {
		t = &trail{target: s.Target, changed: make(chan struct{}, 1)}
		f.known[s.UID] = t
		f.trails.Go(func() { f.follow(ctx, t) })
	}
	t.tell(s.Began, s.Ended, f.deps.Clock())
}

func (t *trail) tell(began, ended bool, now time.Time) {
	t.mu.Lock()
	t.began, t.ended = t.began || began, t.ended || ended
	if t.ended && t.since.IsZero() {
		t.since = now
	}
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

func (t *trail) state() (began, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began, t.ended
}

// endedAt is when it was first seen that the container had ended; zero where it was not.
func (t *trail) endedAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.since
}

// drop forgets a container whose pod is gone and whose log is shipped. Until then
// it stays known, so that it is not begun again.
func (f *follower) drop(t *trail) {
	if t.gone && t.over {
		delete(f.known, t.target.UID)
	}
}

// follow ships the log of one container to its end. What fails is tried again,
// with growing waits.
func (f *follower) follow(ctx context.Context, t *trail) {
	for tries := 0; ; {
		over, err := f.once(ctx, t)
		if over || ctx.Err() != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			t.over = over
			f.drop(t)
			return
		}
		tries++
		if err == nil {
			tries = 1
		} else if tries == 1 {
			f.deps.Log.Warn("cannot follow a log, tries again", zap.String("run", t.target.Ref.Run), zap.String("pod", t.target.Pod), zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		case <-time.After(f.patience(tries)):
		}
	}
}

// once reads what there is, and reports whether that was all.
func (f *follower) once(ctx context.Context, t *trail) (over bool, err error) {
	began, ended := t.state()
	if !began && !ended {
		return false, nil
	}
	select {
	case f.room <- struct{}{}:
		defer func() { <-f.room }()
	case <-ctx.Done():
		return false, nil
	}
	p, version, err := f.place(ctx, t.target)
	if err != nil || p == nil {
		return p == nil && err == nil, err
	}
	r, err := f.reading(ctx, t, *p, version)
	if err != nil {
		return false, err
	}
	err = r.pass(ctx, ended)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		r.next.Lines.drop(0, "the pod was gone before its log was read to the end")
	case err != nil || !ended:
		return false, errors.Join(err, r.save(ctx))
	}
	if err := r.end(ctx); err != nil {
		return false, err // what was written down is from before the end
	}
	if err := r.finish(ctx); err != nil {
		return false, err
	}
	return true, nil
}

// place returns how far the log of a target is shipped, nil where it is to its
// end. A log of which nothing is known is begun.
func (f *follower) place(ctx context.Context, t Target) (*Place, int64, error) {
	if _, err := f.deps.Store.Doc(ctx, store.KindFollowed, store.Followed(t.UID)); !errors.Is(err, store.ErrNotFound) {
		return nil, 0, err
	}
	p, version, err := store.Get[Place](ctx, f.deps.Store, store.KindFollowed, open+t.UID)
	if errors.Is(err, store.ErrNotFound) {
		p, version = Place{Target: t}, 1
		err = store.Create(ctx, f.deps.Store, store.KindFollowed, open+t.UID, p)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look how far the log of pod %s is shipped: %w", t.Pod, err)
	}
	return &p, version, nil
}

// reconcileAll ends, from time to time, what was begun by whoever followed
// before, and whose pod nobody sees any more.
func (f *follower) reconcileAll(ctx context.Context) {
	for tries := 0; ; {
		wait := f.settings.Reconcile
		if err := f.reconcile(ctx); err != nil && ctx.Err() == nil {
			if tries++; tries == 1 {
				f.deps.Log.Warn("cannot look at which logs were begun, tries again", zap.Error(err))
			}
			wait = f.patience(tries)
		} else {
			tries = 0
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

func (f *follower) reconcile(ctx context.Context) error {
	if err := f.unread().Each(ctx, f.followed); err != nil {
		return err
	}
	const page = 100
	for after := open; ; {
		docs, err := f.deps.Store.Docs(ctx, store.KindFollowed, after, page)
		if err != nil {
			return fmt.Errorf("look which logs were begun: %w", err)
		}
		for _, doc := range docs {
			if !strings.HasPrefix(doc.Key, open) {
				return nil
			}
			after = doc.Key
			if err := f.lookFor(ctx, doc); err != nil {
				return err
			}
		}
		if len(docs) < page {
			return nil
		}
	}
}

// lookFor has a target followed that was begun, unless it is: to its end, where
// its pod is gone.
func (f *follower) lookFor(ctx context.Context, doc store.Doc) error {
	var p Place
	if err := json.Unmarshal(doc.Value, &p); err != nil {
		return fmt.Errorf("read %s: %w", doc.Key, err)
	}
	t := p.Target
	f.mu.Lock()
	_, known := f.known[t.UID]
	f.mu.Unlock()
	if known {
		return nil
	}
	seen, err := f.deps.Cluster.Observe(ctx, cluster.Ref{Run: t.Ref.Run, Attempt: t.Ref.Attempt, Scope: t.Ref.Scope, Job: t.Ref.Job})
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return fmt.Errorf("look for pod %s: %w", t.Pod, err)
	}
	for _, s := range Targets(seen) {
		if s.UID == t.UID {
			f.see(ctx, s)
			return nil
		}
	}
	f.see(ctx, Sighting{Target: t, Began: true, Ended: true})
	return nil
}
