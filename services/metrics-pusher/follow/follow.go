package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// openPrefix is the prefix of the keys of documents about logs that are not shipped to
// their end.
const openPrefix = "open/"

// leaseName is the name of the lease under which logs of the default engine are followed. Those of others extend it.
const leaseName = "follow"

// follower follows the logs of all containers in the snapshots that it gets.
type follower struct {
	settings Settings
	deps     Deps
	slots    chan struct{} // has an element for each log that is being read

	mu   sync.Mutex
	logs map[string]*followedLog // by UID of the pod
	wg   sync.WaitGroup
}

// followedLog is a container whose log is followed.
type followedLog struct {
	target target
	loop   *control.Loop // reads the log until it is shipped

	mu             sync.Mutex
	started, ended bool
	endedSince     time.Time // when a snapshot first showed that it had ended

	announced bool // the status that it waits for a newer release is published; only the loop uses it

	podGone, shipped bool // the pod is gone, the log is shipped: under the follower's lock
}

func newFollower(s Settings, d Deps) *follower {
	return &follower{settings: s, deps: d, slots: make(chan struct{}, s.MaxLogs), logs: map[string]*followedLog{}}
}

// run follows logs until ctx is done. It needs no fence: progress is written by compare-and-set, and an event that is published twice
// counts once.
func (f *follower) run(ctx context.Context, _ int64) error {
	defer f.wg.Wait()
	reconcile := control.NewLoop("reconcile", f.settings.Reconcile, f.deps.Log, f.reconcile, control.LoopSettings{
		Backoff: f.backoff(), Failing: "cannot look at which logs were begun, tries again",
	})
	f.wg.Go(func() { _ = reconcile.Run(ctx) })
	watch := func(ctx context.Context) (time.Duration, error) {
		return 0, f.deps.Cluster.Watch(ctx, func(s cluster.Snapshot) { f.onObserved(ctx, s) })
	}
	return control.NewLoop("watch", f.settings.RetryBackoff, f.deps.Log, watch, control.LoopSettings{
		Backoff: f.backoff(), Steady: f.settings.Reconcile, Failing: "the watch over the cluster broke, begins anew",
	}).Run(ctx)
}

// backoff is how long to wait after failures in a row.
func (f *follower) backoff() control.Backoff {
	return control.Backoff{First: f.settings.RetryBackoff, Max: min(32*f.settings.RetryBackoff, f.settings.Reconcile)}
}

// onObserved starts to follow the new containers of an attempt, and updates the other ones.
func (f *follower) onObserved(ctx context.Context, s cluster.Snapshot) {
	present := map[string]bool{}
	for _, t := range targetsOf(s) {
		present[t.UID] = true
		f.track(ctx, t)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, t := range f.logs { // a pod that is gone writes no more
		if t.target.Ref.Run == s.Ref.Run && t.target.Ref.Attempt == s.Ref.Attempt && !present[uid] {
			t.podGone = true
			t.update(true, true, f.deps.Clock())
			f.forget(t)
		}
	}
}

func (f *follower) track(ctx context.Context, s targetState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.logs[s.UID]
	if !ok {
		s.Engine = f.deps.Engine
		followed, stop := context.WithCancel(ctx)
		t = &followedLog{target: s.target}
		t.loop = f.newLoop(t, stop)
		f.logs[s.UID] = t
		f.wg.Go(func() { _ = t.loop.Run(followed) })
	}
	t.update(s.Started, s.Ended, f.deps.Clock())
}

// newLoop returns the loop that ships the log of one container, and calls stop once the
// log is shipped to its end.
func (f *follower) newLoop(t *followedLog, stop context.CancelFunc) *control.Loop {
	log := f.deps.Log.With(zap.String("run", t.target.Ref.Run), zap.String("pod", t.target.Pod))
	follow := func(ctx context.Context) (time.Duration, error) {
		shipped, err := f.followOnce(ctx, t)
		if shipped {
			defer stop()
			f.mu.Lock()
			defer f.mu.Unlock()
			t.shipped = true
			f.forget(t)
		}
		return 0, err
	}
	return control.NewLoop("follow", f.settings.RetryBackoff, log, follow, control.LoopSettings{
		Backoff: f.backoff(), Eager: true, Failing: "cannot follow a log, tries again",
	})
}

func (t *followedLog) update(started, ended bool, now time.Time) {
	t.mu.Lock()
	t.started, t.ended = t.started || started, t.ended || ended
	if t.ended && t.endedSince.IsZero() {
		t.endedSince = now
	}
	t.mu.Unlock()
	t.loop.Wake()
}

func (t *followedLog) state() (started, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.started, t.ended
}

// endedAt returns when a snapshot first showed that the container had ended; zero if none did.
func (t *followedLog) endedAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.endedSince
}

// forget drops a container whose pod is gone and whose log is shipped. Dropped earlier, its log would be started again.
func (f *follower) forget(t *followedLog) {
	if t.podGone && t.shipped {
		delete(f.logs, t.target.UID)
	}
}

// followOnce ships the new lines, and reports whether the log is shipped to its end.
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
		if r.pending.Block != 0 {
			r.pending.Samples.drop(1, lostBlock)
		}
	case err != nil || !ended:
		return false, errors.Join(err, r.save(ctx))
	}
	if err := r.shipTail(ctx); err != nil {
		return false, err // the stored progress is from before the end
	}
	if err := r.finish(ctx); err != nil {
		return false, err
	}
	return true, nil
}

// loadProgress returns how far the log of a target is shipped, nil if it is shipped to its end. It stores the progress of a new log.
func (f *follower) loadProgress(ctx context.Context, t target) (*progress, int64, error) {
	if _, err := f.deps.Store.Doc(ctx, store.KindLogProgress, store.LogShippedKey(t.UID)); !errors.Is(err, store.ErrNotFound) {
		return nil, 0, err
	}
	p, version, found, err := store.Find[progress](ctx, f.deps.Store, store.KindLogProgress, openPrefix+t.UID)
	if err == nil && !found {
		p, version = progress{target: t}, 1
		err = store.Create(ctx, f.deps.Store, store.KindLogProgress, openPrefix+t.UID, p)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look how far the log of pod %s is shipped: %w", t.Pod, err)
	}
	return &p, version, nil
}

// reconcile resumes logs that an earlier follower started, whose pods no snapshot shows any more.
func (f *follower) reconcile(ctx context.Context) (time.Duration, error) {
	if err := f.deferred().ForEach(ctx, f.isShipped); err != nil {
		return 0, err
	}
	for p, err := range store.All[progress](ctx, f.deps.Store, store.KindLogProgress, openPrefix) {
		if err == nil && p.Value.Engine == f.deps.Engine {
			err = f.resumeLog(ctx, p.Value.target)
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// resumeLog follows a started log, unless it is followed already. If its pod is gone, the log is followed to its end.
func (f *follower) resumeLog(ctx context.Context, t target) error {
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
	for _, s := range targetsOf(seen) {
		if s.UID == t.UID {
			f.track(ctx, s)
			return nil
		}
	}
	f.track(ctx, targetState{target: t, Started: true, Ended: true})
	return nil
}
