package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// leaseName is the lease of who fires.
const leaseName = "schedules"

// Ledger is what is known of the firings of a schedule: the document KindFirings.
type Ledger struct {
	Fence   int64     `json:"fence"` // of the lease under which it was written
	Until   time.Time `json:"until"` // firings up to then were decided
	Records []Record  `json:"records,omitempty"`
}

// Record is what became of a firing, or of several in a row.
type Record struct {
	Time   time.Time    `json:"time"`
	Last   time.Time    `json:"last,omitzero"`
	Count  int          `json:"count,omitempty"` // zero means 1
	Run    string       `json:"run,omitempty"`
	Reason event.Reason `json:"reason,omitempty"`
	Why    string       `json:"why,omitempty"`
	Open   bool         `json:"open,omitempty"` // the run was not over when it was last looked at
	Told   bool         `json:"told,omitempty"` // that the run had not ended in time, or nobody minds
	Late   bool         `json:"late,omitempty"` // it had not
}

// kept is a ledger and the version of its document.
type kept struct {
	Ledger

	version int64
}

// order is past firings whose runs are to be made: the document KindBackfill.
type order struct {
	Schedule string    `json:"schedule"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Next     time.Time `json:"next"` // those before it are done
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`

	key     string
	version int64
}

func orderKey(id string, from, to time.Time) string {
	return fmt.Sprintf("%s!%s!%s", id, KeyOf(from), KeyOf(to))
}

// Run fires schedules while this process holds the lease, and waits for it while
// another does. It blocks until ctx is done. What it cannot do now it says once,
// and tries again.
func (k *Schedules) Run(ctx context.Context) error {
	waiting := false
	for ctx.Err() == nil {
		wake, err := k.Look(ctx)
		away := err != nil && !errors.Is(err, store.ErrHeld)
		if away && !waiting && ctx.Err() == nil {
			k.log.Warn("schedules wait", zap.Error(err))
		}
		if !away && waiting {
			k.log.Info("schedules go on")
		}
		waiting = away
		k.sleep(ctx, wake, err)
	}
	if k.lease.Holder == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := store.Release(ctx, k.store, k.lease); err != nil {
		k.log.Warn("lease not given back", zap.Error(err)) // it ends by itself
	}
	return nil
}

// sleep waits until there is something to do.
func (k *Schedules) sleep(ctx context.Context, wake time.Time, err error) {
	pause := k.settings.Interval
	if errors.Is(err, store.ErrHeld) {
		pause = max(pause, k.settings.Lease/3)
	}
	if until := wake.Sub(k.now()); !wake.IsZero() && err == nil {
		pause = max(min(pause, until), 0)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.news:
	}
}

// Look does all that there is to do about schedules now, and returns when there
// is more, zero where there is nothing by itself. It says store.ErrHeld where
// another process does it. One goroutine at a time may call it.
func (k *Schedules) Look(ctx context.Context) (wake time.Time, err error) {
	if err := k.hold(ctx); err != nil {
		return time.Time{}, err
	}
	orders, err := k.orders(ctx, "")
	if err != nil {
		return time.Time{}, err
	}
	var errs []error
	for d, err := range k.documents(ctx, "") {
		if err != nil {
			return time.Time{}, errors.Join(append(errs, err)...)
		}
		next, err := k.one(ctx, d, orders)
		if ctx.Err() != nil || errors.Is(err, errFence) {
			return time.Time{}, err
		}
		errs = append(errs, err)
		wake = sooner(wake, next)
	}
	return wake, errors.Join(errs...)
}

// sooner returns the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// documents are those of all schedules after a key, in the order of their IDs.
// After an error there is none.
func (k *Schedules) documents(ctx context.Context, after string) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		for {
			docs, err := k.store.Docs(ctx, store.KindSchedule, after, page)
			if err != nil {
				yield(store.Doc{}, fmt.Errorf("list schedules: %w", err))
				return
			}
			for _, d := range docs {
				after = d.Key
				if !yield(d, nil) {
					return
				}
			}
			if len(docs) < page {
				return
			}
		}
	}
}

// hold takes the lease, or renews it where half of it is over.
func (k *Schedules) hold(ctx context.Context) error {
	now := k.now()
	if k.lease.Holder != "" && k.lease.Ends.Sub(now) > k.settings.Lease/2 {
		return nil
	}
	lease, err := store.Acquire(ctx, k.store, leaseName, k.holder, now, k.settings.Lease)
	if err != nil {
		k.lease = store.Lease{}
		return err
	}
	if lease.Fence != k.lease.Fence {
		clear(k.known)
		k.log.Info("fires schedules", zap.Int64("fence", lease.Fence))
	}
	k.lease = lease
	return nil
}

// orders returns the backfills of a schedule, or of all, oldest span first.
func (k *Schedules) orders(ctx context.Context, id string) ([]order, error) {
	var docs []store.Doc
	var err error
	if id != "" {
		docs, err = k.below(ctx, store.KindBackfill, id)
	} else {
		docs, err = k.store.Docs(ctx, store.KindBackfill, "", page) // others come when these are done
	}
	if err != nil {
		return nil, fmt.Errorf("list backfills: %w", err)
	}
	all := make([]order, len(docs))
	for i, d := range docs {
		if err := json.Unmarshal(d.Value, &all[i]); err != nil {
			return nil, fmt.Errorf("read backfill %q: %w", d.Key, err)
		}
		all[i].key, all[i].version = d.Key, d.Version
	}
	return all, nil
}

// one does what there is to do about one schedule, and returns when there is more.
func (k *Schedules) one(ctx context.Context, d store.Doc, orders []order) (wake time.Time, err error) {
	var s Schedule
	if err := json.Unmarshal(d.Value, &s); err != nil {
		return time.Time{}, fmt.Errorf("read schedule %q: %w", d.Key, err)
	}
	orders = slices.DeleteFunc(slices.Clone(orders), func(o order) bool { return o.Schedule != s.ID })
	if !s.Deleted.IsZero() || s.Paused && len(orders) == 0 {
		return time.Time{}, nil
	}
	f, err := k.open(ctx, s)
	if err == nil {
		wake, err = f.work(ctx, orders)
	}
	if err != nil && !errors.Is(err, errFence) {
		err = fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	return wake, err
}

// open returns a schedule with what is known of its firings.
func (k *Schedules) open(ctx context.Context, s Schedule) (*firing, error) {
	times, err := s.Rules.Times()
	if err != nil {
		return nil, err
	}
	ledger, err := k.ledger(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	look := Look{Rules: s.Rules, Times: times, Since: later(s.From, ledger.Until), Now: k.now().UTC()}
	return &firing{Schedules: k, schedule: s, ledger: ledger, look: look}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ledger returns what is known of a schedule's firings.
func (k *Schedules) ledger(ctx context.Context, id string) (kept, error) {
	if l, ok := k.known[id]; ok {
		return l, nil
	}
	l, version, err := store.Get[Ledger](ctx, k.store, store.KindFirings, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return kept{}, fmt.Errorf("read the firings of schedule %s: %w", id, err)
	}
	k.known[id] = kept{l, version}
	return k.known[id], nil
}

// firing is one schedule while it fires.
type firing struct {
	*Schedules

	schedule Schedule
	ledger   kept
	look     Look
	changed  bool
}

// work fires what is due, and goes on with the first of the backfills.
func (f *firing) work(ctx context.Context, orders []order) (wake time.Time, err error) {
	due := false
	if !f.schedule.Paused {
		due, wake = Due(f.look)
	}
	if !due && len(orders) == 0 {
		return wake, nil
	}
	err = f.gather(ctx)
	if err == nil && due {
		wake, err = f.fire(ctx)
	}
	if err == nil && len(orders) > 0 {
		err = f.backfill(ctx, orders[0])
	}
	if wrote := f.keep(ctx); err == nil {
		err = wrote
	}
	return wake, err
}

// gather finds the runs that go on: those that the ledger has, and those that
// were asked for beside it.
func (f *firing) gather(ctx context.Context) error {
	going, settled, err := f.going(ctx, f.schedule.ID, f.ledger.Ledger)
	if err != nil {
		return err
	}
	f.look.Going = going
	records := slices.Clone(f.ledger.Records)
	for i, r := range records {
		if r.Open && slices.Contains(settled, r.Run) {
			records[i].Open, f.changed = false, true
		}
	}
	f.ledger.Records = records
	return nil
}

// going returns the runs of a schedule that are not over, oldest firing first,
// and those of the ledger that are.
func (k *Schedules) going(ctx context.Context, id string, l Ledger) (going []Going, settled []string, err error) {
	for _, r := range l.Records {
		if !r.Open {
			continue
		}
		run, err := k.store.Run(ctx, r.Run)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // not known yet: it was just submitted
			return nil, nil, err
		}
		if run.Phase == event.PhaseFinished {
			settled = append(settled, r.Run)
			continue
		}
		going = append(going, Going{Run: r.Run, Time: r.Time, Told: r.Told})
	}
	phases := event.Phases()
	runs, _, err := k.store.Runs(ctx, store.RunFilter{Schedule: id, Phases: phases[:len(phases)-1], Oldest: true}, "", page)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range runs {
		known := slices.ContainsFunc(going, func(g Going) bool { return g.Run == run.ID }) || slices.Contains(settled, run.ID)
		if !known && run.Firing != nil {
			going = append(going, Going{Run: run.ID, Time: *run.Firing, Told: true})
		}
	}
	return going, settled, nil
}

// fire carries out what is decided, as far as that goes.
func (f *firing) fire(ctx context.Context) (wake time.Time, err error) {
	plan := Decide(f.look)
	for _, late := range plan.Late {
		if err := f.tell(ctx, late.Run, late.Time, 1, NotEnded, fmt.Sprintf("run %s had not ended when its schedule was to fire again", late.Run)); err != nil {
			return time.Time{}, err
		}
		f.late(late.Run)
	}
	for _, fate := range plan.Fates {
		if err := f.meet(ctx, fate); err != nil {
			return time.Time{}, err
		}
		f.ledger.Until, f.changed = later(fate.Time, fate.Last), true
	}
	return plan.Wake, nil
}

func (f *firing) late(run string) {
	for i, r := range f.ledger.Records {
		if r.Run == run {
			f.ledger.Records[i].Told, f.ledger.Records[i].Late, f.changed = true, true, true
		}
	}
}

// meet carries out the fate of a firing.
func (f *firing) meet(ctx context.Context, fate Fate) error {
	if fate.Reason != "" {
		return f.lose(ctx, fate)
	}
	for _, run := range fate.Cancel {
		if err := f.end(ctx, run); err != nil {
			return err
		}
	}
	run, refused, err := f.submit(ctx, fate.Time)
	if err != nil {
		return err
	}
	if refused != "" {
		fate.Reason, fate.Why = Refused, refused
		return f.lose(ctx, fate)
	}
	f.note(Record{Time: fate.Time, Run: run, Open: true})
	return nil
}

// end cancels a run that another takes the place of.
func (f *firing) end(ctx context.Context, id string) error {
	run, err := f.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		run, err = f.submitted(ctx, id)
	}
	if err != nil || run.Phase == event.PhaseFinished {
		return err
	}
	return f.intake.Cancel(ctx, run, "schedule "+f.schedule.ID)
}

// submitted returns what is known of a run that was just submitted.
func (k *Schedules) submitted(ctx context.Context, id string) (store.Run, error) {
	sub, _, err := store.Get[event.Submitted](ctx, k.store, store.KindSubmission, id)
	if err != nil {
		return store.Run{}, fmt.Errorf("look for run %s: %w", id, err)
	}
	return store.Run{ID: sub.Run, Namespace: sub.Namespace, Owner: sub.Owner, Lineage: sub.Lineage}, nil
}

// submit makes the run of a firing, or says why there can be none.
func (f *firing) submit(ctx context.Context, at time.Time) (run, refused string, err error) {
	e, err := f.edition(ctx, f.schedule)
	if err != nil {
		return "", "", err
	}
	return f.Schedules.submit(ctx, e.request(f.schedule, KeyOf(at), at))
}

func (k *Schedules) submit(ctx context.Context, req intake.Request) (run, refused string, err error) {
	acc, err := k.intake.Submit(ctx, req)
	var (
		invalid     *intake.InvalidError
		unsupported *intake.UnsupportedError
	)
	switch {
	case err == nil:
		return acc.Run, "", nil
	case errors.As(err, &invalid), errors.As(err, &unsupported):
		return "", err.Error(), nil
	}
	return "", "", fmt.Errorf("fire for %s: %w", req.Firing.Time.Format(time.RFC3339), err)
}

func (k *Schedules) edition(ctx context.Context, s Schedule) (edition, error) {
	e, _, err := store.Get[edition](ctx, k.store, store.KindEdition, editionKey(s.ID, s.Version, s.Digest))
	if err != nil {
		return edition{}, fmt.Errorf("read version %d of the descriptor: %w", s.Version, err)
	}
	return e, nil
}

// lose says of firings that they have no run.
func (f *firing) lose(ctx context.Context, fate Fate) error {
	if err := f.tell(ctx, "", fate.Time, fate.Count, fate.Reason, fate.Why); err != nil {
		return err
	}
	f.note(Record{Time: fate.Time, Last: fate.Last, Count: fate.Count, Reason: fate.Reason, Why: fate.Why})
	return nil
}

func (f *firing) note(r Record) {
	all := slices.DeleteFunc(slices.Clone(f.ledger.Records), func(old Record) bool { return r.Run != "" && old.Run == r.Run })
	f.ledger.Records, f.changed = append(all, r), true
}

// tell says ScheduleMissed. What is said again has the same ID.
func (f *firing) tell(ctx context.Context, run string, at time.Time, count int, reason event.Reason, why string) error {
	s := f.schedule
	h := event.NewHeader(event.Derive("schedule-missed", s.ID, KeyOf(at), string(reason)), s.ID, s.Namespace, s.Owner, at.UTC())
	h.Schedule, h.Firing = s.ID, &at
	if count > 1 {
		why = fmt.Sprintf("%d firings, the first for %s: %s", count, at.UTC().Format(time.RFC3339), why)
	}
	f.log.Warn("schedule missed", zap.String("schedule", s.ID), zap.Time("firing", at), zap.String("run", run), zap.String("reason", string(reason)))
	return f.bus.Publish(ctx, event.Status{Header: h, Phase: event.PhaseSubmitted, Reason: event.ScheduleMissed, Message: why})
}

// backfill makes some of the runs that an order wants.
func (f *firing) backfill(ctx context.Context, o order) error {
	all, more := f.look.Times.Between(o.Next, o.To, most)
	missing, err := f.unmade(ctx, f.schedule.ID, all)
	if err != nil {
		return err
	}
	now := DecideBackfill(f.schedule.Rules, missing, f.busy())
	for _, at := range now {
		run, refused, err := f.submit(ctx, at)
		if err != nil {
			return err
		}
		r := Record{Time: at, Run: run, Open: true, Told: true}
		if refused != "" {
			r = Record{Time: at, Count: 1, Reason: Refused, Why: refused}
		}
		f.note(r)
	}
	next := o.To
	switch {
	case len(now) < len(missing):
		next = missing[len(now)]
	case more:
		next = all[len(all)-1].Add(time.Second)
	}
	return f.move(ctx, o, next)
}

// busy is how many runs go on, with those that were just made.
func (f *firing) busy() int {
	n := len(f.look.Going)
	for _, r := range f.ledger.Records {
		if r.Open && !slices.ContainsFunc(f.look.Going, func(g Going) bool { return g.Run == r.Run }) {
			n++
		}
	}
	return n
}

// unmade returns those of some times of a schedule that have no run.
func (k *Schedules) unmade(ctx context.Context, id string, all []time.Time) (missing []time.Time, err error) {
	for _, at := range all {
		_, err := k.intake.Fired(ctx, id, KeyOf(at))
		if errors.Is(err, store.ErrNotFound) {
			missing = append(missing, at)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// move says that all of an order before a time is done.
func (f *firing) move(ctx context.Context, o order, next time.Time) error {
	if next.Equal(o.Next) {
		return nil
	}
	if !next.Before(o.To) {
		return f.store.DeleteDoc(ctx, store.Doc{Kind: store.KindBackfill, Key: o.key})
	}
	o.Next = next
	_, err := store.Replace(ctx, f.store, store.KindBackfill, o.key, o.version, o)
	if errors.Is(err, store.ErrConflict) {
		return nil // another process did it
	}
	return err
}

// keep keeps what became of firings, unless another process fires by now.
func (f *firing) keep(ctx context.Context) error {
	if !f.changed {
		return nil
	}
	id := f.schedule.ID
	delete(f.known, id)
	if f.ledger.Fence > f.lease.Fence {
		f.lease = store.Lease{}
		return errFence
	}
	f.ledger.Fence = f.lease.Fence
	f.ledger.Records = trim(f.ledger.Records, f.schedule.Rules.History)
	var err error
	if f.ledger.version == 0 {
		err = store.Create(ctx, f.store, store.KindFirings, id, f.ledger.Ledger)
		f.ledger.version = 1
	} else {
		f.ledger.version, err = store.Replace(ctx, f.store, store.KindFirings, id, f.ledger.version, f.ledger.Ledger)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return nil // read again at the next look: what was fired is fired once
	}
	if err != nil {
		return fmt.Errorf("keep the firings of schedule %s: %w", id, err)
	}
	f.known[id] = f.ledger
	return nil
}
