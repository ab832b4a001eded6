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

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/fetcher/queue"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	reconcileBatch   = 20                    // orders that are reconciled at each resync, for changes without an event
	progressInterval = time.Second           // between two reports of the progress of a run
	intervalPerRun   = 10 * time.Millisecond // that each run adds to that
)

// maxBackoff is how long orders rest at most while a dependency is away: once it is
// back, no run waits longer.
const maxBackoff = 8 * time.Second

// pass carries out open orders, whichever process remembered them.
type pass struct {
	fetcher   *fetcher
	running   sync.WaitGroup
	slots     chan struct{} // holds one for each download
	resyncAt  time.Time     // when orders are listed again
	nextRun   string        // run from which on orders are reconciled again
	orphansAt time.Time     // when Jobs without an order were last deleted
}

// runOrders carries out orders until ctx is done. Downloads end then, to be begun
// anew by another process.
func (p *pass) runOrders(ctx context.Context) error {
	defer p.fetcher.cache.Sources.Close()
	defer p.running.Wait()
	return p.fetcher.loop.Run(ctx)
}

// run does all that can be done now. It is a control.Work.
func (p *pass) run(ctx context.Context) (next time.Duration, err error) {
	if !time.Now().Before(p.resyncAt) {
		p.resyncAt = time.Now().Add(p.fetcher.settings.PollInterval)
		err = p.resync(ctx)
	}
	err = errors.Join(err, p.reconcileDirty(ctx))
	p.startDownloads(ctx)
	if err != nil {
		p.resyncAt = time.Time{}
		return 0, err
	}
	return time.Until(p.resyncAt), nil
}

// resync finds changes that have no event: orders of other processes, cancel marks,
// and progress.
func (p *pass) resync(ctx context.Context) error {
	f := p.fetcher
	if err := p.listOrders(ctx); err != nil {
		return err
	}
	if err := errors.Join(p.requeueCanceled(ctx), f.retryUnreadable(ctx)); err != nil {
		return err
	}
	if err := p.deleteOrphanJobs(ctx, time.Now()); err != nil {
		return fmt.Errorf("end jobs that nobody wants: %w", err)
	}
	runs := len(f.queue.Runs())
	interval := max(progressInterval, time.Duration(runs)*intervalPerRun)
	var events []event.Event
	for _, moved := range f.queue.TakeProgress(time.Now(), interval) {
		events = append(events, progressStatus(moved))
	}
	waiting, err := p.waitEvents(ctx, f.queue.TakeWaits(time.Now(), heartbeatInterval(runs), interval))
	if err != nil {
		return err
	}
	if events = append(events, waiting...); len(events) == 0 {
		return nil
	}
	return f.bus.Publish(ctx, events...)
}

// waitEvents returns the events about orders that wait. An order that waits for a
// download of another process is left to that one.
func (p *pass) waitEvents(ctx context.Context, waits []queue.Wait) ([]event.Event, error) {
	var all []event.Event
	for _, w := range waits {
		elsewhere, err := p.isHeldElsewhere(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("look who fetches %s: %w", source.Redact(w.Source.URL), err)
		}
		switch {
		case elsewhere:
		case w.Order.Prefetch:
			if err := p.storeWaitReason(ctx, w); err != nil {
				return nil, err
			}
		default:
			if w.StoreFull {
				w.Space = download.FreeSpace(ctx, p.fetcher.objects, p.fetcher.log, syscall.ENOSPC)
			}
			all = append(all, waitStatus(w))
		}
	}
	return all, nil
}

// storeWaitReason writes why a prefetch waits into its order, unless that is closed.
func (p *pass) storeWaitReason(ctx context.Context, w queue.Wait) error {
	run := w.Order.Submitted.Run
	note := func(o dataset.Order, found bool) (dataset.Order, bool, error) {
		changed := o.WaitReason != w.Reason
		o.WaitReason = w.Reason
		return o, found && changed, nil
	}
	_, err := store.Update(ctx, p.fetcher.store, store.KindOrder, dataset.OpenOrderPrefix+run, note)
	if err != nil {
		return fmt.Errorf("note what prefetch %s waits for: %w", run, err)
	}
	return nil
}

// isHeldElsewhere reports whether another process runs the download that an order
// waits for here.
func (p *pass) isHeldElsewhere(ctx context.Context, w queue.Wait) (bool, error) {
	if w.Started {
		return false, nil
	}
	l, _, found, err := store.Find[store.Lease](ctx, p.fetcher.store, store.KindLease, p.fetcher.downloader.LeaseName(w.Source.Key()))
	return found && time.Now().Before(l.ExpiresAt), err
}

// deleteOrphanJobs ends Jobs without an order, where some may have lost their
// supervisor.
func (p *pass) deleteOrphanJobs(ctx context.Context, now time.Time) error {
	if !p.fetcher.hasJobs || now.Sub(p.orphansAt) < 2*p.fetcher.settings.Lease {
		return nil
	}
	p.orphansAt = now
	return p.fetcher.supervisor.DeleteOrphans(ctx)
}

// listOrders takes up the orders that are open and not known, forgets those that are
// known and not open, and has some of the others reconciled.
func (p *pass) listOrders(ctx context.Context) error {
	open := make(map[string]bool)
	for d, err := range store.AllDocs(ctx, p.fetcher.store, store.KindOrder, dataset.OpenOrderPrefix) {
		if err != nil {
			return fmt.Errorf("list orders: %w", err)
		}
		run := strings.TrimPrefix(d.Key, dataset.OpenOrderPrefix)
		open[run] = true
		p.addOrder(run, d)
	}
	if err := p.dropClosed(ctx, open); err != nil {
		return err
	}
	p.requeueSome()
	return nil
}

// addOrder takes up the order in d.
func (p *pass) addOrder(run string, d store.Doc) {
	if p.fetcher.queue.Has(run) {
		return
	}
	var o dataset.Order
	if err := json.Unmarshal(d.Value, &o); err != nil {
		p.fetcher.log.Error("order cannot be read", zap.String("run", run), zap.Error(err))
		return
	}
	p.fetcher.queue.Add(o)
}

// dropClosed forgets orders that are not open.
func (p *pass) dropClosed(ctx context.Context, open map[string]bool) error {
	for _, run := range p.fetcher.queue.Runs() {
		if open[run] {
			continue
		}
		_, err := p.fetcher.store.Doc(ctx, store.KindOrder, dataset.OpenOrderPrefix+run)
		switch {
		case errors.Is(err, store.ErrNotFound):
			p.fetcher.queue.Drop(run)
		case err != nil:
			return fmt.Errorf("look for the order of run %s: %w", run, err)
		}
	}
	return nil
}

// requeueSome has the next orders reconciled, of all in turn.
func (p *pass) requeueSome() {
	runs := p.fetcher.queue.Runs()
	from, _ := slices.BinarySearch(runs, p.nextRun)
	to := min(from+reconcileBatch, len(runs))
	for _, run := range runs[from:to] {
		p.fetcher.queue.Requeue(run)
	}
	p.nextRun = ""
	if to < len(runs) {
		p.nextRun = runs[to]
	}
}

// requeueCanceled has the orders reconciled of runs that were canceled, or have
// ended, while their data move. A download goes on for one run that is active.
func (p *pass) requeueCanceled(ctx context.Context) error {
	for _, runs := range p.fetcher.queue.RunsOfRunning() {
		for _, run := range runs {
			state, err := p.fetcher.runState(ctx, run)
			if err != nil {
				return fmt.Errorf("look whether run %s still wants its data: %w", run, err)
			}
			if state == runActive {
				break
			}
			p.fetcher.queue.Requeue(run)
		}
	}
	return nil
}

// reconcileDirty reconciles the orders about which something may have changed. Those
// that go on come first, so that no download ends that one of them needs, and their
// users are told before a download starts that reports progress.
func (p *pass) reconcileDirty(ctx context.Context) error {
	var (
		errs     []error
		ends     []func() error
		statuses []event.Event
		reported []dataset.Order
	)
	q := p.fetcher.queue
	for _, o := range q.TakeDirty() {
		run := o.Submitted.Run
		plan, err := p.fetcher.reconcile(ctx, o)
		switch {
		case err != nil:
			q.Requeue(run)
			errs = append(errs, err)
		case plan.RunEnded:
			ends = append(ends, func() error { return p.closeOrder(ctx, run) })
		case plan.Ending != nil:
			ends = append(ends, func() error { return p.finishOrder(ctx, o, plan) })
		case q.SetMissing(run, plan.Missing, int(plan.Status.Progress.Done)) && !o.Prefetch:
			statuses, reported = append(statuses, plan.Status), append(reported, o)
		}
	}
	if len(statuses) > 0 {
		if err := p.fetcher.bus.Publish(ctx, statuses...); err != nil {
			q.MarkUnreported(reported)
			errs = append(errs, err)
		}
	}
	for _, end := range ends {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// finishOrder publishes the outcome of an order, which is remembered already, and
// closes the order. An outcome that was found stored is published again, but after
// the process that stored it had time to do so.
func (p *pass) finishOrder(ctx context.Context, o dataset.Order, plan decision) error {
	run := o.Submitted.Run
	p.fetcher.queue.Requeue(run) // should anything go wrong now
	if plan.AlreadyStored && !p.fetcher.queue.EndedSince(run, time.Now(), 2*p.fetcher.settings.PollInterval) {
		return nil
	}
	if !o.Prefetch {
		if err := p.publishEnding(ctx, o, plan.Ending); err != nil {
			return fmt.Errorf("say the end of the order of run %s: %w", run, err)
		}
	}
	if err := p.closeOrder(ctx, run); err != nil {
		return err
	}
	p.fetcher.log.Info("order ended", zap.String("run", run), zap.Bool("fetched", plan.Ending.Finished == nil))
	return nil
}

// publishEnding publishes the outcome of an order. One that can never be published is
// replaced by one that can: no run waits for ever, and no other waits for it.
func (p *pass) publishEnding(ctx context.Context, o dataset.Order, e *dataset.Ending) error {
	f, run := p.fetcher, o.Submitted.Run
	err := f.bus.Publish(ctx, eventsOf(*e, o.Submitted)...)
	if !errors.Is(err, event.ErrPoison) {
		return err
	}
	f.log.Error("the end of an order cannot be said", zap.String("run", run), zap.Error(err))
	replacement := dataset.Ending{Finished: new(unpublishable(o.Submitted))}
	replace := func(dataset.Ending, bool) (dataset.Ending, bool, error) { return replacement, true, nil }
	_, err = store.Update(ctx, f.store, store.KindOrder, dataset.DoneOrderPrefix+run, replace)
	if err != nil {
		return err
	}
	if err := f.bus.Publish(ctx, *replacement.Finished); !errors.Is(err, event.ErrPoison) {
		return err
	}
	return nil // no event of this run can be published: the gateway gives it up
}

// closeOrder closes an order about which no event follows any more.
func (p *pass) closeOrder(ctx context.Context, run string) error {
	p.fetcher.queue.Requeue(run) // should anything go wrong now
	if err := p.fetcher.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: dataset.OpenOrderPrefix + run}); err != nil {
		return fmt.Errorf("close the order of run %s: %w", run, err)
	}
	p.fetcher.queue.Drop(run)
	return nil
}

// startDownloads starts as many as may run.
func (p *pass) startDownloads(ctx context.Context) {
	for {
		select {
		case p.slots <- struct{}{}:
		default:
			return
		}
		d, ctx := p.fetcher.queue.StartNext(ctx, time.Now())
		if d == nil {
			<-p.slots
			return
		}
		p.running.Go(func() {
			defer func() { <-p.slots }()
			p.download(ctx, d)
		})
	}
}

// download tries to bring one source, and has the queue try again where it failed.
func (p *pass) download(ctx context.Context, d *queue.Download) {
	f := p.fetcher
	err := f.downloader.Download(ctx, download.Request{
		Source: d.Source, RequestedAt: d.RequestedAt, OnProgress: d.SetProgress, OnWait: d.SetWaitReason,
	})
	switch {
	case err == nil:
		f.queue.Complete(d)
		return
	case context.Cause(ctx) != nil:
		f.queue.Reschedule(d, queue.NotStopped, time.Now())
		return
	case errors.Is(err, store.ErrHeld) || errors.Is(err, control.ErrLost):
		f.queue.Reschedule(d, queue.HeldElsewhere, time.Now().Add(f.settings.PollInterval))
		return
	}
	reason := queue.PlatformFault
	if download.IsNoSpace(err) {
		reason = queue.NoSpace
		p.makeRoom(ctx, d, download.FreeSpace(ctx, f.objects, f.log, err))
	}
	if d.Backoff == nil {
		d.Backoff = &control.Backoff{First: f.settings.PollInterval}
		f.log.Warn("transfer waits", zap.String("key", d.Key), zap.Error(err))
	}
	f.queue.Reschedule(d, reason, time.Now().Add(d.Backoff.Next()))
}

// makeRoom tells each run, once, that it waits for space, and makes room for a
// download as far as no run needs the objects that there are.
func (p *pass) makeRoom(ctx context.Context, d *queue.Download, space store.Space) {
	f, total := p.fetcher, d.Total()
	for _, run := range f.queue.TakeNoSpaceUnreported(d) {
		if err := f.bus.Publish(ctx, noSpaceStatus(run, d.Source, total, space)); err != nil {
			f.log.Warn("cannot say that there is no space", zap.String("run", run.Run), zap.Error(err))
		}
	}
	if err := f.cache.MakeRoom(ctx, total, space.Free); err != nil && !errors.Is(err, store.ErrHeld) {
		f.log.Warn("cannot make room", zap.Error(err))
	}
}
