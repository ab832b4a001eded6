package fetcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// fetcher handles submitted runs, and carries out their orders.
type fetcher struct {
	settings Settings
	deps     Deps
	sources  *source.Reader
	board    *board
	holder   string // of leases
}

// Orders that are open and orders that have ended are documents of one kind.
// Only the open ones are ever listed.
const (
	openOrders = "open/"
	doneOrders = "done/"
)

// submitted ends the order of a run, or remembers it. It needs no store for a
// run without data.
func (f *fetcher) submitted(ctx context.Context, run event.Submitted) ([]event.Event, error) {
	d, faults := descriptors.Parser{Accepted: true}.Parse(run.File, []byte(run.Descriptor))
	if d == nil {
		return f.unread(ctx, run, faults)
	}
	sources := append(Sources(d), Sent(run.Script)...)
	if len(sources) == 0 {
		return []event.Event{Fetched(run, nil)}, nil
	}
	before, err := f.ending(ctx, run.Run)
	if err != nil {
		return nil, err
	}
	if before != nil {
		return before.Events(run), nil
	}
	if over, err := f.over(ctx, run.Run); over || err != nil {
		return nil, err
	}
	for _, s := range sources {
		if refusal := new(source.Error); !s.Sent && errors.As(f.sources.Check(s.URL), &refusal) {
			return f.refuse(ctx, run, Failed(run, Failure{refusal.Reason, refusal.Class, refusal.Message}))
		}
	}
	return f.order(ctx, Order{Submitted: run, Sources: sources, Asked: time.Now().UTC()})
}

// over reports whether a run has ended, and so needs no data: the end of its
// order need not be remembered any more.
func (f *fetcher) over(ctx context.Context, run string) (bool, error) {
	r, err := f.deps.Store.Run(ctx, run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at run %s: %w", run, err)
	}
	return r.Phase == event.PhaseFinished, nil
}

// refuse ends a run that never was to be fetched. One that was, before the
// language or the settings changed, is left alone when it is heard of again.
func (f *fetcher) refuse(ctx context.Context, run event.Submitted, end event.Finished) ([]event.Event, error) {
	r, err := f.deps.Store.Run(ctx, run.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("look at run %s: %w", run.Run, err)
	}
	if Past(r.Phase) {
		return nil, nil
	}
	return []event.Event{end}, nil
}

// order remembers an order, unless it can be ended at once. What there is to tell
// of it is told by who carries it out, so that all of that has one order.
func (f *fetcher) order(ctx context.Context, o Order) ([]event.Event, error) {
	plan, err := f.settle(ctx, o)
	if err != nil {
		return nil, err
	}
	if plan.Over {
		return nil, nil
	}
	if plan.Ending != nil {
		return plan.Ending.Events(o.Submitted), nil
	}
	err = store.Create(ctx, f.deps.Store, store.KindOrder, openOrders+o.Submitted.Run, o)
	if errors.Is(err, store.ErrExists) {
		f.board.touch(o.Submitted.Run)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("remember order of run %s: %w", o.Submitted.Run, err)
	}
	f.deps.Log.Info("order", zap.String("run", o.Submitted.Run), zap.Int("sources", len(o.Sources)), zap.Int("missing", len(plan.Missing)))
	f.board.add(o)
	return nil, nil
}

// command looks at a run again, whose cancel mark was set before this was said.
// A run whose order another process works on is found by that one.
func (f *fetcher) command(_ context.Context, c event.Command) ([]event.Event, error) {
	f.board.touch(c.Run)
	return nil, nil
}

// settle gathers what is known for an order, and decides. An ending is
// remembered before it is returned: whoever settles an order that has ended
// gets the same one.
func (f *fetcher) settle(ctx context.Context, o Order) (Plan, error) {
	run := o.Submitted.Run
	before, err := f.ending(ctx, run)
	if err != nil {
		return Plan{}, err
	}
	if before != nil {
		return Plan{Ending: before, Old: true}, nil
	}
	want, known, err := f.gather(ctx, o)
	if err != nil {
		return Plan{}, fmt.Errorf("look at the order of run %s: %w", run, err)
	}
	plan := Decide(o, want, known)
	if plan.Ending == nil {
		return plan, nil
	}
	if plan.Ending.Finished == nil {
		if there, err := f.claim(ctx, known); !there || err != nil {
			return f.unclaimed(ctx, o, err)
		}
	}
	err = store.Create(ctx, f.deps.Store, store.KindOrder, doneOrders+run, plan.Ending)
	if errors.Is(err, store.ErrExists) {
		return f.settle(ctx, o)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("remember the end of the order of run %s: %w", run, err)
	}
	return plan, nil
}

// unclaimed settles an order again of which an object was evicted meanwhile.
func (f *fetcher) unclaimed(ctx context.Context, o Order, err error) (Plan, error) {
	if err != nil {
		return Plan{}, fmt.Errorf("claim the data of run %s: %w", o.Submitted.Run, err)
	}
	return f.settle(ctx, o)
}

// ending returns how the order of a run has ended, nil if it has not.
func (f *fetcher) ending(ctx context.Context, run string) (*Ending, error) {
	e, _, err := store.Get[Ending](ctx, f.deps.Store, store.KindOrder, doneOrders+run)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // it has not, and nothing is wrong
	}
	if err != nil {
		return nil, fmt.Errorf("look for the end of the order of run %s: %w", run, err)
	}
	return &e, nil
}

// gather returns whether a run still wants its data, and what is known of its
// sources.
func (f *fetcher) gather(ctx context.Context, o Order) (want Want, known map[string]Answer, err error) {
	if want, err = f.wants(ctx, o.Submitted.Run); want != Wanted || err != nil {
		return want, nil, err
	}
	known = make(map[string]Answer)
	for _, s := range o.Sources {
		if _, ok := known[s.Key()]; ok {
			continue
		}
		if known[s.Key()], err = f.answer(ctx, s, o.Asked); err != nil {
			return Wanted, nil, err
		}
	}
	return Wanted, known, nil
}

// wants returns whether a run still wants its data.
func (f *fetcher) wants(ctx context.Context, run string) (Want, error) {
	if over, err := f.over(ctx, run); over || err != nil {
		return HasEnded, err
	}
	_, err := f.deps.Store.Doc(ctx, store.KindCancel, run)
	if errors.Is(err, store.ErrNotFound) {
		return Wanted, nil
	}
	return ToEnd, err
}

// answer returns what is known of a source by who asked at that time.
func (f *fetcher) answer(ctx context.Context, s Source, asked time.Time) (Answer, error) {
	if s.Sent {
		return f.sent(ctx, s)
	}
	t, _, err := store.Get[Transfer](ctx, f.deps.Store, store.KindTransfer, s.Key())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Answer{}, err
	}
	if t.Tree == nil && !source.Folder(s.URL) {
		if o, err := f.object(ctx, s.SHA256); o != nil || err != nil {
			return Answer{Object: o}, err
		}
	}
	if !t.Answers(s, asked) {
		return Answer{}, nil
	}
	if t.Failure != nil {
		return Answer{Failure: t.Failure}, nil
	}
	o, err := f.object(ctx, t.SHA256)
	return Answer{Object: o, Tree: t.Tree, Revision: t.Revision}, err
}

// sent returns what is known of code that was sent along.
func (f *fetcher) sent(ctx context.Context, s Source) (Answer, error) {
	o, err := f.object(ctx, s.SHA256)
	if err != nil {
		return Answer{}, err
	}
	if o == nil {
		return Answer{Failure: Lost(s)}, nil
	}
	return Answer{Object: o}, nil
}

// object returns the object with that content, nil if the store has none, or
// not all of it.
func (f *fetcher) object(ctx context.Context, sha256 string) (*store.Object, error) {
	if sha256 == "" {
		return nil, nil //nolint:nilnil // nothing is there, and nothing is wrong
	}
	o, _, err := store.Get[store.Object](ctx, f.deps.Store, store.KindObject, sha256)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // likewise
	}
	if err != nil {
		return nil, err
	}
	size, err := f.deps.Objects.Size(ctx, o.Key)
	if errors.Is(err, store.ErrNotFound) || err == nil && size != o.Size {
		return nil, nil //nolint:nilnil // likewise
	}
	return &o, err
}

// claim remembers that objects are used, so that none is evicted before the run
// that they are given to is remembered. It reports whether all still are there.
func (f *fetcher) claim(ctx context.Context, known map[string]Answer) (there bool, err error) {
	for _, a := range known {
		if there, err := store.Claim(ctx, f.deps.Store, *a.Object, time.Now()); !there || err != nil {
			return false, err
		}
	}
	return true, nil
}
