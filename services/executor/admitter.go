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
)

// leaseName is that of the lease under which slots are given.
const leaseName = "executor/admit"

// Bounds of what the admitter does at a time.
const (
	maxTasks     = 32   // launches and releases under way
	maxPositions = 20   // waiting runs that are told their position
	maxBarred    = 1000 // waiting runs that are looked through for one that no limit of its own bars
)

// admitter gives slots to those at the head of the queue, has them launched,
// and frees the slots of those whose objects are gone. Every executor runs one;
// only who has the lease admits.
type admitter struct {
	settings Settings
	deps     Deps
	desk     desk
	name     string
	woken    chan struct{}
	tasks    chan struct{} // as many as are under way

	mu   sync.Mutex
	news map[Holder]News  // that the ledger does not have yet
	soon map[Holder]int64 // to be released by this process; version of the ledger that has them
	busy map[Holder]bool  // those for whom this process does something now
	vain map[Holder]bool  // those for whom it failed the last time

	// Of the loop alone.
	lease                    store.Lease
	told                     map[Holder]string
	nextPositions, nextLooks time.Time
	nextSweep                time.Time
}

func newAdmitter(s Settings, d Deps, k desk) *admitter {
	return &admitter{
		settings: s, deps: d, desk: k, name: cmp.Or(s.Name, rand.Text()),
		woken: make(chan struct{}, 1), tasks: make(chan struct{}, maxTasks),
		news: make(map[Holder]News), soon: make(map[Holder]int64), busy: make(map[Holder]bool), vain: make(map[Holder]bool), told: make(map[Holder]string),
	}
}

// wake has the admitter look again, now. It never blocks.
func (a *admitter) wake() {
	select {
	case a.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// tell notes news of a holder, for the ledger. Later news replace earlier.
func (a *admitter) tell(h Holder, n News) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.news[h] = max(a.news[h], n)
	if n == Gone {
		delete(a.soon, h)
	}
}

// releaseSoon has this process see to it that the objects of a holder in the
// ledger of that version go, and free its slot.
func (a *admitter) releaseSoon(h Holder, version int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.soon[h] = version
}

// run is the loop: it looks when it is woken, and from time to time. What fails
// is tried again, said once, with growing waits. It returns when all that it
// has begun has ended.
func (a *admitter) run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer a.resign(ctx)
	defer tasks.Wait()
	pause := time.Duration(0)
	for {
		err := a.round(ctx, &tasks)
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
		if !sleep(ctx, a.settings.Poll, a.woken) {
			return nil
		}
	}
}

// sleep waits for d, or until it is woken. It is false once ctx is done.
func sleep(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-woken:
	}
	return true
}

// look is what the admitter sees of the world in one round.
type look struct {
	ledger  Ledger // with the news
	version int64  // of the ledger as it is stored
	changed bool   // by the news
	news    map[Holder]News
	queue   []Place // the head of it, without those who have a plan
	lead    bool    // this process may admit
}

// round looks once and does what is to be done.
func (a *admitter) round(ctx context.Context, tasks *sync.WaitGroup) error {
	now := a.deps.Clock()
	w, err := a.gather(ctx, now)
	if err != nil {
		return err
	}
	var admitted []Entry
	if w.lead {
		admitted = Admit(w.ledger, w.queue, a.settings.rules())
	}
	if w.changed || len(admitted) > 0 {
		w.ledger.Entries = append(w.ledger.Entries, admitted...)
		err := a.desk.write(ctx, w.ledger, w.version)
		if errors.Is(err, store.ErrConflict) {
			a.wake()
			return nil
		}
		if err != nil {
			return err
		}
	}
	a.known(w.news)
	a.start(ctx, tasks, w)
	if err := a.sweep(ctx, now); err != nil || !w.lead {
		return err
	}
	return errors.Join(a.reconcile(ctx, w, now), a.positions(ctx, w, now))
}

// gather looks at the ledger, and at the queue where that can matter, and takes
// the lease where something is to be done under it. Where nobody waits and
// nobody holds a slot it costs one look at each.
func (a *admitter) gather(ctx context.Context, now time.Time) (look, error) {
	w := look{news: a.unknown()}
	ledger, version, err := a.desk.ledger(ctx)
	if err != nil {
		return look{}, err
	}
	w.ledger, w.changed = Learn(ledger, w.news)
	w.version = version
	if n := a.want(w.ledger, now); n > 0 {
		if w.queue, err = a.desk.head(ctx, n); err != nil {
			return look{}, err
		}
	}
	if len(w.queue) == 0 && len(w.ledger.Entries) == 0 {
		return w, nil
	}
	if w.lead, err = a.lead(ctx, now, ledger.Fence); err != nil || !w.lead {
		return w, err
	}
	w.ledger.Fence = a.lease.Fence
	w.queue, err = a.fresh(ctx, w.ledger, w.queue)
	return w, err
}

// want returns how much of the queue is to be looked at: those who could go,
// and behind them those who are to be told their position, where it is time.
// Those on their way out of the queue are in front.
func (a *admitter) want(l Ledger, now time.Time) int {
	free, leaving := max(0, a.settings.Slots-len(l.Entries)), 0
	for _, e := range l.Entries {
		if !e.Launched || e.Ending {
			leaving++
		}
	}
	switch {
	case free > 0 && (a.settings.PerUser > 0 || len(a.settings.PerLabel) > 0):
		return free + leaving + maxBarred
	case !now.Before(a.nextPositions):
		return free + leaving + maxPositions
	case free > 0:
		return free + leaving
	}
	return 0
}

// fresh returns those of the queue who may be admitted. Others are taken out: an
// event about them came once more while they were launched, or they are never
// to be. Those for whom there is no slot anyway are not looked at.
func (a *admitter) fresh(ctx context.Context, l Ledger, queue []Place) ([]Place, error) {
	var some []Place
	rules := a.settings.rules()
	t := rules.tally(l.Entries)
	for i, p := range queue {
		if t.full() {
			return append(some, queue[i:]...), nil
		}
		if t.barred(rules.entry(p)) != "" && !l.holds(p.holder()) {
			some = append(some, p)
			continue
		}
		ok, err := a.mayGo(ctx, l, p)
		if err != nil {
			return nil, err
		}
		if ok {
			t.add(rules.entry(p))
			some = append(some, p)
		}
	}
	return some, nil
}

// mayGo reports whether who waits at a place has neither a slot nor a plan. If
// it has been launched, or is never to be, the place is taken away.
func (a *admitter) mayGo(ctx context.Context, l Ledger, p Place) (bool, error) {
	e, admitted := l.entry(p.holder())
	if admitted && !e.Launched {
		return false, nil
	}
	plan, err := a.desk.plan(ctx, p.holder())
	if err != nil || plan == nil {
		return !admitted, err
	}
	a.wake() // others may be behind those who were looked at
	return false, a.drop(ctx, *plan, p.Key)
}

// drop takes out of the queue who is not to be launched any more, once what was
// said of it is said for sure.
func (a *admitter) drop(ctx context.Context, p Plan, key string) error {
	if say := p.last(); len(say) > 0 {
		if err := a.deps.Bus.Publish(ctx, say...); err != nil {
			return err
		}
	}
	return a.desk.dequeue(ctx, key)
}

// lead reports whether this process may admit, and takes or keeps the lease for
// it where it can.
func (a *admitter) lead(ctx context.Context, now time.Time, fence int64) (bool, error) {
	if a.lease.Fence == 0 || now.Add(a.settings.Lease/2).After(a.lease.Ends) {
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

// resign gives the lease back, so that another executor need not wait.
func (a *admitter) resign(ctx context.Context) {
	if a.lease.Fence == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := store.Release(ctx, a.deps.Store, a.lease); err != nil {
		a.deps.Log.Info("the lease was not given back and ends by itself", zap.Error(err))
	}
}

// unknown returns the news that the ledger may not have.
func (a *admitter) unknown() map[Holder]News {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.news)
}

// known forgets news that the ledger has now.
func (a *admitter) known(news map[Holder]News) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for h, n := range news {
		if a.news[h] == n {
			delete(a.news, h)
		}
	}
}

// start begins what the holders of slots need, each thing once.
func (a *admitter) start(ctx context.Context, tasks *sync.WaitGroup, w look) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range w.ledger.Entries {
		_, mine := a.soon[e.Holder]
		task := e.task()
		if mine {
			task = Release
		}
		if task == Nothing || a.busy[e.Holder] || !mine && !w.lead {
			continue
		}
		if a.news[e.Holder] > w.news[e.Holder] {
			continue // it was done since this round looked; the next one has been woken
		}
		a.busy[e.Holder] = true
		do := a.does(task, e, w.queue)
		tasks.Go(func() { a.do(ctx, e.Holder, do) })
	}
	maps.DeleteFunc(a.soon, func(h Holder, version int64) bool { return version <= w.version && !w.ledger.holds(h) })
	maps.DeleteFunc(a.vain, func(h Holder, _ bool) bool { return !w.ledger.holds(h) })
}

// does returns what a task is for an entry.
func (a *admitter) does(t Task, e Entry, queue []Place) func(context.Context) error {
	switch t {
	case Launch:
		var fresh *Place
		if i := slices.IndexFunc(queue, func(p Place) bool { return p.holder() == e.Holder }); i >= 0 {
			fresh = &queue[i]
		}
		return func(ctx context.Context) error { return a.launch(ctx, e, fresh) }
	case Release:
		return func(ctx context.Context) error { return a.release(ctx, e) }
	case Look:
		return func(ctx context.Context) error { return a.look(ctx, e) }
	case Nothing:
	}
	return func(context.Context) error { return nil }
}

// do carries a task out. One that fails is begun again in a later round.
func (a *admitter) do(ctx context.Context, h Holder, task func(context.Context) error) {
	select {
	case a.tasks <- struct{}{}:
		defer func() { <-a.tasks }()
	case <-ctx.Done():
		return
	}
	err := task(ctx)
	a.mu.Lock()
	delete(a.busy, h)
	news, again := a.news[h], a.vain[h]
	if delete(a.vain, h); err != nil {
		a.vain[h] = true
	}
	a.mu.Unlock()
	if err != nil {
		if !again && ctx.Err() == nil { // it is said once
			a.deps.Log.Warn("tries again", zap.String("run", h.Run), zap.Int("attempt", h.Attempt), zap.Error(err))
		}
		return
	}
	if news != 0 { // the sooner the ledger has it, the less is done again after a death
		a.wake()
	}
}

// reconcile finds, from time to time, holders whose run has ended while nobody
// listened, and those that were canceled and are not gone yet.
func (a *admitter) reconcile(ctx context.Context, w look, now time.Time) error {
	if now.Before(a.nextLooks) {
		return nil
	}
	a.nextLooks = now.Add(a.settings.Reconcile)
	for _, e := range w.ledger.Entries {
		run, err := a.desk.run(ctx, e.Run)
		if err != nil {
			return err
		}
		switch {
		case run.Phase == event.PhaseFinished:
			a.tell(e.Holder, Ending)
			a.wake()
		case run.Phase == event.PhaseCanceling && run.Attempt == e.Attempt && e.Launched:
			a.releaseSoon(e.Holder, w.version)
			a.wake()
		}
	}
	return nil
}

// positions tells those at the head of the queue, from time to time, how long
// it is.
func (a *admitter) positions(ctx context.Context, w look, now time.Time) error {
	if now.Before(a.nextPositions) {
		return nil
	}
	a.nextPositions = now.Add(a.settings.Positions)
	waiting := slices.DeleteFunc(slices.Clone(w.queue), func(p Place) bool { return w.ledger.holds(p.holder()) })
	waiting = waiting[:min(len(waiting), maxPositions)]
	if say := Positions(waiting, Barred(w.ledger, waiting, a.settings.rules()), a.told, now); len(say) > 0 {
		return a.deps.Bus.Publish(ctx, say...)
	}
	return nil
}
