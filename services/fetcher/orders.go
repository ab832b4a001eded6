package fetcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

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
}

// do does all that can be done now. What is away is waited for, growing times;
// what could not be done is done in a later round.
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
	r.rest = time.Now().Add(Pause(time.Second, r.vain))
}

// look looks for what nobody says: orders of other processes, cancel marks, and
// the progress.
func (r *round) look(ctx context.Context) error {
	if err := r.refresh(ctx); err != nil {
		return err
	}
	if err := r.canceledMeanwhile(ctx); err != nil {
		return err
	}
	runs := r.board.runs()
	told := r.board.progress(time.Now(), max(pace, time.Duration(len(runs))*crowd))
	if len(told) == 0 {
		return nil
	}
	return r.deps.Bus.Publish(ctx, told...)
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
	r.board.add(o, -1)
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

// canceledMeanwhile finds runs that are to end, of those whose data are moving.
// One that is not is enough for a transfer to go on.
func (r *round) canceledMeanwhile(ctx context.Context) error {
	for _, runs := range r.board.moving() {
		for _, run := range runs {
			canceled, err := r.canceled(ctx, run)
			if err != nil {
				return fmt.Errorf("look for the cancel mark of run %s: %w", run, err)
			}
			if !canceled {
				break
			}
			r.board.redo(run)
		}
	}
	return nil
}

// settleAll settles the orders about which something may have changed. Those
// that go on come first, so that no transfer ends that one of them wants.
func (r *round) settleAll(ctx context.Context) error {
	var (
		errs []error
		ends []func() error
	)
	for _, o := range r.board.dirty() {
		plan, err := r.settle(ctx, o)
		switch {
		case err != nil:
		case plan.Ending != nil:
			ends = append(ends, func() error { return r.end(ctx, o, plan) })
		case r.board.want(o.Submitted.Run, plan) && !o.Prefetch:
			err = r.deps.Bus.Publish(ctx, plan.Status)
		}
		if err != nil {
			r.board.redo(o.Submitted.Run)
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
		if err := r.deps.Bus.Publish(ctx, plan.Ending.Events(o.Submitted)...); err != nil {
			return fmt.Errorf("say the end of the order of run %s: %w", run, err)
		}
	}
	if err := r.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: openOrders + run}); err != nil {
		return fmt.Errorf("close the order of run %s: %w", run, err)
	}
	r.board.drop(run)
	r.deps.Log.Info("order ended", zap.String("run", run), zap.Bool("fetched", plan.Ending.Finished == nil))
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
		r.board.later(j, time.Now())
		return
	case errors.Is(err, store.ErrHeld) || errors.Is(err, errLost):
		r.board.later(j, time.Now().Add(r.settings.Look))
		return
	}
	if Full(err) {
		r.tellFull(ctx, j)
		r.room(ctx, j)
	}
	if j.tries++; j.tries == 1 {
		r.deps.Log.Warn("transfer waits", zap.String("key", j.key), zap.Error(err))
	}
	r.board.later(j, time.Now().Add(Pause(r.settings.Look, j.tries)))
}

// have has one source brought, by a Job where there are Jobs.
func (r *round) have(ctx context.Context, j *job) error {
	if r.deps.Jobs != nil {
		return r.byJob(ctx, j)
	}
	return r.transfer(ctx, j)
}

// room makes room for what a job brings, as far as nobody needs what there is.
func (r *round) room(ctx context.Context, j *job) {
	_, total := r.board.come(j)
	if total < 0 {
		total = endless
	}
	if err := (&Stock{r.fetcher}).Room(ctx, total); err != nil && !errors.Is(err, store.ErrHeld) {
		r.deps.Log.Warn("cannot make room", zap.Error(err))
	}
}

// tellFull tells each run, once, that it waits for space.
func (r *round) tellFull(ctx context.Context, j *job) {
	for _, run := range r.board.full(j) {
		if err := r.deps.Bus.Publish(ctx, NoSpace(run, j.source)); err != nil {
			r.deps.Log.Warn("cannot say that there is no space", zap.String("run", run.Run), zap.Error(err))
		}
	}
}
