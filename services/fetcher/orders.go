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
	page  = 100                   // orders that are listed at once
	again = 20                    // orders that are looked at again at each look, for what nobody said
	pace  = time.Second           // between two words about the progress of a run
	crowd = 10 * time.Millisecond // what each run adds to that
)

// orders is the part that carries out open orders, whoever remembered them,
// until ctx is done. Transfers end then, to be begun anew by who comes next.
func (f *fetcher) orders(ctx context.Context) error {
	defer f.sources.Close()
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(f.settings.Look)
	defer tick.Stop()
	r := &round{fetcher: f, running: &running, slots: make(chan struct{}, f.settings.Transfers)}
	for looked := true; ; {
		r.do(ctx, looked)
		select {
		case <-ctx.Done():
			return nil
		case <-f.board.look:
			looked = false
		case <-tick.C:
			looked = true
		}
	}
}

// round is what is done again and again.
type round struct {
	*fetcher

	running *sync.WaitGroup
	slots   chan struct{} // holds one for each transfer
	next    string        // run from which on orders are looked at again
	vain    int           // rounds in vain, in a row
	rest    time.Time     // until then nothing is tried
	ended   time.Time     // when it was last looked for Jobs that nobody wants
}

// longestRest is how long orders rest at most while a dependency is away: once it
// is back, nobody waits longer.
const longestRest = 8 * time.Second

// do does all that can be done now. It waits for a dependency that is away, growing
// times, and leaves the rest to a later round.
func (r *round) do(ctx context.Context, look bool) {
	if time.Now().Before(r.rest) {
		return
	}
	var err error
	if look {
		err = r.look(ctx)
	}
	err = errors.Join(err, r.settleAll(ctx))
	r.transfers(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
		r.vain = 0
		return
	case r.vain == 0:
		r.deps.Log.Warn("orders wait", zap.Error(err))
	}
	r.vain++
	r.rest = time.Now().Add(min(Pause(time.Second, r.vain), longestRest))
}

// look looks for what nobody says: orders of other processes, cancel marks, and
// the progress.
func (r *round) look(ctx context.Context) error {
	if err := r.refresh(ctx); err != nil {
		return err
	}
	if err := errors.Join(r.canceledMeanwhile(ctx), r.rereadAll(ctx)); err != nil {
		return err
	}
	if err := r.abandon(ctx, time.Now()); err != nil {
		return fmt.Errorf("end jobs that nobody wants: %w", err)
	}
	runs := r.board.runs()
	often := max(pace, time.Duration(len(runs))*crowd)
	told := r.board.progress(time.Now(), often)
	still, err := r.still(ctx, r.board.stuck(time.Now(), Silence(len(runs)), often))
	if err != nil {
		return err
	}
	if told = append(told, still...); len(told) == 0 {
		return nil
	}
	return r.deps.Bus.Publish(ctx, told...)
}

// still returns what there is to tell of orders of which there is nothing new.
// One that waits for what another process fetches is that one's to tell of.
func (r *round) still(ctx context.Context, orders []stuck) ([]event.Event, error) {
	var all []event.Event
	for _, s := range orders {
		elsewhere, err := r.elsewhere(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("look who fetches %s: %w", source.Redact(s.Source.URL), err)
		}
		if elsewhere {
			continue
		}
		if s.order.Prefetch {
			if err := r.note(ctx, s); err != nil {
				return nil, err
			}
			continue
		}
		if s.Full {
			s.Space = r.space(ctx, syscall.ENOSPC)
		}
		all = append(all, Still(s.order.Submitted, s.Wait))
	}
	return all, nil
}

// note writes what a prefetch waits for beside its order, for whoever asks how it
// stands. One that has ended meanwhile, or that another process writes, is left.
func (r *round) note(ctx context.Context, s stuck) error {
	key := openOrders + s.order.Submitted.Run
	o, version, err := store.Get[Order](ctx, r.deps.Store, store.KindOrder, key)
	if err == nil && o.Waits != s.Why {
		o.Waits = s.Why
		_, err = store.Replace(ctx, r.deps.Store, store.KindOrder, key, version, o)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("note what prefetch %s waits for: %w", s.order.Submitted.Run, err)
	}
	return nil
}

// elsewhere reports whether another process works on what an order waits for
// here.
func (r *round) elsewhere(ctx context.Context, s stuck) (bool, error) {
	if s.Begun {
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
	return time.Now().Before(l.Ends), err
}

// abandon ends Jobs that nobody wants, where it may be that nobody looks after
// them any more.
func (r *round) abandon(ctx context.Context, now time.Time) error {
	if r.deps.Jobs == nil || now.Sub(r.ended) < 2*r.settings.Lease {
		return nil
	}
	r.ended = now
	return (&Stock{r.fetcher}).abandon(ctx)
}

// refresh takes up the orders that are open and not known, forgets those that
// are known and not open, and has some of the others settled again.
func (r *round) refresh(ctx context.Context) error {
	open := make(map[string]bool)
	for after, more := openOrders, true; more; {
		docs, err := r.deps.Store.Docs(ctx, store.KindOrder, after, page)
		if err != nil {
			return fmt.Errorf("list orders: %w", err)
		}
		for _, d := range docs {
			run, ok := strings.CutPrefix(d.Key, openOrders)
			if !ok {
				return r.forget(ctx, open)
			}
			after, open[run] = d.Key, true
			r.take(run, d)
		}
		more = len(docs) == page
	}
	return r.forget(ctx, open)
}

// take takes up the order in d.
func (r *round) take(run string, d store.Doc) {
	if r.board.has(run) {
		return
	}
	var o Order
	if err := json.Unmarshal(d.Value, &o); err != nil {
		r.deps.Log.Error("order cannot be read", zap.String("run", run), zap.Error(err))
		return
	}
	r.board.add(o)
}

// forget forgets orders that are not open: nobody need say anything about them.
// Some of the others are looked at again.
func (r *round) forget(ctx context.Context, open map[string]bool) error {
	for _, run := range r.board.runs() {
		if open[run] {
			continue
		}
		_, err := r.deps.Store.Doc(ctx, store.KindOrder, openOrders+run)
		switch {
		case errors.Is(err, store.ErrNotFound):
			r.board.drop(run)
		case err != nil:
			return fmt.Errorf("look for the order of run %s: %w", run, err)
		}
	}
	runs := r.board.runs()
	from, _ := slices.BinarySearch(runs, r.next)
	to := min(from+again, len(runs))
	for _, run := range runs[from:to] {
		r.board.redo(run)
	}
	r.next = ""
	if to < len(runs) {
		r.next = runs[to]
	}
	return nil
}

// canceledMeanwhile finds runs that are to end, or have, of those whose data are
// moving. One that is not is enough for a transfer to go on.
func (r *round) canceledMeanwhile(ctx context.Context) error {
	for _, runs := range r.board.moving() {
		for _, run := range runs {
			want, err := r.wants(ctx, run)
			if err != nil {
				return fmt.Errorf("look whether run %s still wants its data: %w", run, err)
			}
			if want == Wanted {
				break
			}
			r.board.redo(run)
		}
	}
	return nil
}

// settleAll settles the orders about which something may have changed. Those
// that go on come first, so that no transfer ends that one of them wants, and
// their users are told before a transfer starts that may have more to tell.
func (r *round) settleAll(ctx context.Context) error {
	var (
		errs []error
		ends []func() error
		news []event.Event
		told []Order
	)
	for _, o := range r.board.dirty() {
		plan, err := r.settle(ctx, o)
		switch {
		case err != nil:
		case plan.Over:
			ends = append(ends, func() error { return r.close(ctx, o.Submitted.Run) })
		case plan.Ending != nil:
			ends = append(ends, func() error { return r.end(ctx, o, plan) })
		case r.board.want(o.Submitted.Run, plan) && !o.Prefetch:
			news, told = append(news, plan.Status), append(told, o)
		}
		if err != nil {
			r.board.redo(o.Submitted.Run)
			errs = append(errs, err)
		}
	}
	if len(news) > 0 {
		if err := r.deps.Bus.Publish(ctx, news...); err != nil {
			r.board.untold(told)
			errs = append(errs, err)
		}
	}
	for _, end := range ends {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// end says the end of an order, which is remembered already, and closes the
// order. Who finds one that has ended and is still open says it again, but
// leaves time to whoever is about to.
func (r *round) end(ctx context.Context, o Order, plan Plan) error {
	run := o.Submitted.Run
	r.board.redo(run) // should anything go wrong now
	if plan.Old && !r.board.ended(run, time.Now(), 2*r.settings.Look) {
		return nil
	}
	if !o.Prefetch {
		if err := r.say(ctx, o, plan.Ending); err != nil {
			return fmt.Errorf("say the end of the order of run %s: %w", run, err)
		}
	}
	if err := r.close(ctx, run); err != nil {
		return err
	}
	r.deps.Log.Info("order ended", zap.String("run", run), zap.Bool("fetched", plan.Ending.Finished == nil))
	return nil
}

// say says the end of an order. One that cannot be said, now or later, is
// replaced by one that can: no run waits for ever, and no other waits for it.
func (r *round) say(ctx context.Context, o Order, e *Ending) error {
	err := r.deps.Bus.Publish(ctx, e.Events(o.Submitted)...)
	if !errors.Is(err, event.ErrPoison) {
		return err
	}
	run := o.Submitted.Run
	r.deps.Log.Error("the end of an order cannot be said", zap.String("run", run), zap.Error(err))
	_, version, err := store.Get[Ending](ctx, r.deps.Store, store.KindOrder, doneOrders+run)
	if err != nil {
		return err
	}
	short := Ending{Finished: new(Unsayable(o.Submitted))}
	if _, err := store.Replace(ctx, r.deps.Store, store.KindOrder, doneOrders+run, version, short); err != nil {
		return err
	}
	if err := r.deps.Bus.Publish(ctx, *short.Finished); !errors.Is(err, event.ErrPoison) {
		return err
	}
	return nil // nothing can be said of this run: the gateway gives it up
}

// close closes an order of which nothing more is to be said.
func (r *round) close(ctx context.Context, run string) error {
	r.board.redo(run) // should anything go wrong now
	if err := r.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: openOrders + run}); err != nil {
		return fmt.Errorf("close the order of run %s: %w", run, err)
	}
	r.board.drop(run)
	return nil
}

// transfers starts as many as may run.
func (r *round) transfers(ctx context.Context) {
	for {
		select {
		case r.slots <- struct{}{}:
		default:
			return
		}
		j, ctx := r.board.start(ctx, time.Now())
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
func (r *round) attempt(ctx context.Context, j *job) {
	err := r.have(ctx, j)
	switch {
	case err == nil:
		r.board.stop(j)
		return
	case context.Cause(ctx) != nil:
		r.board.later(j, never, time.Now())
		return
	case errors.Is(err, store.ErrHeld) || errors.Is(err, errLost):
		r.board.later(j, abroad, time.Now().Add(r.settings.Look))
		return
	}
	why := failed
	if Full(err) {
		why = noRoom
		space := r.space(ctx, err)
		r.tellFull(ctx, j, space)
		r.room(ctx, j, space)
	}
	if j.tries++; j.tries == 1 {
		r.deps.Log.Warn("transfer waits", zap.String("key", j.key), zap.Error(err))
	}
	r.board.later(j, why, time.Now().Add(Pause(r.settings.Look, j.tries)))
}

// have has one source brought, by a Job where there are Jobs.
func (r *round) have(ctx context.Context, j *job) error {
	if r.deps.Jobs != nil {
		return r.byJob(ctx, j)
	}
	return r.transfer(ctx, j)
}

// room makes room for what a job brings, as far as nobody needs what there is.
func (r *round) room(ctx context.Context, j *job, space store.Space) {
	_, total, _ := r.board.come(j)
	if err := (&Stock{r.fetcher}).Room(ctx, total, space.Free); err != nil && !errors.Is(err, store.ErrHeld) {
		r.deps.Log.Warn("cannot make room", zap.Error(err))
	}
}

// tellFull tells each run, once, that it waits for space.
func (r *round) tellFull(ctx context.Context, j *job, space store.Space) {
	_, total, _ := r.board.come(j)
	for _, run := range r.board.full(j) {
		if err := r.deps.Bus.Publish(ctx, NoSpace(run, j.source, total, space)); err != nil {
			r.deps.Log.Warn("cannot say that there is no space", zap.String("run", run.Run), zap.Error(err))
		}
	}
}
