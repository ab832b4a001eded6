package fetcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	page             = 100                   // orders that are listed at once
	reconcileBatch   = 20                    // orders that are looked at again at each look, for what nobody said
	progressInterval = time.Second           // between two words about the progress of a run
	intervalPerRun   = 10 * time.Millisecond // what each run adds to that
)

// runOrders is the part that carries out open orders, whoever remembered them,
// until ctx is done. Transfers end then, to be begun anew by who comes next.
func (f *fetcher) runOrders(ctx context.Context) error {
	defer f.sources.Close()
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(f.settings.PollInterval)
	defer tick.Stop()
	r := &pass{fetcher: f, running: &running, slots: make(chan struct{}, f.settings.Downloads)}
	for resync := true; ; {
		r.run(ctx, resync)
		select {
		case <-ctx.Done():
			return nil
		case <-f.scheduler.wakeCh:
			resync = false
		case <-tick.C:
			resync = true
		}
	}
}

// pass is what is done again and again.
type pass struct {
	*fetcher

	running     *sync.WaitGroup
	slots       chan struct{} // holds one for each transfer
	nextRun     string        // run from which on orders are looked at again
	failures    int           // rounds in vain, in a row
	retryAt     time.Time     // until then nothing is tried
	abandonedAt time.Time     // when it was last looked for Jobs that nobody wants
}

// maxBackoff is how long orders rest at most while a dependency is away: once it
// is back, nobody waits longer.
const maxBackoff = 8 * time.Second

// run does all that can be done now. It waits for a dependency that is away, growing
// times, and leaves the rest to a later round.
func (r *pass) run(ctx context.Context, resync bool) {
	if time.Now().Before(r.retryAt) {
		return
	}
	var err error
	if resync {
		err = r.resync(ctx)
	}
	err = errors.Join(err, r.reconcileDirty(ctx))
	r.startDownloads(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
		r.failures = 0
		return
	case r.failures == 0:
		r.deps.Log.Warn("orders wait", zap.Error(err))
	}
	r.failures++
	r.retryAt = time.Now().Add(min(Backoff(time.Second, r.failures), maxBackoff))
}

// resync looks for what nobody says: orders of other processes, cancel marks, and
// the progress.
func (r *pass) resync(ctx context.Context) error {
	if err := r.listOrders(ctx); err != nil {
		return err
	}
	if err := errors.Join(r.requeueCanceled(ctx), r.retryUnreadable(ctx)); err != nil {
		return err
	}
	if err := r.deleteOrphanJobs(ctx, time.Now()); err != nil {
		return fmt.Errorf("end jobs that nobody wants: %w", err)
	}
	runs := r.scheduler.runs()
	interval := max(progressInterval, time.Duration(len(runs))*intervalPerRun)
	events := r.scheduler.progress(time.Now(), interval)
	waiting, err := r.waitEvents(ctx, r.scheduler.staleOrders(time.Now(), HeartbeatInterval(len(runs)), interval))
	if err != nil {
		return err
	}
	if events = append(events, waiting...); len(events) == 0 {
		return nil
	}
	return r.deps.Bus.Publish(ctx, events...)
}

// waitEvents returns what there is to tell of orders of which there is nothing new.
// One that waits for what another process fetches is that one's to tell of.
func (r *pass) waitEvents(ctx context.Context, orders []staleOrder) ([]event.Event, error) {
	var all []event.Event
	for _, s := range orders {
		elsewhere, err := r.isHeldElsewhere(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("look who fetches %s: %w", source.Redact(s.Source.URL), err)
		}
		if elsewhere {
			continue
		}
		if s.order.Prefetch {
			if err := r.storeWaitReason(ctx, s); err != nil {
				return nil, err
			}
			continue
		}
		if s.StoreFull {
			s.Space = r.space(ctx, syscall.ENOSPC)
		}
		all = append(all, WaitStatus(s.order.Submitted, s.Wait))
	}
	return all, nil
}

// storeWaitReason writes what a prefetch waits for beside its order, for whoever asks how it
// stands. One that has ended meanwhile, or that another process writes, is left.
func (r *pass) storeWaitReason(ctx context.Context, s staleOrder) error {
	key := openOrderPrefix + s.order.Submitted.Run
	o, version, err := store.Get[Order](ctx, r.deps.Store, store.KindOrder, key)
	if err == nil && o.WaitReason != s.Reason {
		o.WaitReason = s.Reason
		_, err = store.Replace(ctx, r.deps.Store, store.KindOrder, key, version, o)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("note what prefetch %s waits for: %w", s.order.Submitted.Run, err)
	}
	return nil
}

// isHeldElsewhere reports whether another process works on what an order waits for
// here.
func (r *pass) isHeldElsewhere(ctx context.Context, s staleOrder) (bool, error) {
	if s.Started {
		return false, nil
	}
	name := "fetch/" + s.Source.Key()
	if r.deps.Jobs != nil {
		name = "fetch-job/" + s.Source.Key()
	}
	l, _, err := store.Get[store.Lease](ctx, r.deps.Store, store.KindLease, name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return time.Now().Before(l.ExpiresAt), err
}

// deleteOrphanJobs ends Jobs that nobody wants, where it may be that nobody looks after
// them any more.
func (r *pass) deleteOrphanJobs(ctx context.Context, now time.Time) error {
	if r.deps.Jobs == nil || now.Sub(r.abandonedAt) < 2*r.settings.Lease {
		return nil
	}
	r.abandonedAt = now
	return (&DatasetCache{r.fetcher}).deleteOrphanJobs(ctx)
}

// listOrders takes up the orders that are open and not known, forgets those that
// are known and not open, and has some of the others settled again.
func (r *pass) listOrders(ctx context.Context) error {
	open := make(map[string]bool)
	for after, more := openOrderPrefix, true; more; {
		docs, err := r.deps.Store.Docs(ctx, store.KindOrder, after, page)
		if err != nil {
			return fmt.Errorf("list orders: %w", err)
		}
		for _, d := range docs {
			run, ok := strings.CutPrefix(d.Key, openOrderPrefix)
			if !ok {
				return r.dropClosed(ctx, open)
			}
			after, open[run] = d.Key, true
			r.addOrder(run, d)
		}
		more = len(docs) == page
	}
	return r.dropClosed(ctx, open)
}

// addOrder takes up the order in d.
func (r *pass) addOrder(run string, d store.Doc) {
	if r.scheduler.has(run) {
		return
	}
	var o Order
	if err := json.Unmarshal(d.Value, &o); err != nil {
		r.deps.Log.Error("order cannot be read", zap.String("run", run), zap.Error(err))
		return
	}
	r.scheduler.add(o)
}

// dropClosed forgets orders that are not open: nobody need say anything about them.
// Some of the others are looked at again.
func (r *pass) dropClosed(ctx context.Context, open map[string]bool) error {
	for _, run := range r.scheduler.runs() {
		if open[run] {
			continue
		}
		_, err := r.deps.Store.Doc(ctx, store.KindOrder, openOrderPrefix+run)
		switch {
		case errors.Is(err, store.ErrNotFound):
			r.scheduler.drop(run)
		case err != nil:
			return fmt.Errorf("look for the order of run %s: %w", run, err)
		}
	}
	runs := r.scheduler.runs()
	from, _ := slices.BinarySearch(runs, r.nextRun)
	to := min(from+reconcileBatch, len(runs))
	for _, run := range runs[from:to] {
		r.scheduler.requeue(run)
	}
	r.nextRun = ""
	if to < len(runs) {
		r.nextRun = runs[to]
	}
	return nil
}

// requeueCanceled finds runs that are to end, or have, of those whose data are
// moving. One that is not is enough for a transfer to go on.
func (r *pass) requeueCanceled(ctx context.Context) error {
	for _, runs := range r.scheduler.runsOfRunning() {
		for _, run := range runs {
			state, err := r.runState(ctx, run)
			if err != nil {
				return fmt.Errorf("look whether run %s still wants its data: %w", run, err)
			}
			if state == RunActive {
				break
			}
			r.scheduler.requeue(run)
		}
	}
	return nil
}

// reconcileDirty settles the orders about which something may have changed. Those
// that go on come first, so that no transfer ends that one of them wants, and
// their users are told before a transfer starts that may have more to tell.
func (r *pass) reconcileDirty(ctx context.Context) error {
	var (
		errs     []error
		ends     []func() error
		statuses []event.Event
		reported []Order
	)
	for _, o := range r.scheduler.takeDirty() {
		plan, err := r.reconcile(ctx, o)
		switch {
		case err != nil:
		case plan.RunEnded:
			ends = append(ends, func() error { return r.closeOrder(ctx, o.Submitted.Run) })
		case plan.Ending != nil:
			ends = append(ends, func() error { return r.finishOrder(ctx, o, plan) })
		case r.scheduler.setMissing(o.Submitted.Run, plan) && !o.Prefetch:
			statuses, reported = append(statuses, plan.Status), append(reported, o)
		}
		if err != nil {
			r.scheduler.requeue(o.Submitted.Run)
			errs = append(errs, err)
		}
	}
	if len(statuses) > 0 {
		if err := r.deps.Bus.Publish(ctx, statuses...); err != nil {
			r.scheduler.markUnreported(reported)
			errs = append(errs, err)
		}
	}
	for _, end := range ends {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// finishOrder says the end of an order, which is remembered already, and closes the
// order. Who finds one that has ended and is still open says it again, but
// leaves time to whoever is about to.
func (r *pass) finishOrder(ctx context.Context, o Order, plan Decision) error {
	run := o.Submitted.Run
	r.scheduler.requeue(run) // should anything go wrong now
	if plan.AlreadyStored && !r.scheduler.endedSince(run, time.Now(), 2*r.settings.PollInterval) {
		return nil
	}
	if !o.Prefetch {
		if err := r.publishEnding(ctx, o, plan.Ending); err != nil {
			return fmt.Errorf("say the end of the order of run %s: %w", run, err)
		}
	}
	if err := r.closeOrder(ctx, run); err != nil {
		return err
	}
	r.deps.Log.Info("order ended", zap.String("run", run), zap.Bool("fetched", plan.Ending.Finished == nil))
	return nil
}

// publishEnding says the end of an order. One that cannot be said, now or later, is
// replaced by one that can: no run waits for ever, and no other waits for it.
func (r *pass) publishEnding(ctx context.Context, o Order, e *Ending) error {
	err := r.deps.Bus.Publish(ctx, e.Events(o.Submitted)...)
	if !errors.Is(err, event.ErrPoison) {
		return err
	}
	run := o.Submitted.Run
	r.deps.Log.Error("the end of an order cannot be said", zap.String("run", run), zap.Error(err))
	_, version, err := store.Get[Ending](ctx, r.deps.Store, store.KindOrder, doneOrderPrefix+run)
	if err != nil {
		return err
	}
	replacement := Ending{Finished: new(Unpublishable(o.Submitted))}
	if _, err := store.Replace(ctx, r.deps.Store, store.KindOrder, doneOrderPrefix+run, version, replacement); err != nil {
		return err
	}
	if err := r.deps.Bus.Publish(ctx, *replacement.Finished); !errors.Is(err, event.ErrPoison) {
		return err
	}
	return nil // nothing can be said of this run: the gateway gives it up
}

// closeOrder closes an order of which nothing more is to be said.
func (r *pass) closeOrder(ctx context.Context, run string) error {
	r.scheduler.requeue(run) // should anything go wrong now
	if err := r.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: openOrderPrefix + run}); err != nil {
		return fmt.Errorf("close the order of run %s: %w", run, err)
	}
	r.scheduler.drop(run)
	return nil
}

// startDownloads starts as many as may run.
func (r *pass) startDownloads(ctx context.Context) {
	for {
		select {
		case r.slots <- struct{}{}:
		default:
			return
		}
		j, ctx := r.scheduler.startNext(ctx, time.Now())
		if j == nil {
			<-r.slots
			return
		}
		r.running.Go(func() {
			defer func() { <-r.slots }()
			r.attempt(ctx, j)
		})
	}
}

// attempt tries to bring one source, and says when it is to be tried again.
func (r *pass) attempt(ctx context.Context, j *download) {
	err := r.runDownload(ctx, j)
	switch {
	case err == nil:
		r.scheduler.complete(j)
		return
	case context.Cause(ctx) != nil:
		r.scheduler.reschedule(j, notStopped, time.Now())
		return
	case errors.Is(err, store.ErrHeld) || errors.Is(err, errLeaseLost):
		r.scheduler.reschedule(j, heldElsewhere, time.Now().Add(r.settings.PollInterval))
		return
	}
	reason := platformFault
	if IsNoSpace(err) {
		reason = noSpace
		space := r.space(ctx, err)
		r.reportNoSpace(ctx, j, space)
		r.makeRoom(ctx, j, space)
	}
	if j.failures++; j.failures == 1 {
		r.deps.Log.Warn("transfer waits", zap.String("key", j.key), zap.Error(err))
	}
	r.scheduler.reschedule(j, reason, time.Now().Add(Backoff(r.settings.PollInterval, j.failures)))
}

// runDownload has one source brought, by a Job where there are Jobs.
func (r *pass) runDownload(ctx context.Context, j *download) error {
	if r.deps.Jobs != nil {
		return r.downloadByJob(ctx, j)
	}
	return r.downloadSource(ctx, j)
}

// makeRoom makes room for what a job brings, as far as nobody needs what there is.
func (r *pass) makeRoom(ctx context.Context, j *download, space store.Space) {
	_, total, _ := r.scheduler.progressOf(j)
	if err := (&DatasetCache{r.fetcher}).MakeRoom(ctx, total, space.Free); err != nil && !errors.Is(err, store.ErrHeld) {
		r.deps.Log.Warn("cannot make room", zap.Error(err))
	}
}

// reportNoSpace tells each run, once, that it waits for space.
func (r *pass) reportNoSpace(ctx context.Context, j *download, space store.Space) {
	_, total, _ := r.scheduler.progressOf(j)
	for _, run := range r.scheduler.takeNoSpaceUnreported(j) {
		if err := r.deps.Bus.Publish(ctx, NoSpaceStatus(run, j.source, total, space)); err != nil {
			r.deps.Log.Warn("cannot say that there is no space", zap.String("run", run.Run), zap.Error(err))
		}
	}
}
