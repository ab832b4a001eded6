package projection_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "bai.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lifecycle returns the events of a run that is retried once.
func lifecycle() []event.Event {
	return []event.Event{
		submitted(), progress(1, 1, event.PhaseFetching, 50), fetched(2), status(1, 3, event.PhaseLaunching, "has a slot"), launched(1, 4),
		status(1, 5, event.PhaseRunning, "runs"), retried(2, 6, "p1"), launched(2, 7), status(2, 8, event.PhaseRunning, "runs"), cancel(9),
		finished(2, 10, event.Canceled, "p2"), finished(2, 11, event.Failed, "p2"),
	}
}

func TestEventsBecomeARunAndItsHistoryAndReplayChangesNothing(t *testing.T) {
	s, bus := open(t), eventtest.NewBus(t)
	var mu sync.Mutex
	var ended []event.Phase
	for _, step := range projection.NewProjector(s, func(run store.Run) {
		mu.Lock()
		defer mu.Unlock()
		ended = append(ended, run.Phase)
	}).Steps() {
		bus.Consume("gateway", step)
	}
	for _, ev := range lifecycle() {
		bus.PublishAndWait(ev)
	}
	mu.Lock()
	if diff := cmp.Diff([]event.Phase{event.PhaseFinished, event.PhaseFinished}, ended); diff != "" { // the second end is late
		t.Errorf("the projector tells of the ends (-want +got):\n%s", diff)
	}
	mu.Unlock()
	run, changes := storedRun(t, s)
	if len(changes) != len(lifecycle()) || run.Revision != int64(len(lifecycle())) {
		t.Errorf("%d changes, revision %d, of %d events", len(changes), run.Revision, len(lifecycle()))
	}
	if run.Phase != event.PhaseFinished || run.Outcome != event.Canceled || run.Attempt != 2 {
		t.Errorf("run %s %s, attempt %d", run.Phase, run.Outcome, run.Attempt)
	}
	bus.Replay()
	again, changesAgain := storedRun(t, s)
	if diff := cmp.Diff(run, again) + cmp.Diff(changes, changesAgain); diff != "" {
		t.Errorf("replayed:\n%s", diff)
	}
}

func storedRun(t *testing.T, s *sqlite.Store) (store.Run, []store.Change) {
	t.Helper()
	run, err := s.Run(t.Context(), runID)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := s.Changes(t.Context(), runID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return run, changes
}

// handleAll passes all events of a step's topic to the step, each twice in one call.
func handleAll(t *testing.T, step service.Step, evs []event.Event) {
	t.Helper()
	for _, ev := range evs {
		if ev.Topic() != step.Topic {
			continue
		}
		m, err := event.Encode(ev)
		if err == nil {
			_, err = step.Handle(t.Context(), []event.Message{m, m})
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestConsumersOfAllTopicsWriteOneRunAtOnce has several processes consume each topic,
// as after a rebalance.
func TestConsumersOfAllTopicsWriteOneRunAtOnce(t *testing.T) {
	s := open(t)
	var wg sync.WaitGroup
	for range 3 {
		for _, step := range projection.NewProjector(s, func(store.Run) {}).Steps() {
			wg.Go(func() { handleAll(t, step, lifecycle()) })
		}
	}
	wg.Wait()
	run, changes := storedRun(t, s)
	if run.Phase != event.PhaseFinished || run.Outcome != event.Canceled || run.Descriptor == "" || len(run.Data) != 1 {
		t.Errorf("run %+v", run)
	}
	seen := make(map[string]bool)
	for i, c := range changes {
		if c.Revision != int64(i)+1 || seen[c.Event] {
			t.Errorf("change %d: revision %d of event %s", i, c.Revision, c.Event)
		}
		seen[c.Event] = true
	}
	if len(changes) != len(lifecycle()) {
		t.Errorf("%d changes of %d events", len(changes), len(lifecycle()))
	}
}

// failingStore is a store whose writes fail.
type failingStore struct {
	*storetest.Memory

	err error
}

func (b failingStore) PutRun(context.Context, store.Run, store.Change) error { return b.err }

func TestWhatTheStoreSaysIsPassedOn(t *testing.T) {
	away := errors.New("away")
	for name, tt := range map[string]struct{ err, want error }{
		"a store that is away is an error for the operator": {away, away},
		"what the store will never have is poison":          {store.ErrRefused, event.ErrPoison},
		"what was recorded before is done":                  {store.ErrExists, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bus := eventtest.NewBus(t)
			for _, step := range projection.NewProjector(failingStore{storetest.NewMemory(), tt.err}, func(store.Run) {}).Steps() {
				bus.Consume("gateway", step)
			}
			if err := bus.TryPublish(submitted()); !errors.Is(err, tt.want) {
				t.Errorf("handled with %v, want %v", err, tt.want)
			}
		})
	}
}

// failingBus is a bus that is unavailable.
type failingBus struct{}

var errBusDown = errors.New("mute")

func (failingBus) Publish(context.Context, ...event.Event) error { return errBusDown }

// fixture is a store with one run, and a reconciler that checks the run.
type fixture struct {
	store *storetest.Memory
	bus   *eventtest.Bus
	rec   *projection.Reconciler
}

func newFixture(t *testing.T, events ...event.Event) *fixture {
	t.Helper()
	sc := &fixture{store: storetest.NewMemory(), bus: eventtest.NewBus(t)}
	for _, step := range projection.NewProjector(sc.store, func(store.Run) {}).Steps() {
		sc.bus.Consume("gateway", step)
	}
	for _, ev := range events {
		sc.bus.PublishAndWait(ev)
		if sub, ok := ev.(event.Submitted); ok {
			if err := store.Create(t.Context(), sc.store, store.KindSubmission, sub.Run, sub); err != nil {
				t.Fatal(err)
			}
		}
	}
	sc.bus.TakeLines()
	sc.rec = projection.NewReconciler(projection.Settings{}, sc.store, sc.bus, zap.NewNop())
	return sc
}

func (sc *fixture) reconcileAt(t *testing.T, after time.Duration) {
	t.Helper()
	if err := sc.rec.ReconcileAll(t.Context(), noon().Add(after)); err != nil {
		t.Fatal(err)
	}
}

func TestARunWithoutProgressIsStartedAnewAndThenGivenUp(t *testing.T) {
	sc := newFixture(t, submitted(), status(1, 1, event.PhaseFetching, "0 of 1"))
	var resubmitted int
	sc.bus.Consume("fetcher", service.On(func(context.Context, event.Submitted) ([]event.Event, error) {
		resubmitted++
		return nil, nil
	}))
	for minute := range 30 {
		sc.reconcileAt(t, time.Duration(minute)*time.Minute)
	}
	if got := sc.bus.TakeLines(); len(got) != 0 {
		t.Errorf("heard %v", got)
	}
	sc.reconcileAt(t, 31*time.Minute)
	want := []string{"bai.finished " + runID + " failed (platform NoProgress): the run made no progress for 15m0s in phase fetching, also after a new start: submit it again, and look into the logs of the services"}
	if diff := cmp.Diff(want, sc.bus.TakeLines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	run, err := sc.store.Run(t.Context(), runID)
	if err != nil || run.Reason != event.NoProgress {
		t.Errorf("run %+v, %v", run, err)
	}
	for minute := range 100 {
		sc.reconcileAt(t, time.Duration(40+minute)*time.Minute)
	}
	if got := sc.bus.TakeLines(); len(got) != 0 {
		t.Errorf("heard %v after the end", got)
	}
}

func TestACancelThatNobodyHeardIsSaidAgainUntilTheEnd(t *testing.T) {
	sc := newFixture(t, submitted(), launched(1, 3))
	if err := store.Create(t.Context(), sc.store, store.KindCancel, runID, cancel(5)); err != nil {
		t.Fatal(err)
	}
	sc.reconcileAt(t, time.Minute)
	sc.reconcileAt(t, 2*time.Minute)
	if diff := cmp.Diff([]string{"bai.commands " + runID + " cancel"}, sc.bus.TakeLines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if run, err := sc.store.Run(t.Context(), runID); err != nil || run.Phase != event.PhaseCanceling {
		t.Errorf("phase %s, %v", run.Phase, err)
	}
	sc.bus.PublishAndWait(finished(1, 9, event.Canceled))
	sc.bus.TakeLines()
	for minute := range 10 {
		sc.reconcileAt(t, time.Duration(3+minute)*time.Minute)
	}
	if got := sc.bus.TakeLines(); len(got) != 0 {
		t.Errorf("heard %v after the end", got)
	}
}

func TestWhatCouldNotBeSaidIsSaidAtTheNextLook(t *testing.T) {
	sc := newFixture(t, submitted())
	rec := projection.NewReconciler(projection.Settings{}, sc.store, failingBus{}, zap.NewNop())
	if err := rec.ReconcileAll(t.Context(), noon()); err != nil {
		t.Fatal(err)
	}
	for minute := range 100 {
		if err := rec.ReconcileAll(t.Context(), noon().Add(time.Duration(15+minute)*time.Minute)); !errors.Is(err, errBusDown) {
			t.Fatalf("swept with %v", err)
		}
	}
}

func TestTheReconcilerStopsWhenTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	rec := projection.NewReconciler(projection.Settings{Interval: time.Millisecond}, storetest.NewMemory(), failingBus{}, zap.NewNop())
	done := make(chan error, 1)
	go func() { done <- rec.Run(ctx) }()
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped with %v, want nil", err)
	}
}
