// Package queue is a work queue of keys. One worker at a time works on a key, and
// once however often the key was added meanwhile. The queue is client-go's, which no
// other package imports.
package queue

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"
)

// Settings is optional.
type Settings[K comparable] struct {
	First, Max time.Duration // back-off of a key, each wait twice the one before; zero means 1s, and 32 times First
	// Fields describes a key in logs; nil means one field, "key".
	Fields func(K) []zap.Field
}

// Result sets when a key is processed again. The zero value means after the next Add. Requeue and RequeueAfter do not delay an added key,
// but Rest does.
type Result struct {
	// RequeueAfter processes the key again after this time, at once if it is negative. With an error it replaces the back-off.
	RequeueAfter time.Duration
	// Requeue processes the key again after its back-off, and no later than RequeueAfter if that is set.
	Requeue bool
	// Rest delays the key for this time, even if it is added. No worker waits for that.
	Rest time.Duration
}

// Queue is a work queue of keys. Any goroutine may use it at any time.
type Queue[K comparable] struct {
	settings Settings[K]
	log      *zap.Logger

	mu      sync.Mutex
	running workqueue.TypedDelayingInterface[K] // nil while Run does not run
	added   map[K]struct{}                      // keys added while Run does not run
	failing map[K]struct{}
}

// New returns an empty queue.
func New[K comparable](log *zap.Logger, s Settings[K]) *Queue[K] {
	s.First = cmp.Or(s.First, time.Second)
	s.Max = cmp.Or(s.Max, 32*s.First)
	if s.Fields == nil {
		s.Fields = func(key K) []zap.Field { return []zap.Field{zap.Any("key", key)} }
	}
	return &Queue[K]{settings: s, log: log, added: make(map[K]struct{}), failing: make(map[K]struct{})}
}

// Add queues a key for the next free worker, or once more if a worker processes it now. A key that is added while Run does not run is
// processed when it does.
func (q *Queue[K]) Add(key K) { q.AddAfter(key, 0) }

// AddAfter queues a key after d, or sooner if it is due sooner already. While Run does not run, it is Add.
func (q *Queue[K]) AddAfter(key K, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running == nil {
		q.added[key] = struct{}{}
		return
	}
	q.running.AddAfter(key, d)
}

// Run has the given number of workers call do for keys, and returns nil when ctx is done and all of them have returned; remaining keys are
// dropped. A key for which do fails is retried after its back-off; the first failure in a row is logged, and the success after it. Only one
// Run may run at a time.
func (q *Queue[K]) Run(ctx context.Context, workers int, do func(ctx context.Context, key K) (Result, error)) error {
	return q.run(ctx, workers, func(w work[K]) bool {
		key, shutdown := w.Get()
		if shutdown || ctx.Err() != nil {
			return false
		}
		r, err := do(ctx, key)
		if ctx.Err() == nil {
			q.note(key, err)
		}
		w.requeue(key, r, err)
		if r.Rest > 0 {
			time.AfterFunc(r.Rest, func() { w.Done(key) })
			return true
		}
		w.Done(key)
		return true
	})
}

// run starts client-go's queue, has workers take steps until there are no more, and shuts it down.
func (q *Queue[K]) run(ctx context.Context, workers int, step func(work[K]) (more bool)) error {
	w := work[K]{
		TypedDelayingInterface: workqueue.NewTypedDelayingQueue[K](),
		limiter:                workqueue.NewTypedItemExponentialFailureRateLimiter[K](q.settings.First, q.settings.Max),
	}
	defer w.ShutDown()
	defer context.AfterFunc(ctx, w.ShutDown)()
	q.open(w)
	defer q.open(nil)
	var all sync.WaitGroup
	for range max(workers, 1) {
		all.Go(func() {
			for more := true; more; {
				more = step(w)
			}
		})
	}
	all.Wait()
	return nil
}

// open passes keys to client-go's queue from now on, with those that were added before, or stores them if that is nil.
func (q *Queue[K]) open(running workqueue.TypedDelayingInterface[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running = running; running == nil {
		return
	}
	for key := range q.added {
		running.Add(key)
	}
	clear(q.added)
}

// note logs the first failure in a row for a key, and the success after it.
func (q *Queue[K]) note(key K, err error) {
	q.mu.Lock()
	_, failing := q.failing[key]
	if delete(q.failing, key); err != nil {
		q.failing[key] = struct{}{}
	}
	q.mu.Unlock()
	q.logChange(failing, err, q.settings.Fields(key)...)
}

func (q *Queue[K]) logChange(failing bool, err error, fields ...zap.Field) {
	switch {
	case err != nil && !failing:
		q.log.Warn("failed, retrying", append(fields, zap.Error(err))...)
	case err == nil && failing:
		q.log.Info("works again", fields...)
	}
}

// work is client-go's queue and the back-offs of its keys.
type work[K comparable] struct {
	workqueue.TypedDelayingInterface[K]

	limiter workqueue.TypedRateLimiter[K]
}

// requeue queues a key again if the result or the error requires it.
func (w work[K]) requeue(key K, r Result, err error) {
	wait := r.RequeueAfter
	switch {
	case err != nil && wait == 0:
		wait = w.limiter.When(key)
	case err == nil && r.Requeue:
		if next := w.limiter.When(key); wait <= 0 || next < wait {
			wait = next
		}
	case err == nil:
		w.limiter.Forget(key)
	}
	if wait != 0 {
		w.AddAfter(key, wait)
	}
}
