// Package slots gives slots to queued attempts, those of each engine apart. The slot table
// is one document, which a scheduler writes under a fenced lease by compare-and-set.
package slots

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// leaseName is the name of the lease of the scheduler that admits attempts.
const leaseName = "executor/admit"

// Limits of the work at one time.
const (
	maxTasks       = 32   // tasks in progress on an engine
	maxPositions   = 20   // queued runs whose position is reported
	maxBlockedScan = 1000 // queued runs that are searched for one that no limit blocks
)

// Settings of a scheduler. All durations are positive.
type Settings struct {
	Quota     Quota
	Name      string        // name of this process among all schedulers; empty means a random name
	Lease     time.Duration // how long other processes wait for a crashed scheduler
	Poll      time.Duration // time between two passes without an event
	Reconcile time.Duration // between two searches for runs whose end was missed
	Positions time.Duration // between two reports of positions in the queue
}

// Progress is how far a task has come.
type Progress struct {
	Transition Transition    // the next one of the attempt; 0 for none
	RetryAfter time.Duration // when to do the task again if there is none; zero means after the next pass
}

// Tasks does the work for attempts. A task may be repeated at any time, also by another
// process.
type Tasks interface {
	// Do does a task for an attempt as far as it can without waiting for the cluster.
	// item is the attempt's document in the queue; nil means that Do has to read it.
	Do(ctx context.Context, t Task, a Allocation, item *Item) (Progress, error)
	// Discard removes a queued attempt that already has a plan from the queue, and
	// reports whether it did.
	Discard(ctx context.Context, item Item) (discarded bool, err error)
}

// Deps are the dependencies of a scheduler.
type Deps struct {
	Docs    Documents
	Tasks   Tasks
	Publish func(ctx context.Context, events ...event.Event) error
	Clock   func() time.Time
	Log     *zap.Logger
}

// Scheduler gives slots to the head of the queue, and has the tasks of attempts with
// slots done. Every executor runs one. Only the holder of the lease admits attempts.
type Scheduler struct {
	settings Settings
	deps     Deps
	leader   *control.Leader
	loop     *control.Loop
	tasks    map[string]*queue.Queue[AttemptKey] // by engine, so that one that does not answer delays no other

	mu          sync.Mutex
	transitions map[AttemptKey]Transition // transitions that the stored table does not have yet
	releasing   map[AttemptKey]Allocation // attempts that this process releases, also without the lease
	last        snapshot                  // snapshot of the last pass

	// The loop is the only user of these fields.
	waits                        map[AttemptKey]event.Reason // why attempts with a slot wait in the cluster, as of the last reconcile
	lastReported                 map[AttemptKey]string
	nextPositions, nextReconcile time.Time
}

// NewScheduler returns a Scheduler.
func NewScheduler(s Settings, d Deps) *Scheduler {
	lease := control.LeaderSettings{Now: d.Clock, Log: d.Log}
	a := &Scheduler{
		settings: s, deps: d,
		leader:      control.NewLeader(d.Docs.Store, leaseName, cmp.Or(s.Name, rand.Text()), s.Lease, lease),
		tasks:       make(map[string]*queue.Queue[AttemptKey]),
		transitions: make(map[AttemptKey]Transition), releasing: make(map[AttemptKey]Allocation), lastReported: make(map[AttemptKey]string),
	}
	for _, engine := range s.Quota.engines() {
		a.tasks[engine] = queue.New(d.Log, queue.Settings[AttemptKey]{First: s.Poll, Max: s.Poll, Fields: logFields})
	}
	a.loop = control.NewLoop("admission", s.Poll, d.Log, a.pass, control.LoopSettings{
		Backoff: control.Backoff{First: s.Poll / 8, Max: 5 * s.Poll}, Failing: "cannot admit, tries again", Working: "admits again",
	})
	return a
}

func logFields(h AttemptKey) []zap.Field {
	return []zap.Field{zap.String("run", h.Run), zap.Int("attempt", h.Attempt)}
}

// Wake makes a pass start soon. It never blocks.
func (a *Scheduler) Wake() { a.loop.Wake() }

// Release makes this process delete the objects of an attempt, and free its slot once
// they are gone.
func (a *Scheduler) Release(e Allocation) {
	a.mu.Lock()
	a.releasing[e.AttemptKey] = e
	a.mu.Unlock()
	a.addTask(e)
}

// addTask adds an attempt to the queue of its engine. An engine that is not in the settings
// any more has none: its attempts wait until it is.
func (a *Scheduler) addTask(e Allocation) {
	if tasks, ok := a.tasks[e.Engine]; ok {
		tasks.Add(e.AttemptKey)
	}
}

// Run runs passes and tasks until ctx is done. It returns when all tasks have ended.
func (a *Scheduler) Run(ctx context.Context) error {
	defer a.leader.Release(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for _, queued := range a.tasks {
		tasks.Go(func() { _ = queued.Run(ctx, maxTasks, a.runTask) })
	}
	return a.loop.Run(ctx)
}

// snapshot is the input of one pass.
type snapshot struct {
	slots       Table // the table after the transitions
	version     int64 // version of the stored table
	changed     bool  // the transitions changed the table
	transitions map[AttemptKey]Transition
	queue       []Item // head of the queue, without attempts that have a plan
	isLeader    bool   // this process may admit attempts
}

// pass admits queued attempts, writes the table, and adds the tasks.
func (a *Scheduler) pass(ctx context.Context) (time.Duration, error) {
	now := a.deps.Clock()
	w, err := a.takeSnapshot(ctx, now)
	if err != nil {
		return 0, err
	}
	var admitted []Allocation
	if w.isLeader {
		admitted = admit(w.slots, w.queue, a.settings.Quota)
	}
	if w.changed || len(admitted) > 0 {
		w.slots.Allocations = append(w.slots.Allocations, admitted...)
		err := a.deps.Docs.writeTable(ctx, w.slots, w.version)
		if errors.Is(err, store.ErrConflict) {
			return -1, nil
		}
		if err != nil {
			return 0, err
		}
	}
	a.addTasks(w)
	if !w.isLeader {
		return 0, nil
	}
	return 0, errors.Join(a.reconcile(ctx, w, now), a.reportPositions(ctx, w, now))
}

// takeSnapshot reads the table, and the queue if it matters, and acquires the lease if
// there is work to do under it. An idle platform costs one read of each.
func (a *Scheduler) takeSnapshot(ctx context.Context, now time.Time) (snapshot, error) {
	w := snapshot{transitions: a.pendingTransitions()}
	table, version, err := a.deps.Docs.versionedTable(ctx)
	if err != nil {
		return snapshot{}, err
	}
	w.slots, w.changed = apply(table, w.transitions)
	for i, e := range w.slots.Allocations {
		w.slots.Allocations[i].Wait = a.waits[e.AttemptKey]
	}
	w.version = version
	if n := a.queueLookahead(w.slots, now); n > 0 {
		if w.queue, err = a.deps.Docs.queueHead(ctx, n); err != nil {
			return snapshot{}, err
		}
	}
	if len(w.queue) == 0 && len(w.slots.Allocations) == 0 {
		return w, nil
	}
	lease, err := a.leader.Hold(ctx)
	if errors.Is(err, store.ErrHeld) {
		return w, nil
	}
	if err != nil {
		return snapshot{}, err
	}
	if table.Fence > lease.Fence {
		a.leader.Invalidate()
		return w, nil
	}
	w.isLeader, w.slots.Fence = true, lease.Fence
	w.queue, err = a.admissible(ctx, w.slots, w.queue)
	return w, err
}

// queueLookahead returns how many queued attempts to read: those that could be
// admitted, and also those whose position is to be reported, when a report is due.
// Attempts that are about to leave the queue come first in it.
func (a *Scheduler) queueLookahead(l Table, now time.Time) int {
	t, leaving := a.settings.Quota.usage(l.Allocations), 0
	free := t.free()
	for _, e := range l.Allocations {
		if !e.Launched || e.Terminating {
			leaving++
		}
	}
	switch {
	case free > 0 && (a.settings.Quota.mayBlock() || len(l.heads()) > 0):
		return free + leaving + maxBlockedScan
	case !now.Before(a.nextPositions):
		return free + leaving + maxPositions
	case free > 0:
		return free + leaving
	}
	return 0
}

// admissible returns the queued attempts that may be admitted. It removes attempts that
// are never to be launched, or that were queued again by a repeated event. It does not
// check attempts for which there is no slot anyway.
func (a *Scheduler) admissible(ctx context.Context, l Table, queue []Item) ([]Item, error) {
	var items []Item
	quota, heads := a.settings.Quota, l.heads()
	t := quota.usage(l.Allocations)
	for i, p := range queue {
		if t.allFull() {
			return append(items, queue[i:]...), nil
		}
		if e := quota.newAllocation(p); !l.Holds(p.AttemptKey()) && (t.full(e.Engine) || t.exceededLimit(e) != "" || heads.holdBack(e)) {
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

// isAdmissible reports whether a queued attempt has neither a slot nor a plan. It
// removes an attempt that was launched, or never will be, from the queue.
func (a *Scheduler) isAdmissible(ctx context.Context, l Table, p Item) (bool, error) {
	e, admitted := l.Allocation(p.AttemptKey())
	if admitted && !e.Launched {
		return false, nil
	}
	discarded, err := a.deps.Tasks.Discard(ctx, p)
	if discarded {
		a.Wake() // the next pass reads further into the queue
	}
	return err == nil && !discarded && !admitted, err
}

// pendingTransitions returns the transitions that the stored table may not have.
func (a *Scheduler) pendingTransitions() map[AttemptKey]Transition {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.transitions)
}

// addTasks adds the tasks of attempts after a pass, and drops the transitions that the
// stored table has now.
func (a *Scheduler) addTasks(w snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = w
	for h, n := range w.transitions {
		if a.transitions[h] == n {
			delete(a.transitions, h)
		}
	}
	for _, e := range a.releasing {
		a.addTask(e)
	}
	for _, e := range w.slots.Allocations {
		if w.isLeader && e.nextTask() != NoTask {
			a.addTask(e)
		}
	}
}

// runTask does the current task of an attempt, if it has one.
func (a *Scheduler) runTask(ctx context.Context, h AttemptKey) (queue.Result, error) {
	task, e, item := a.taskOf(h)
	if task == NoTask {
		return queue.Result{}, nil
	}
	p, err := a.deps.Tasks.Do(ctx, task, e, item)
	if err != nil || p.Transition == 0 {
		return queue.Result{RequeueAfter: p.RetryAfter}, err
	}
	a.recordTransition(h, p.Transition)
	return queue.Result{}, nil
}

// taskOf returns the task of an attempt, after the last pass and the later transitions.
func (a *Scheduler) taskOf(h AttemptKey) (Task, Allocation, *Item) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, ok := a.releasing[h]; ok {
		return Release, e, nil
	}
	e, held := a.last.slots.Allocation(h)
	if !held || !a.last.isLeader {
		return NoTask, e, nil
	}
	now, _ := apply(Table{Allocations: []Allocation{e}}, a.transitions)
	if !now.Holds(h) {
		return NoTask, e, nil
	}
	e = now.Allocations[0]
	if i := slices.IndexFunc(a.last.queue, func(p Item) bool { return p.AttemptKey() == h }); i >= 0 {
		return e.nextTask(), e, &a.last.queue[i]
	}
	return e.nextTask(), e, nil
}

// recordTransition makes the next pass write a transition, and wakes the loop. The
// earlier the table has it, the less work is repeated after a crash.
func (a *Scheduler) recordTransition(h AttemptKey, transition Transition) {
	a.mu.Lock()
	a.transitions[h] = max(a.transitions[h], transition)
	if transition == Released {
		delete(a.releasing, h)
	}
	a.mu.Unlock()
	a.Wake()
}

// reconcile finds attempts whose run finished without an event that this executor
// received, canceled attempts whose objects still exist, and attempts that wait in the
// cluster. It runs at intervals.
func (a *Scheduler) reconcile(ctx context.Context, w snapshot, now time.Time) error {
	if now.Before(a.nextReconcile) {
		return nil
	}
	a.nextReconcile = now.Add(a.settings.Reconcile)
	waits := make(map[AttemptKey]event.Reason)
	for _, e := range w.slots.Allocations {
		run, err := a.deps.Docs.Run(ctx, e.Run)
		if err != nil {
			return err
		}
		switch {
		case run.Phase == event.PhaseFinished:
			a.recordTransition(e.AttemptKey, Terminating)
		case run.Phase == event.PhaseCanceling && run.Attempt == e.Attempt && e.Launched:
			a.Release(e)
		case run.Phase == event.PhaseQueued && run.Reason.QueuedInCluster() && run.Attempt == e.Attempt && e.Launched:
			waits[e.AttemptKey] = run.Reason
		}
	}
	a.waits = waits
	return nil
}

// reportPositions publishes the positions of the first queued runs. It runs at
// intervals.
func (a *Scheduler) reportPositions(ctx context.Context, w snapshot, now time.Time) error {
	if now.Before(a.nextPositions) {
		return nil
	}
	a.nextPositions = now.Add(a.settings.Positions)
	waiting := slices.DeleteFunc(slices.Clone(w.queue), func(p Item) bool { return w.slots.Holds(p.AttemptKey()) })
	waiting = waiting[:min(len(waiting), maxPositions)]
	if events := queuePositions(waiting, blockedReasons(w.slots, waiting, a.settings.Quota), a.lastReported, now); len(events) > 0 {
		return a.deps.Publish(ctx, events...)
	}
	return nil
}
