package set

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// leaseName is the name of the lease of the process that runs sets.
const leaseName = "sets"

// Runner submits and counts the runs of sets while it holds the lease.
type Runner struct {
	settings  Settings
	docs      documents
	store     Store
	submitter Submitter
	plans     *planCache
	changes   *broadcast
	receivers notice.Receivers
	now       func() time.Time
	log       *zap.Logger

	loop    *control.Loop
	leader  *control.Leader
	lease   store.Lease
	rollups *rollups
	values  map[string]map[int]*measuredCell // of open cells, by set and cell
	full    time.Time                        // when the last pass began that read all active runs; zero after a failed pass

	notified map[string]int // finished sets of whose end this process has stored the notices → the number of ends

	mu     sync.Mutex
	opened map[string]time.Time // when this process opened sets that no list of the store has shown yet
	noted  map[string]bool      // runs that the next pass reads
}

// NewRunner returns a Runner.
func NewRunner(s Settings, d Deps) *Runner {
	s.Interval, s.Lease = cmp.Or(s.Interval, defaultInterval), cmp.Or(s.Lease, defaultLease)
	docs := documents{d.Store}
	r := &Runner{
		settings: s, docs: docs, store: d.Store, submitter: d.Submitter, plans: newPlanCache(docs, d.Parser), changes: newBroadcast(),
		receivers: d.Receivers, now: d.Now, log: d.Log,
		leader:   control.NewLeader(d.Store, leaseName, d.Holder, s.Lease, control.LeaderSettings{Now: d.Now, Log: d.Log}),
		notified: make(map[string]int), opened: make(map[string]time.Time), noted: make(map[string]bool),
		values: make(map[string]map[int]*measuredCell),
	}
	r.rollups = newRollups(d, r.plans)
	r.loop = control.NewLoop("sets", s.Interval, d.Log, r.work,
		control.LoopSettings{Eager: true, Failing: "sets wait", Working: "sets go on"})
	return r
}

// Open makes the Runner look at a set soon.
func (r *Runner) Open(id string) {
	r.mu.Lock()
	r.opened[id] = r.now()
	r.mu.Unlock()
	r.changes.send()
	r.loop.Wake()
}

// RunEnded makes the Runner look soon at a run that has ended. It ignores runs that belong
// to no set. The Runner finds out in any case, after its interval.
func (r *Runner) RunEnded(run store.Run) {
	if run.Set == "" {
		return
	}
	r.note(run.ID)
	r.loop.Wake()
}

// note makes the next pass read a run.
func (r *Runner) note(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted[run] = true
}

// Run runs sets while this process holds the lease, and waits for the lease while another
// process holds it, until ctx is done. It also stores results: see RollUp.
func (r *Runner) Run(ctx context.Context) error {
	defer r.leader.Release(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _ = r.rollups.run(ctx) })
	return r.loop.Run(ctx)
}

// work is one pass of the loop.
func (r *Runner) work(ctx context.Context) (time.Duration, error) {
	more, err := r.Reconcile(ctx)
	switch {
	case errors.Is(err, store.ErrHeld):
		return max(r.settings.Interval, r.settings.Lease/3), nil
	case err == nil && more:
		return -1, nil
	}
	return 0, err
}

// Reconcile is one pass over the open sets, and reports whether another pass has more to do
// at once. It reads the active runs that were just submitted or that this process has seen
// end, and all of them if the last time is the interval ago. It renews the lease between two
// sets. The error is store.ErrHeld while another process runs sets. Only one goroutine at a
// time may call it.
func (r *Runner) Reconcile(ctx context.Context) (more bool, err error) {
	p := pass{Runner: r, now: r.now().UTC().Round(0), noted: r.takeNoted()}
	ids, err := r.openSets(ctx)
	if err == nil && len(ids) > 0 {
		err = r.hold(ctx)
	}
	if err != nil {
		r.full = time.Time{}
		return false, err
	}
	if since := p.now.Sub(r.full); since < 0 || since >= r.settings.Interval {
		p.all, r.full = true, p.now
	}
	var errs []error
	for _, id := range ids {
		if err := r.hold(ctx); err != nil { // a pass over many sets takes longer than the lease
			r.full = time.Time{}
			return false, errors.Join(append(errs, err)...)
		}
		again, err := p.advance(ctx, id)
		if err != nil {
			r.full = time.Time{}
			errs = append(errs, fmt.Errorf("set %s: %w", id, err))
		}
		if ctx.Err() != nil || errors.Is(err, errFenced) {
			break
		}
		more = more || again
	}
	return more, errors.Join(errs...)
}

// hold acquires or renews the lease. What this process knows of sets is forgotten when another one runs them.
func (r *Runner) hold(ctx context.Context) error {
	lease, err := r.leader.Hold(ctx)
	if errors.Is(err, store.ErrHeld) && r.lease.Fence != 0 {
		r.lease = store.Lease{}
		clear(r.values)
		clear(r.notified)
		r.rollups.forgetAll()
	}
	if err != nil {
		return err
	}
	if lease.Fence != r.lease.Fence {
		r.full = time.Time{}
		r.log.Info("runs sets", zap.Int64("fence", lease.Fence))
	}
	r.lease = lease
	return nil
}

// takeNoted returns the runs that were noted since the last call.
func (r *Runner) takeNoted() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	noted := r.noted
	r.noted = make(map[string]bool)
	return noted
}

// openSets returns the IDs of the open sets, in order. Lists of the store show a set that this process has opened after a while: until then
// the process keeps its ID, and no longer than openTime.
func (r *Runner) openSets(ctx context.Context) ([]string, error) {
	ids, err := r.docs.openSets(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		delete(r.opened, id)
	}
	oldest := r.now().Add(-openTime)
	maps.DeleteFunc(r.opened, func(_ string, at time.Time) bool { return at.Before(oldest) })
	ids = slices.AppendSeq(ids, maps.Keys(r.opened))
	slices.Sort(ids)
	return ids, nil
}

// forget forgets a set that is closed.
func (r *Runner) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.opened, id)
	delete(r.values, id)
	delete(r.notified, id)
}

// broadcast tells all who wait that something has changed. Several goroutines may use it.
type broadcast struct {
	mu      sync.Mutex
	channel chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{channel: make(chan struct{})} }

// next returns the channel that the next call of send closes.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.channel
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.channel)
	b.channel = make(chan struct{})
}
