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

// openPrefix is the prefix of the keys of documents about logs that are not shipped to
// their end.
const openPrefix = "open/"

// follower follows the logs of all containers that it sees.
type follower struct {
	settings Settings
	deps     Deps
	slots    chan struct{} // holds one for each log that is read

	mu   sync.Mutex
	logs map[string]*followedLog // by UID of the pod
	wg   sync.WaitGroup
}

// followedLog is a container that is followed.
type followedLog struct {
	target  Target
	changed chan struct{} // holds one

	mu             sync.Mutex
	started, ended bool
	endedSince     time.Time // when it was first seen that it had ended

	announced bool // that it waits for a newer release; of the one who follows

	podGone, shipped bool // the pod is; its log is shipped: both belong to the follower's lock
}

func newFollower(s Settings, d Deps) *follower {
	return &follower{settings: s, deps: d, slots: make(chan struct{}, s.MaxLogs), logs: map[string]*followedLog{}}
}

// run follows until ctx is done.
func (f *follower) run(ctx context.Context) {
	defer f.wg.Wait()
	f.wg.Go(func() { f.reconcileLoop(ctx) })
	for tries := 1; ; tries++ {
		err := f.deps.Cluster.Watch(ctx, func(s cluster.Snapshot) { f.onObserved(ctx, s) })
		if tries == 1 && ctx.Err() == nil {
			f.deps.Log.Warn("the watch over the cluster broke, begins anew", zap.Error(err))
		}
		if !sleep(ctx, f.backoff(tries)) {
			return
		}
	}
}

// backoff is how long to wait after so many failures in a row.
func (f *follower) backoff(tries int) time.Duration {
	return min(f.settings.RetryBackoff<<min(tries-1, 5), f.settings.Reconcile) // once all is back, nobody waits longer
}

// onObserved begins to follow what is new of an attempt, and tells those who follow
// it how it stands.
func (f *follower) onObserved(ctx context.Context, s cluster.Snapshot) {
	present := map[string]bool{}
	for _, t := range Targets(s) {
		present[t.UID] = true
		f.track(ctx, t)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, t := range f.logs { // those that are gone write no more
		if t.target.Ref.Run == s.Ref.Run && t.target.Ref.Attempt == s.Ref.Attempt && !present[uid] {
			t.podGone = true
			t.update(true, true, f.deps.Clock())
			f.forget(t)
		}
	}
}

func (f *follower) track(ctx context.Context, s TargetState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.logs[s.UID]
	if !ok {
		t = &followedLog{target: s.Target, changed: make(chan struct{}, 1)}
		f.logs[s.UID] = t
		f.wg.Go(func() { f.follow(ctx, t) })
	}
	t.update(s.Started, s.Ended, f.deps.Clock())
}

func (t *followedLog) update(started, ended bool, now time.Time) {
	t.mu.Lock()
	t.started, t.ended = t.started || started, t.ended || ended
	if t.ended && t.endedSince.IsZero() {
		t.endedSince = now
	}
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

func (t *followedLog) state() (started, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.started, t.ended
}

// endedAt is when it was first seen that the container had ended; zero where it was not.
func (t *followedLog) endedAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.endedSince
}

// forget forgets a container whose pod is gone and whose log is shipped. Until then
// it stays known, so that it is not begun again.
func (f *follower) forget(t *followedLog) {
	if t.podGone && t.shipped {
		delete(f.logs, t.target.UID)
	}
}

// follow ships the log of one container to its end. What fails is tried again,
// with growing waits.
func (f *follower) follow(ctx context.Context, t *followedLog) {
	for tries := 0; ; {
		shipped, err := f.followOnce(ctx, t)
		if shipped || ctx.Err() != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			t.shipped = shipped
			f.forget(t)
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
		case <-time.After(f.backoff(tries)):
		}
	}
}

// followOnce reads what there is, and reports whether that was all.
func (f *follower) followOnce(ctx context.Context, t *followedLog) (shipped bool, err error) {
	started, ended := t.state()
	if !started && !ended {
		return false, nil
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return false, nil
	}
	p, version, err := f.loadProgress(ctx, t.target)
	if err != nil || p == nil {
		return p == nil && err == nil, err
	}
	r, err := f.newLogReader(ctx, t, *p, version)
	if err != nil {
		return false, err
	}
	err = r.pass(ctx, ended)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		r.pending.Lines.drop(0, "the pod was gone before its log was read to the end")
	case err != nil || !ended:
		return false, errors.Join(err, r.save(ctx))
	}
	if err := r.shipTail(ctx); err != nil {
		return false, err // what was written down is from before the end
	}
	if err := r.finish(ctx); err != nil {
		return false, err
	}
	return true, nil
}

// loadProgress returns how far the log of a target is shipped, nil where it is to its
// end. A log of which nothing is known is begun.
func (f *follower) loadProgress(ctx context.Context, t Target) (*Progress, int64, error) {
	if _, err := f.deps.Store.Doc(ctx, store.KindLogProgress, store.LogShippedKey(t.UID)); !errors.Is(err, store.ErrNotFound) {
		return nil, 0, err
	}
	p, version, err := store.Get[Progress](ctx, f.deps.Store, store.KindLogProgress, openPrefix+t.UID)
	if errors.Is(err, store.ErrNotFound) {
		p, version = Progress{Target: t}, 1
		err = store.Create(ctx, f.deps.Store, store.KindLogProgress, openPrefix+t.UID, p)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look how far the log of pod %s is shipped: %w", t.Pod, err)
	}
	return &p, version, nil
}

// reconcileLoop ends, from time to time, what was begun by whoever followed
// before, and whose pod nobody sees any more.
func (f *follower) reconcileLoop(ctx context.Context) {
	for tries := 0; ; {
		wait := f.settings.Reconcile
		if err := f.reconcile(ctx); err != nil && ctx.Err() == nil {
			if tries++; tries == 1 {
				f.deps.Log.Warn("cannot look at which logs were begun, tries again", zap.Error(err))
			}
			wait = f.backoff(tries)
		} else {
			tries = 0
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

func (f *follower) reconcile(ctx context.Context) error {
	if err := f.deferred().ForEach(ctx, f.isShipped); err != nil {
		return err
	}
	const page = 100
	for after := openPrefix; ; {
		docs, err := f.deps.Store.Docs(ctx, store.KindLogProgress, after, page)
		if err != nil {
			return fmt.Errorf("look which logs were begun: %w", err)
		}
		for _, doc := range docs {
			if !strings.HasPrefix(doc.Key, openPrefix) {
				return nil
			}
			after = doc.Key
			if err := f.resumeLog(ctx, doc); err != nil {
				return err
			}
		}
		if len(docs) < page {
			return nil
		}
	}
}

// resumeLog has a target followed that was begun, unless it is: to its end, where
// its pod is gone.
func (f *follower) resumeLog(ctx context.Context, doc store.Doc) error {
	var p Progress
	if err := json.Unmarshal(doc.Value, &p); err != nil {
		return fmt.Errorf("read %s: %w", doc.Key, err)
	}
	t := p.Target
	f.mu.Lock()
	_, tracked := f.logs[t.UID]
	f.mu.Unlock()
	if tracked {
		return nil
	}
	seen, err := f.deps.Cluster.Observe(ctx, cluster.Ref{Run: t.Ref.Run, Attempt: t.Ref.Attempt, Scope: t.Ref.Scope, Job: t.Ref.Job})
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return fmt.Errorf("look for pod %s: %w", t.Pod, err)
	}
	for _, s := range Targets(seen) {
		if s.UID == t.UID {
			f.track(ctx, s)
			return nil
		}
	}
	f.track(ctx, TargetState{Target: t, Started: true, Ended: true})
	return nil
}
