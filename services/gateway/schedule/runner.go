package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// leaseName is the name of the lease of the process that fires schedules.
const leaseName = "schedules"

// Runner fires schedules while it holds the lease.
type Runner struct {
	settings Settings
	docs     documents
	runs     runs
	bus      Publisher
	log      *zap.Logger

	loop       *control.Loop
	leader     *control.Leader
	lease      store.Lease
	firingLogs map[string]storedFiringLog // firing logs as this process last wrote them under the lease, by schedule
}

// storedFiringLog is a firingLog and the version of its document.
type storedFiringLog struct {
	firingLog

	version int64
}

// NewRunner returns a Runner.
func NewRunner(s Settings, d Deps) *Runner {
	s.Interval, s.Lease = cmp.Or(s.Interval, defaultInterval), cmp.Or(s.Lease, defaultLease)
	r := &Runner{
		settings: s, docs: documents{d.Store}, runs: runs{d.Store, d.Submitter, d.Sets, d.Now}, bus: d.Bus, log: d.Log,
		leader:     control.NewLeader(d.Store, leaseName, d.Holder, s.Lease, control.LeaderSettings{Now: d.Now, Log: d.Log}),
		firingLogs: make(map[string]storedFiringLog),
	}
	r.loop = control.NewLoop("schedules", s.Interval, d.Log, r.work, control.LoopSettings{
		Eager: true, Failing: "schedules wait", Working: "schedules go on",
	})
	return r
}

// Wake makes the Runner start its next pass soon.
func (r *Runner) Wake() { r.loop.Wake() }

// Run fires schedules while this process holds the lease, and waits for the lease while
// another process holds it, until ctx is done.
func (r *Runner) Run(ctx context.Context) error {
	defer r.leader.Release(ctx)
	return r.loop.Run(ctx)
}

// work is one pass of the loop.
func (r *Runner) work(ctx context.Context) (time.Duration, error) {
	wake, err := r.Reconcile(ctx)
	switch {
	case errors.Is(err, store.ErrHeld):
		return max(r.settings.Interval, r.settings.Lease/3), nil
	case err != nil || wake.IsZero():
		return 0, err
	}
	if until := wake.Sub(r.runs.now()); until > 0 {
		return min(r.settings.Interval, until), nil
	}
	return -1, nil
}

// Reconcile makes all due firings, and returns the time of the next one, or zero if
// none will come. It renews the lease between two schedules. The error is
// store.ErrHeld while another process fires schedules. Only one goroutine at a time may
// call it.
func (r *Runner) Reconcile(ctx context.Context) (wake time.Time, err error) {
	if err := r.hold(ctx); err != nil {
		return time.Time{}, err
	}
	backfills, err := r.docs.backfills(ctx, "")
	if err != nil {
		return time.Time{}, err
	}
	var errs []error
	for d, err := range store.All[Schedule](ctx, r.docs.store, store.KindSchedule, "") {
		var next time.Time
		if err == nil {
			if err := r.hold(ctx); err != nil {
				return time.Time{}, errors.Join(append(errs, err)...)
			}
			next, err = r.reconcileSchedule(ctx, d.Value, backfills)
		}
		if ctx.Err() != nil || errors.Is(err, errFenced) {
			return time.Time{}, err
		}
		errs = append(errs, err)
		wake = earlier(wake, next)
	}
	return wake, errors.Join(errs...)
}

// hold acquires or renews the lease.
func (r *Runner) hold(ctx context.Context) error {
	lease, err := r.leader.Hold(ctx)
	if err != nil {
		return err
	}
	if lease.Fence != r.lease.Fence {
		clear(r.firingLogs)
		r.log.Info("fires schedules", zap.Int64("fence", lease.Fence))
	}
	r.lease = lease
	return nil
}

// reconcileSchedule makes the due firings of one schedule, and returns the time of the
// next one.
func (r *Runner) reconcileSchedule(ctx context.Context, s Schedule, backfills []Backfill) (wake time.Time, err error) {
	backfills = slices.DeleteFunc(slices.Clone(backfills), func(b Backfill) bool { return b.Schedule != s.ID })
	if !s.Deleted.IsZero() || s.Paused && len(backfills) == 0 {
		return time.Time{}, nil
	}
	f, err := r.newReconciler(ctx, s)
	if err == nil {
		wake, err = f.reconcile(ctx, backfills)
	}
	if err != nil && !errors.Is(err, errFenced) {
		err = fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	return wake, err
}

// newReconciler returns a reconciler of a schedule with its firing log.
func (r *Runner) newReconciler(ctx context.Context, s Schedule) (*reconciler, error) {
	times, err := s.Rules.times()
	if err != nil {
		return nil, err
	}
	firings, err := r.loadFirings(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	state := state{Rules: s.Rules, Times: times, Since: later(s.From, firings.Until), Now: r.runs.now().UTC()}
	return &reconciler{Runner: r, schedule: s, firings: firings, state: state}, nil
}

// loadFirings returns the firing log of a schedule.
func (r *Runner) loadFirings(ctx context.Context, id string) (storedFiringLog, error) {
	if l, ok := r.firingLogs[id]; ok {
		return l, nil
	}
	l, version, _, err := store.Find[firingLog](ctx, r.docs.store, store.KindFirings, id)
	if err != nil {
		return storedFiringLog{}, fmt.Errorf("read the firings of schedule %s: %w", id, err)
	}
	r.firingLogs[id] = storedFiringLog{l, version}
	return r.firingLogs[id], nil
}

// saveFirings stores a firing log, unless another process fires schedules by now.
func (r *Runner) saveFirings(ctx context.Context, id string, l storedFiringLog) error {
	delete(r.firingLogs, id)
	if l.Fence > r.lease.Fence {
		r.leader.Invalidate()
		return errFenced
	}
	l.Fence = r.lease.Fence
	var err error
	if l.version == 0 {
		err = store.Create(ctx, r.docs.store, store.KindFirings, id, l.firingLog)
		l.version = 1
	} else {
		l.version, err = store.Replace(ctx, r.docs.store, store.KindFirings, id, l.version, l.firingLog)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return nil // the next pass reads the log again, and fires nothing twice
	}
	if err != nil {
		return fmt.Errorf("keep the firings of schedule %s: %w", id, err)
	}
	r.firingLogs[id] = l
	return nil
}
