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
	settings  Settings
	deps      Deps
	sources   *source.Reader
	scheduler *scheduler
	holder    string // of leases
}

// Orders that are open and orders that have ended are documents of one kind.
// Only the open ones are ever listed.
const (
	openOrderPrefix = "open/"
	doneOrderPrefix = "done/"
)

// handleSubmitted ends the order of a run, or remembers it. It needs no store for a
// run without data.
func (f *fetcher) handleSubmitted(ctx context.Context, run event.Submitted) ([]event.Event, error) {
	d, faults := descriptors.Parser{Accepted: true}.Parse(run.File, []byte(run.Descriptor))
	if d == nil {
		return f.deferUnreadable(ctx, run, faults)
	}
	sources := append(Sources(d), UploadedCode(run.Bundle)...)
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
	if ended, err := f.runEnded(ctx, run.Run); ended || err != nil {
		return nil, err
	}
	for _, s := range sources {
		if refusal := new(source.Error); !s.Uploaded && errors.As(f.sources.Check(s.URL), &refusal) {
			return f.refuse(ctx, run, Failed(run, Failure{refusal.Reason, refusal.Class, refusal.Message}))
		}
	}
	return f.openOrder(ctx, Order{Submitted: run, Sources: sources, RequestedAt: time.Now().UTC()})
}

// runEnded reports whether a run has ended, and so needs no data: the end of its
// order need not be remembered any more.
func (f *fetcher) runEnded(ctx context.Context, run string) (bool, error) {
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
	if PastFetching(r.Phase) {
		return nil, nil
	}
	return []event.Event{end}, nil
}

// openOrder remembers an order, unless it can be ended at once. What there is to tell
// of it is told by who carries it out, so that all of that has one order.
func (f *fetcher) openOrder(ctx context.Context, o Order) ([]event.Event, error) {
	plan, err := f.reconcile(ctx, o)
	if err != nil {
		return nil, err
	}
	if plan.RunEnded {
		return nil, nil
	}
	if plan.Ending != nil {
		return plan.Ending.Events(o.Submitted), nil
	}
	err = store.Create(ctx, f.deps.Store, store.KindOrder, openOrderPrefix+o.Submitted.Run, o)
	if errors.Is(err, store.ErrExists) {
		f.scheduler.requeueNow(o.Submitted.Run)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("remember order of run %s: %w", o.Submitted.Run, err)
	}
	f.deps.Log.Info("order", zap.String("run", o.Submitted.Run), zap.Int("sources", len(o.Sources)), zap.Int("missing", len(plan.Missing)))
	f.scheduler.add(o)
	return nil, nil
}

// handleCommand looks at a run again, whose cancel mark was set before this was said.
// A run whose order another process works on is found by that one.
func (f *fetcher) handleCommand(_ context.Context, c event.Command) ([]event.Event, error) {
	f.scheduler.requeueNow(c.Run)
	return nil, nil
}

// reconcile gathers what is known for an order, and decides. An ending is
// remembered before it is returned: whoever settles an order that has ended
// gets the same one.
func (f *fetcher) reconcile(ctx context.Context, o Order) (Decision, error) {
	run := o.Submitted.Run
	before, err := f.ending(ctx, run)
	if err != nil {
		return Decision{}, err
	}
	if before != nil {
		return Decision{Ending: before, AlreadyStored: true}, nil
	}
	state, states, err := f.gather(ctx, o)
	if err != nil {
		return Decision{}, fmt.Errorf("look at the order of run %s: %w", run, err)
	}
	plan := Decide(o, state, states)
	if plan.Ending == nil {
		return plan, nil
	}
	if plan.Ending.Finished == nil {
		if present, err := f.claim(ctx, states); !present || err != nil {
			return f.retryUnclaimed(ctx, o, err)
		}
	}
	err = store.Create(ctx, f.deps.Store, store.KindOrder, doneOrderPrefix+run, plan.Ending)
	if errors.Is(err, store.ErrExists) {
		return f.reconcile(ctx, o)
	}
	if err != nil {
		return Decision{}, fmt.Errorf("remember the end of the order of run %s: %w", run, err)
	}
	return plan, nil
}

// retryUnclaimed settles an order again of which an object was evicted meanwhile.
func (f *fetcher) retryUnclaimed(ctx context.Context, o Order, err error) (Decision, error) {
	if err != nil {
		return Decision{}, fmt.Errorf("claim the data of run %s: %w", o.Submitted.Run, err)
	}
	return f.reconcile(ctx, o)
}

// ending returns how the order of a run has ended, nil if it has not.
func (f *fetcher) ending(ctx context.Context, run string) (*Ending, error) {
	e, _, err := store.Get[Ending](ctx, f.deps.Store, store.KindOrder, doneOrderPrefix+run)
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
func (f *fetcher) gather(ctx context.Context, o Order) (state RunState, states map[string]SourceState, err error) {
	if state, err = f.runState(ctx, o.Submitted.Run); state != RunActive || err != nil {
		return state, nil, err
	}
	states = make(map[string]SourceState)
	for _, s := range o.Sources {
		if _, ok := states[s.Key()]; ok {
			continue
		}
		if states[s.Key()], err = f.sourceState(ctx, s, o.RequestedAt); err != nil {
			return RunActive, nil, err
		}
	}
	return RunActive, states, nil
}

// runState returns whether a run still wants its data.
func (f *fetcher) runState(ctx context.Context, run string) (RunState, error) {
	if ended, err := f.runEnded(ctx, run); ended || err != nil {
		return RunEnded, err
	}
	_, err := f.deps.Store.Doc(ctx, store.KindCancel, run)
	if errors.Is(err, store.ErrNotFound) {
		return RunActive, nil
	}
	return RunCanceling, err
}

// sourceState returns what is known of a source by who asked at that time.
func (f *fetcher) sourceState(ctx context.Context, s Source, requestedAt time.Time) (SourceState, error) {
	if s.Uploaded {
		return f.uploadedCode(ctx, s)
	}
	t, _, err := store.Get[DownloadRecord](ctx, f.deps.Store, store.KindDownload, s.Key())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return SourceState{}, err
	}
	if t.Tree == nil && !source.IsFolder(s.URL) {
		if o, err := f.object(ctx, s.SHA256); o != nil || err != nil {
			return SourceState{Object: o}, err
		}
	}
	if !t.Satisfies(s, requestedAt) {
		return SourceState{}, nil
	}
	if t.Failure != nil {
		return SourceState{Failure: t.Failure}, nil
	}
	o, err := f.object(ctx, t.SHA256)
	return SourceState{Object: o, Tree: t.Tree, Revision: t.Revision}, err
}

// uploadedCode returns what is known of code that was sent along.
func (f *fetcher) uploadedCode(ctx context.Context, s Source) (SourceState, error) {
	o, err := f.object(ctx, s.SHA256)
	if err != nil {
		return SourceState{}, err
	}
	if o == nil {
		return SourceState{Failure: CodeLost(s)}, nil
	}
	return SourceState{Object: o}, nil
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
func (f *fetcher) claim(ctx context.Context, states map[string]SourceState) (present bool, err error) {
	for _, a := range states {
		if present, err := store.Claim(ctx, f.deps.Store, *a.Object, time.Now()); !present || err != nil {
			return false, err
		}
	}
	return true, nil
}
