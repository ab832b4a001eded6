package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

const descriptor = `spec_version = "1.0"
[info]
description = "d"
[hardware]
cpus = 1
[env]
docker_image = "alpine:3"
[[output.destinations]]
name = "warehouse"
columns = { run = "run.id", rate = "metric.rate.median", team = "label.team", cell = "run.cell" }
[[output.destinations]]
name = "lake"
rows = "samples"
columns = { run = "run.id", value = "sample.value" }
`

// memory is a destination that keeps the contract. It fails while it has an error.
type memory struct {
	mu    sync.Mutex
	rows  map[string][]string
	fails error
	about deliver.About // of the last delivery
	value []descriptors.ColumnValue
}

func (m *memory) Deliver(_ context.Context, d deliver.Delivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return m.fails
	}
	if _, ok := m.rows[d.Run]; ok {
		return nil
	}
	m.about, m.value = d.About, nil
	for _, c := range d.Columns {
		m.value = append(m.value, c.Value)
	}
	var rows []string
	for row, err := range d.Rows {
		if err != nil {
			return err
		}
		rows = append(rows, strings.TrimSpace(fmt.Sprintln(row...)))
	}
	m.rows[d.Run] = rows
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = err
}

// all returns the rows of the run r.
func (m *memory) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rows["r"])
}

func newMemory() *memory { return &memory{rows: make(map[string][]string)} }

// newStore returns a store with a run, its summary and three samples, one of them of an earlier attempt.
func newStore(t *testing.T) (storetest.Store, store.Run) {
	t.Helper()
	s := storetest.Open(t)
	r := store.Run{
		ID: "r", Namespace: "perf", Owner: "ann", Descriptor: descriptor, Phase: event.PhaseFinished, Attempt: 2, Revision: 1,
		Labels: map[string]string{"team": "pets"},
	}
	errs := []error{
		s.PutRun(t.Context(), r, store.Change{Run: "r", Revision: 1, Event: "e"}),
		store.Create(t.Context(), s, store.KindSummary, "r", store.Summaries{
			Run: "r", Attempt: 2, Complete: true, Summaries: []store.Summary{{Metric: "rate", Unit: "1/s", N: 2, Median: 2.5}},
		}),
	}
	for attempt, values := range map[int][]float64{1: {9}, 2: {2, 3}} {
		o := storetest.NewOrigin("r", fmt.Sprint("p", attempt))
		o.Kind, o.Attempt = event.StreamMetrics, attempt
		b := store.Samples{Origin: o}
		for i, v := range values {
			b.Samples = append(b.Samples, storetest.NewSample(int64(i+1), "rate", v))
		}
		errs = append(errs, s.AppendSamples(t.Context(), []store.Samples{b}))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// run runs a deliverer until done holds.
func run(t *testing.T, d deliver.Deliverer, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for _, part := range d.Runnables() {
		all.Go(func() { _ = part(ctx) })
	}
	for !done() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Errorf("%s: not after five minutes", what)
	}
	cancel()
	all.Wait()
}

// owed returns the document of a run as text, "" for none.
func owed(t *testing.T, s store.Getter) string {
	t.Helper()
	d, _, _, err := store.Find[store.Owed](t.Context(), s, store.KindOwed, "r")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, to := range d.Destinations {
		all = append(all, strings.TrimSuffix(to.Name+": "+to.Error, ": "))
	}
	return strings.Join(all, "; ")
}

func newDeliverer(s deliver.Store, log *zap.Logger, to map[string]deliver.Destination) deliver.Deliverer {
	return deliver.New(deliver.Deps{Store: s, Destinations: to, Retry: 5 * time.Millisecond, Poll: 5 * time.Millisecond, Now: time.Now, Log: log})
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestARunIsDeliveredToAllItsDestinations(t *testing.T) {
	s, r := newStore(t)
	warehouse, lake := newMemory(), newMemory()
	d := newDeliverer(s, zap.NewNop(), map[string]deliver.Destination{"warehouse": warehouse, "lake": lake})
	for range 2 {
		if err := d.Owe(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	run(t, d, "nothing is owed", func() bool { return owed(t, s) == "" })
	want(t, "columns cell, rate, run and team", warehouse.all(), []string{"<nil> 2.5 r pets"})
	want(t, "samples of the last attempt", lake.all(), []string{"r 2", "r 3"})
}

func TestADestinationThatFailsIsOwedUntilItWorks(t *testing.T) {
	s, r := newStore(t)
	logs, seen := observer.New(zap.InfoLevel)
	warehouse, lake := newMemory(), newMemory()
	warehouse.fail(errors.New("the database cannot be reached"))
	d := newDeliverer(s, zap.New(logs), map[string]deliver.Destination{"warehouse": warehouse, "lake": lake})
	if err := d.Owe(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	run(t, d, "the lake is filled", func() bool { return owed(t, s) == "warehouse: the database cannot be reached" })
	want(t, "samples", len(lake.all()), 2)
	warehouse.fail(nil)
	run(t, d, "nothing is owed", func() bool { return owed(t, s) == "" })
	want(t, "rows", len(warehouse.all()), 1)
	var messages []string
	for _, m := range seen.All() {
		messages = append(messages, m.Message)
	}
	want(t, "log", messages, []string{"destination takes no rows, retrying", "destination takes rows again"})
}

func TestADeliveryTellsTheRunAndTheMeaningOfItsColumns(t *testing.T) {
	s, r := newStore(t)
	started, ended := time.Unix(100, 0).UTC(), time.Unix(200, 0).UTC()
	r.Revision, r.Name, r.File, r.Set, r.Cell, r.Outcome, r.Started, r.Ended = 2, "n", "f.toml", "s", "x=1", event.Failed, &started, &ended
	if err := s.PutRun(t.Context(), r, store.Change{Run: r.ID, Revision: 2, Event: "e2"}); err != nil {
		t.Fatal(err)
	}
	warehouse := newMemory()
	d := newDeliverer(s, zap.NewNop(), map[string]deliver.Destination{"warehouse": warehouse, "lake": newMemory()})
	if err := d.Owe(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	run(t, d, "nothing is owed", func() bool { return owed(t, s) == "" })
	want(t, "the run", warehouse.about, deliver.About{
		Name: "n", Namespace: "perf", Owner: "ann", Set: "s", Cell: "x=1", File: "f.toml", Outcome: event.Failed, Attempt: 2, Started: started, Ended: ended,
		Labels: map[string]string{"team": "pets"},
	})
	want(t, "the columns cell, rate, run and team", warehouse.value, []descriptors.ColumnValue{
		{From: descriptors.FromRun, Field: "cell"},
		{From: descriptors.FromMetric, Name: "rate", Field: "median"},
		{From: descriptors.FromRun, Field: "id"},
		{From: descriptors.FromLabel, Name: "team"},
	})
}

// silent is a destination that never answers.
type silent struct{}

func (silent) Deliver(ctx context.Context, _ deliver.Delivery) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestADestinationThatDoesNotAnswerHoldsUpNoOther(t *testing.T) {
	s, r := newStore(t)
	lake := newMemory()
	d := newDeliverer(s, zap.NewNop(), map[string]deliver.Destination{"warehouse": silent{}, "lake": lake})
	const runs = 20
	for i := range runs {
		r.ID = fmt.Sprint("r", i)
		if err := errors.Join(s.PutRun(t.Context(), r, store.Change{Run: r.ID, Revision: 1, Event: "e"}), d.Owe(t.Context(), r)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, d, "the lake has all runs", func() bool {
		lake.mu.Lock()
		defer lake.mu.Unlock()
		return len(lake.rows) == runs
	})
}

// slow is a destination that takes a while for each row, and for what follows the rows.
type slow struct {
	pause time.Duration
	done  chan error // the result of each delivery
}

func (s slow) Deliver(ctx context.Context, d deliver.Delivery) error {
	err := s.deliver(ctx, d)
	select {
	case s.done <- err:
	default:
	}
	return err
}

func (s slow) deliver(ctx context.Context, d deliver.Delivery) error {
	for _, err := range d.Rows {
		if err := errors.Join(err, s.wait(ctx)); err != nil {
			return err
		}
	}
	return s.wait(ctx)
}

func (s slow) wait(ctx context.Context) error {
	select {
	case <-time.After(s.pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestADeliveryMayLastAsLongAsItsRowsAreTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		pause time.Duration
		want  error
	}{
		"each row within the time":     {9 * time.Minute, nil},
		"a row that takes too long":    {11 * time.Minute, context.Canceled},
		"no pause between rows at all": {0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r := newStore(t)
				ctx, cancel := context.WithCancel(t.Context())
				to := slow{tt.pause, make(chan error, 1)}
				d := deliver.New(deliver.Deps{
					Store: s, Destinations: map[string]deliver.Destination{"warehouse": newMemory(), "lake": to}, Poll: time.Hour, Now: time.Now, Log: zap.NewNop(),
				})
				if err := d.Owe(ctx, r); err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				for _, part := range d.Runnables() {
					all.Go(func() { _ = part(ctx) })
				}
				if err := <-to.done; !errors.Is(err, tt.want) {
					t.Errorf("the delivery of two rows ended with %v, want %v", err, tt.want)
				}
				cancel()
				all.Wait()
			})
		})
	}
}

func TestNothingIsOwedOfARunThatWasDeleted(t *testing.T) {
	s, r := newStore(t)
	r.ID = "deleted"
	d := newDeliverer(s, zap.NewNop(), map[string]deliver.Destination{"warehouse": newMemory(), "lake": newMemory()})
	if err := d.Owe(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	run(t, d, "nothing is owed", func() bool {
		_, _, found, err := store.Find[store.Owed](t.Context(), s, store.KindOwed, r.ID)
		return err == nil && !found
	})
}

func TestADestinationThatTheSettingsLackOrForbidIsOwed(t *testing.T) {
	s, r := newStore(t)
	lake := newMemory()
	d := deliver.New(deliver.Deps{
		Store: s, Destinations: map[string]deliver.Destination{"lake": lake}, Namespaces: map[string][]string{"lake": {"other"}},
		Retry: time.Millisecond, Poll: time.Millisecond, Now: time.Now, Log: zap.NewNop(),
	})
	if err := d.Owe(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	const both = `warehouse: the settings of the platform have no such destination now; ` +
		`lake: the settings of the platform do not let the namespace "perf" use it now`
	run(t, d, both, func() bool { return owed(t, s) == both })
	want(t, "rows", len(lake.all()), 0)
}

func TestAKilledProcessLosesAndRepeatsNothing(t *testing.T) {
	for p := range crashtest.Points() {
		t.Run(p.String(), func(t *testing.T) {
			s, r := newStore(t)
			warehouse, lake := newMemory(), newMemory()
			to := map[string]deliver.Destination{"warehouse": warehouse, "lake": lake}
			dying := newDeliverer(p.Store(s), zap.NewNop(), to)
			if err := dying.Owe(t.Context(), r); err == nil {
				run(t, dying, "dead or done", func() bool { return p.Dead() || owed(t, s) == "" })
			}
			living := newDeliverer(s, zap.NewNop(), to)
			if owed(t, s) == "" && len(lake.all()) == 0 { // the summary's caller calls again
				if err := living.Owe(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			run(t, living, "nothing is owed", func() bool { return owed(t, s) == "" })
			want(t, "rows", len(warehouse.all())+len(lake.all()), 3)
		})
	}
}

func TestARunWithoutDestinationsOwesNothing(t *testing.T) {
	s, r := newStore(t)
	r.Descriptor, _, _ = strings.Cut(descriptor, "[[output")
	if err := newDeliverer(s, zap.NewNop(), nil).Owe(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want(t, "owed", owed(t, s), "")
}
