package set

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/set/results"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
)

// rollups stores the results of cells that do not change any more, so that they are read at
// once. Results that are not stored are read from their runs, to the same end.
//
// Only one goroutine at a time may call step.
type rollups struct {
	docs    documents
	results *results.Reader
	plans   *planCache
	now     func() time.Time
	queue   *queue.Queue[string] // of sets

	mu       sync.Mutex
	progress map[string]*rollupProgress // by set
}

// rollupProgress is how much of a set is stored. It can be found out again at any time.
type rollupProgress struct {
	last []int  // ordinal of the last run of each block
	done []bool // by block: there is nothing left to store
	next int    // block to look at next
}

func newRollups(d Deps, plans *planCache) *rollups {
	fields := func(id string) []zap.Field { return []zap.Field{zap.String("results of set", id)} }
	return &rollups{
		docs: documents{d.Store}, results: results.New(d.Store, d.Now, d.Log), plans: plans, now: d.Now,
		queue: queue.New(d.Log, queue.Settings[string]{Fields: fields}), progress: make(map[string]*rollupProgress),
	}
}

// run stores results of the sets in the queue until ctx is done.
func (r *rollups) run(ctx context.Context) error {
	return r.queue.Run(ctx, 1, func(ctx context.Context, id string) (queue.Result, error) {
		began := time.Now()
		s, more, err := r.step(ctx, id)
		switch {
		case err != nil:
			return queue.Result{}, err
		case more:
			return queue.Result{RequeueAfter: max(time.Millisecond, time.Since(began))}, nil // runs go first
		case r.progressOf(id) == nil:
			return queue.Result{}, nil
		}
		wait, again := rollupWait(s, r.now())
		if !again {
			if s.State == StateFinished {
				r.forget(id)
			}
			return queue.Result{Rest: wait}, nil
		}
		return queue.Result{RequeueAfter: wait, Rest: wait}, nil
	})
}

// RollUp stores the results of some cells of a set that do not change any more, and reports
// whether another call has more to do now. Runner does it by itself for the sets that it runs,
// and for those whose results were read from runs. Only one goroutine at a time may call it,
// and not while Run runs.
func (r *Runner) RollUp(ctx context.Context, id string) (more bool, err error) {
	_, more, err = r.rollups.step(ctx, id)
	return more, err
}

// step looks at the next block of a set whose runs were all made. It reports whether there are
// further ones. A set without progress after that has nothing left to store.
func (r *rollups) step(ctx context.Context, id string) (s Set, more bool, err error) {
	s, found, err := r.docs.load(ctx, id)
	if err != nil {
		return s, false, err
	}
	l := loaded{invalid: "there is no such set"}
	if found {
		if l, err = r.plans.get(ctx, s); err != nil {
			return s, false, err
		}
	}
	if l.invalid != "" {
		r.forget(id)
		return s, false, nil
	}
	p := r.progressOf(id)
	if p == nil {
		p = r.begin(id, lastOrdinals(s, l))
	}
	made := madeBlocks(s, l, p.last)
	for p.next < len(made) {
		i := p.next
		p.next++
		if !made[i] || p.done[i] {
			continue
		}
		if p.done[i], err = r.results.RollUp(ctx, s.results(), l.plan, i); err != nil {
			p.next = i
		}
		return s, true, err
	}
	p.next = 0
	if !slices.Contains(p.done, false) {
		r.forget(id)
	}
	return s, false, nil
}

// progressOf returns how much of a set is stored, nil if that is not known.
func (r *rollups) progressOf(id string) *rollupProgress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress[id]
}

// begin notes that nothing of a set is known to be stored. It takes the ordinal of the last run of each block.
func (r *rollups) begin(id string, last []int) *rollupProgress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &rollupProgress{last: last, done: make([]bool, len(last))}
	r.progress[id] = p
	return p
}

// forget drops what is known of a set.
func (r *rollups) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.progress, id)
}

// forgetAll drops what is known of all sets. Any goroutine may call it at any time.
func (r *rollups) forgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.progress)
}
