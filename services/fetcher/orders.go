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
	reconcileBatch   = 20                    // number of orders that each resync reconciles, to find changes without an event
	progressInterval = time.Second           // time between two progress reports of a run
	intervalPerRun   = 10 * time.Millisecond // added to progressInterval for each run
)

// maxBackoff is the maximum wait of orders while a dependency is unavailable. Once the
// dependency is back, no run waits longer.
const maxBackoff = 8 * time.Second

// pass carries out open orders, whichever process created them.
type pass struct {
	fetcher   *fetcher
	running   sync.WaitGroup
	slots     chan struct{} // one element for each running download
	resyncAt  time.Time     // time of the next resync
	nextRun   string        // run at which the next resync continues to reconcile
	orphansAt time.Time     // time of the last deletion of Jobs without an order
}

// runOrders carries out orders until ctx is done. Running downloads end then, and
// another process starts them again.
func (p *pass) runOrders(ctx context.Context) error {
	defer p.fetcher.cache.Sources.Close()
	defer p.running.Wait()
	return p.fetcher.loop.Run(ctx)
}

// run does the work that can be done now. It is a control.Work.
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

// resync finds changes without an event: orders of other processes, cancel marks, and
// progress.
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

// waitEvents returns the events of waiting orders. If another process runs the
// download, that process reports.
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

// storeWaitReason writes the reason why a prefetch waits into its order, unless the
// order is closed.
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

// isHeldElsewhere reports whether another process runs the download that an order waits
// for.
func (p *pass) isHeldElsewhere(ctx context.Context, w queue.Wait) (bool, error) {
	if w.Started {
		return false, nil
	}
	l, _, found, err := store.Find[store.Lease](ctx, p.fetcher.store, store.KindLease, p.fetcher.downloader.LeaseName(w.Source.Key()))
	return found && time.Now().Before(l.ExpiresAt), err
}

// deleteOrphanJobs deletes Jobs without an order, whose supervisor may have crashed. It
// does so at intervals.
func (p *pass) deleteOrphanJobs(ctx context.Context, now time.Time) error {
	if !p.fetcher.hasJobs || now.Sub(p.orphansAt) < 2*p.fetcher.settings.Lease {
		return nil
	}
	p.orphansAt = now
	return p.fetcher.supervisor.DeleteOrphans(ctx)
}

// listOrders adds new open orders to the queue, drops orders that are not open any
// more, and requeues some of the others.
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

// addOrder adds the order in d to the queue.
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

// dropClosed drops orders that are not open any more.
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

// requeueSome requeues the next orders, so that each has its turn.
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

// requeueCanceled requeues the orders of runs that were canceled or have ended while
// their data are downloading. It stops at the first active run of each download, which
// keeps the download running.
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

// reconcileDirty reconciles the orders that may have changed. Orders that continue come
// before orders that end, so that no download ends that one of them needs. Users get
// the status of an order before any report on the progress of its downloads.
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

// finishOrder publishes the stored outcome of an order, and closes the order. If
// another process stored the outcome, that process first gets time to publish it.
func (p *pass) finishOrder(ctx context.Context, o dataset.Order, plan decision) error {
	run := o.Submitted.Run
	p.fetcher.queue.Requeue(run) // in case a step below fails
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

// publishEnding publishes the outcome of an order. If the outcome can never be
// published, it is replaced by one that can, so that neither this run nor another waits
// forever.
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
	return nil // no event of this run can be published, so the gateway gives the run up
}

// closeOrder closes an order without further events.
func (p *pass) closeOrder(ctx context.Context, run string) error {
	p.fetcher.queue.Requeue(run) // in case the deletion fails
	if err := p.fetcher.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: dataset.OpenOrderPrefix + run}); err != nil {
		return fmt.Errorf("close the order of run %s: %w", run, err)
	}
	p.fetcher.queue.Drop(run)
	return nil
}

// startDownloads starts as many downloads as may run.
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

// download tries to download one source, and reschedules the download after a failure.
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

// makeRoom reports to each run once that it waits for space. Then it evicts objects
// that no run needs, to make room for a download.
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
