package executor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan"
)

// leaseName is that of the lease under which slots are given.
const leaseName = "executor/admit"

// Bounds of what the admitter does at a time.
const (
	maxTasks       = 32   // launches and releases under way
	maxPositions   = 20   // waiting runs that are told their position
	maxBlockedScan = 1000 // waiting runs that are looked through for one that no limit of its own bars
)

// scheduler gives slots to those at the head of the queue, has them launched,
// and frees the slots of those whose objects are gone. Every executor runs one;
// only who has the lease admits.
type scheduler struct {
	settings Settings
	deps     Deps
	planner  plan.Planner
	docs     documents
	name     string
	wakeup   chan struct{}
	taskSem  chan struct{} // as many as are under way

	mu           sync.Mutex
	transitions  map[AttemptKey]Transition // that the ledger does not have yet
	releaseQueue map[AttemptKey]int64      // to be released by this process; version of the ledger that has them
	inFlight     map[AttemptKey]bool       // those for whom this process does something now
	failing      map[AttemptKey]bool       // those for whom it failed the last time

	// Of the loop alone.
	lease                        store.Lease
	lastReported                 map[AttemptKey]string
	nextPositions, nextReconcile time.Time
	nextSweep                    time.Time
}

func newScheduler(s Settings, d Deps, p plan.Planner, docs documents) *scheduler {
	return &scheduler{
		settings: s, deps: d, planner: p, docs: docs, name: cmp.Or(s.Name, rand.Text()),
		wakeup: make(chan struct{}, 1), taskSem: make(chan struct{}, maxTasks),
		transitions: make(map[AttemptKey]Transition), releaseQueue: make(map[AttemptKey]int64), inFlight: make(map[AttemptKey]bool), failing: make(map[AttemptKey]bool), lastReported: make(map[AttemptKey]string),
	}
}

// wake has the admitter look again, now. It never blocks.
func (a *scheduler) wake() {
	select {
	case a.wakeup <- struct{}{}:
	default: // it will look anyway
	}
}

// recordTransition notes news of a holder, for the ledger. Later news replace earlier.
func (a *scheduler) recordTransition(h AttemptKey, transition Transition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.transitions[h] = max(a.transitions[h], transition)
	if transition == Released {
		delete(a.releaseQueue, h)
	}
}

// enqueueRelease has this process see to it that the objects of a holder in the
// ledger of that version go, and free its slot.
func (a *scheduler) enqueueRelease(h AttemptKey, version int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.releaseQueue[h] = version
}

// run is the loop: it looks when it is woken, and from time to time. What fails
// is tried again, said once, with growing waits. It returns when all that it
// has begun has ended.
func (a *scheduler) run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer a.releaseLease(ctx)
	defer tasks.Wait()
	pause := time.Duration(0)
	for {
		err := a.runPass(ctx, &tasks)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && pause > 0:
			a.deps.Log.Info("admits again")
			pause = 0
		case err != nil && pause == 0:
			a.deps.Log.Warn("cannot admit, tries again", zap.Error(err))
		}
		if err != nil {
			pause = min(max(2*pause, a.settings.Poll/8), 5*a.settings.Poll)
			if !sleep(ctx, pause, nil) {
				return nil
			}
			continue
		}
		if !sleep(ctx, a.settings.Poll, a.wakeup) {
			return nil
		}
	}
}

// sleep waits for d, or until it is woken. It is false once ctx is done.
func sleep(ctx context.Context, d time.Duration, wakeup <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wakeup:
	}
	return true
}

// snapshot is what the admitter sees of the world in one round.
type snapshot struct {
	slots       SlotTable // with the news
	version     int64     // of the ledger as it is stored
	changed     bool      // by the news
	transitions map[AttemptKey]Transition
	queue       []Item // the head of it, without those who have a plan
	isLeader    bool   // this process may admit
}

// runPass looks once and does what is to be done.
func (a *scheduler) runPass(ctx context.Context, tasks *sync.WaitGroup) error {
	now := a.deps.Clock()
	w, err := a.takeSnapshot(ctx, now)
	if err != nil {
		return err
	}
	var admitted []Allocation
	if w.isLeader {
		admitted = Admit(w.slots, w.queue, a.settings.quota())
	}
	if w.changed || len(admitted) > 0 {
		w.slots.Allocations = append(w.slots.Allocations, admitted...)
		err := a.docs.writeSlotTable(ctx, w.slots, w.version)
		if errors.Is(err, store.ErrConflict) {
			a.wake()
			return nil
		}
		if err != nil {
			return err
		}
	}
	a.clearTransitions(w.transitions)
	a.startTasks(ctx, tasks, w)
	if err := a.sweepRetained(ctx, now); err != nil || !w.isLeader {
		return err
	}
	return errors.Join(a.reconcile(ctx, w, now), a.reportPositions(ctx, w, now))
}

// takeSnapshot looks at the ledger, and at the queue where that can matter, and takes
// the lease where something is to be done under it. Where nobody waits and
// nobody holds a slot it costs one look at each.
func (a *scheduler) takeSnapshot(ctx context.Context, now time.Time) (snapshot, error) {
	w := snapshot{transitions: a.pendingTransitions()}
	ledger, version, err := a.docs.slotTable(ctx)
	if err != nil {
		return snapshot{}, err
	}
	w.slots, w.changed = Apply(ledger, w.transitions)
	w.version = version
	if n := a.queueLookahead(w.slots, now); n > 0 {
		if w.queue, err = a.docs.queueHead(ctx, n); err != nil {
			return snapshot{}, err
		}
	}
	if len(w.queue) == 0 && len(w.slots.Allocations) == 0 {
		return w, nil
	}
	if w.isLeader, err = a.acquireLease(ctx, now, ledger.Fence); err != nil || !w.isLeader {
		return w, err
	}
	w.slots.Fence = a.lease.Fence
	w.queue, err = a.admissible(ctx, w.slots, w.queue)
	return w, err
}

// queueLookahead returns how much of the queue is to be looked at: those who could go,
// and behind them those who are to be told their position, where it is time.
// Those on their way out of the queue are in front.
func (a *scheduler) queueLookahead(l SlotTable, now time.Time) int {
	free, leaving := max(0, a.settings.Slots-len(l.Allocations)), 0
	for _, e := range l.Allocations {
		if !e.Launched || e.Terminating {
			leaving++
		}
	}
	switch {
	case free > 0 && (a.settings.PerUser > 0 || len(a.settings.PerLabel) > 0):
		return free + leaving + maxBlockedScan
	case !now.Before(a.nextPositions):
		return free + leaving + maxPositions
	case free > 0:
		return free + leaving
	}
	return 0
}

// admissible returns those of the queue who may be admitted. Others are taken out: an
// event about them came once more while they were launched, or they are never
// to be. Those for whom there is no slot anyway are not looked at.
func (a *scheduler) admissible(ctx context.Context, l SlotTable, queue []Item) ([]Item, error) {
	var items []Item
	quota := a.settings.quota()
	t := quota.usage(l.Allocations)
	for i, p := range queue {
		if t.full() {
			return append(items, queue[i:]...), nil
		}
		if t.exceededLimit(quota.newAllocation(p)) != "" && !l.holds(p.attemptKey()) {
			items = append(items, p)
			continue
		}
		ok, err := a.isAdmissible(ctx, l, p)
		if err != nil {
			return nil, err
		}
		if ok {
			t.add(quota.newAllocation(p))
			items = append(items, p)
		}
	}
	return items, nil
}

// isAdmissible reports whether who waits at a place has neither a slot nor a plan. If
// it has been launched, or is never to be, the place is taken away.
func (a *scheduler) isAdmissible(ctx context.Context, l SlotTable, p Item) (bool, error) {
	e, admitted := l.allocation(p.attemptKey())
	if admitted && !e.Launched {
		return false, nil
	}
	plan, err := a.docs.plan(ctx, p.attemptKey())
	if err != nil || plan == nil {
		return !admitted, err
	}
	a.wake() // others may be behind those who were looked at
	return false, a.removeFromQueue(ctx, *plan, p.Key)
}

// removeFromQueue takes out of the queue who is not to be launched any more, once what was
// said of it is said for sure.
func (a *scheduler) removeFromQueue(ctx context.Context, p Plan, key string) error {
	if events := p.finalEvents(); len(events) > 0 {
		if err := a.deps.Bus.Publish(ctx, events...); err != nil {
			return err
		}
	}
	return a.docs.dequeue(ctx, key)
}

// acquireLease reports whether this process may admit, and takes or keeps the lease for
// it where it can.
func (a *scheduler) acquireLease(ctx context.Context, now time.Time, fence int64) (bool, error) {
	if a.lease.Fence == 0 || now.Add(a.settings.Lease/2).After(a.lease.ExpiresAt) {
		lease, err := store.Acquire(ctx, a.deps.Store, leaseName, a.name, now, a.settings.Lease)
		if errors.Is(err, store.ErrHeld) {
			a.lease = store.Lease{}
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("take the lease: %w", err)
		}
		a.lease = lease
	}
	return fence <= a.lease.Fence, nil
}

// releaseLease gives the lease back, so that another executor need not wait.
func (a *scheduler) releaseLease(ctx context.Context) {
	if a.lease.Fence == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := store.Release(ctx, a.deps.Store, a.lease); err != nil {
		a.deps.Log.Info("the lease was not given back and ends by itself", zap.Error(err))
	}
}

// pendingTransitions returns the news that the ledger may not have.
func (a *scheduler) pendingTransitions() map[AttemptKey]Transition {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.transitions)
}

// clearTransitions forgets news that the ledger has now.
func (a *scheduler) clearTransitions(transitions map[AttemptKey]Transition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for h, n := range transitions {
		if a.transitions[h] == n {
			delete(a.transitions, h)
		}
	}
}

// startTasks begins what the holders of slots need, each thing once.
func (a *scheduler) startTasks(ctx context.Context, tasks *sync.WaitGroup, w snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range w.slots.Allocations {
		_, queuedRelease := a.releaseQueue[e.AttemptKey]
		task := e.nextTask()
		if queuedRelease {
			task = Release
		}
		if task == NoTask || a.inFlight[e.AttemptKey] || !queuedRelease && !w.isLeader {
			continue
		}
		if a.transitions[e.AttemptKey] > w.transitions[e.AttemptKey] {
			continue // it was done since this round looked; the next one has been woken
		}
		a.inFlight[e.AttemptKey] = true
		run := a.taskFunc(task, e, w.queue)
		tasks.Go(func() { a.runTask(ctx, e.AttemptKey, run) })
	}
	maps.DeleteFunc(a.releaseQueue, func(h AttemptKey, version int64) bool { return version <= w.version && !w.slots.holds(h) })
	maps.DeleteFunc(a.failing, func(h AttemptKey, _ bool) bool { return !w.slots.holds(h) })
}

// taskFunc returns what a task is for an entry.
func (a *scheduler) taskFunc(t Task, e Allocation, queue []Item) func(context.Context) error {
	switch t {
	case Launch:
		var item *Item
		if i := slices.IndexFunc(queue, func(p Item) bool { return p.attemptKey() == e.AttemptKey }); i >= 0 {
			item = &queue[i]
		}
		return func(ctx context.Context) error { return a.launch(ctx, e, item) }
	case Release:
		return func(ctx context.Context) error { return a.releaseSlot(ctx, e) }
	case CheckScheduling:
		return func(ctx context.Context) error { return a.checkScheduling(ctx, e) }
	case NoTask:
	}
	return func(context.Context) error { return nil }
}

// runTask carries a task out. One that fails is begun again in a later round.
func (a *scheduler) runTask(ctx context.Context, h AttemptKey, task func(context.Context) error) {
	select {
	case a.taskSem <- struct{}{}:
		defer func() { <-a.taskSem }()
	case <-ctx.Done():
		return
	}
	err := task(ctx)
	a.mu.Lock()
	delete(a.inFlight, h)
	transition, failedBefore := a.transitions[h], a.failing[h]
	if delete(a.failing, h); err != nil {
		a.failing[h] = true
	}
	a.mu.Unlock()
	if err != nil {
		if !failedBefore && ctx.Err() == nil { // it is said once
			a.deps.Log.Warn("tries again", zap.String("run", h.Run), zap.Int("attempt", h.Attempt), zap.Error(err))
		}
		return
	}
	if transition != 0 { // the sooner the ledger has it, the less is done again after a death
		a.wake()
	}
}

// reconcile finds, from time to time, holders whose run has ended while nobody
// listened, and those that were canceled and are not gone yet.
func (a *scheduler) reconcile(ctx context.Context, w snapshot, now time.Time) error {
	if now.Before(a.nextReconcile) {
		return nil
	}
	a.nextReconcile = now.Add(a.settings.Reconcile)
	for _, e := range w.slots.Allocations {
		run, err := a.docs.run(ctx, e.Run)
		if err != nil {
			return err
		}
		switch {
		case run.Phase == event.PhaseFinished:
			a.recordTransition(e.AttemptKey, Terminating)
			a.wake()
		case run.Phase == event.PhaseCanceling && run.Attempt == e.Attempt && e.Launched:
			a.enqueueRelease(e.AttemptKey, w.version)
			a.wake()
		}
	}
	return nil
}

// reportPositions tells those at the head of the queue, from time to time, how long
// it is.
func (a *scheduler) reportPositions(ctx context.Context, w snapshot, now time.Time) error {
	if now.Before(a.nextPositions) {
		return nil
	}
	a.nextPositions = now.Add(a.settings.Positions)
	waiting := slices.DeleteFunc(slices.Clone(w.queue), func(p Item) bool { return w.slots.holds(p.attemptKey()) })
	waiting = waiting[:min(len(waiting), maxPositions)]
	if events := QueuePositions(waiting, BlockedByQuota(w.slots, waiting, a.settings.quota()), a.lastReported, now); len(events) > 0 {
		return a.deps.Bus.Publish(ctx, events...)
	}
	return nil
}
