package index_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
)

func TestWhatPodsShipIsStoredOnceHoweverOftenItComes(t *testing.T) {
	db, bus := storetest.Open(t), eventtest.NewBus(t)
	index.New(index.Settings{}, index.Deps{Bus: bus, Store: db})
	events := []event.Event{
		metrics(1, sample(10, "loss", 0.5), sample(20, "loss", 0.25)),
		logs(2, storetest.NewLine(5, "a"), storetest.NewLine(9, "b")),
		metrics(3, sample(20, "loss", 0.25), sample(30, "loss", 0.125)), // begins with samples that came before
	}
	metricsEnd, logsEnd := metrics(4), logs(5, storetest.NewLine(12, "c"))
	metricsEnd.End, logsEnd.End = &event.End{Count: 3, Last: 30}, &event.End{Count: 3, Last: 12}
	for _, ev := range append(events, metricsEnd, logsEnd) {
		bus.PublishAndWait(ev)
	}
	bus.Replay()

	samples, _, err := db.Samples(t.Context(), store.SampleQuery{Run: "r"}, "", 100)
	lines, _, err2 := db.Lines(t.Context(), store.LineQuery{Run: "r"}, "", 100)
	streams, err3 := db.Streams(t.Context(), "r")
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range samples {
		got += fmt.Sprint(s.Seq, " ", s.Name, " ", s.Float(), "; ")
	}
	for _, l := range lines {
		got += fmt.Sprint(l.Seq, " ", l.Text, "; ")
	}
	for _, s := range streams {
		got += fmt.Sprint(s.Topic, " attempt ", s.Origin.Attempt, " of ", s.Origin.Pod, ": ", s.Stored, " of ", s.End.Count, "; ")
	}
	want := "10 loss 0.5; 20 loss 0.25; 30 loss 0.125; 5 a; 9 b; 12 c; bai.logs attempt 2 of p: 3 of 3; bai.metrics attempt 2 of p: 3 of 3; "
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatTheStoreSaysDecidesWhatBecomesOfAMessage(t *testing.T) {
	away := errors.New("no route to host")
	for name, tt := range map[string]struct {
		store  error
		poison bool
	}{
		"a store that is away is waited for":                     {away, false},
		"a store whose disk is full is waited for":               {fmt.Errorf("append: %w", away), false},
		"what the store will never have becomes a dead letter":   {fmt.Errorf("append: %w: no name", store.ErrRefused), true},
		"a conflict is no refusal, though no store says it here": {store.ErrConflict, false},
	} {
		t.Run(name, func(t *testing.T) {
			bus := eventtest.NewBus(t)
			index.New(index.Settings{}, index.Deps{Bus: bus, Store: failingStore{err: tt.store}})
			for _, ev := range []event.Event{metrics(1, sample(1, "x", 1)), logs(2)} {
				if err := bus.TryPublish(ev); !errors.Is(err, tt.store) || errors.Is(err, event.ErrPoison) != tt.poison {
					t.Errorf("%s: %v, want %v, poison %t", ev.Topic(), err, tt.store, tt.poison)
				}
			}
		})
	}
}

// TestOnlyWhatIsRefusedIsPoison passes data that decode well and cannot be stored.
func TestOnlyWhatIsRefusedIsPoison(t *testing.T) {
	db, bus := storetest.Open(t), eventtest.NewBus(t)
	index.New(index.Settings{}, index.Deps{Bus: bus, Store: db})
	if err := bus.TryPublish(metrics(1, sample(-1, "x", 1))); !errors.Is(err, event.ErrPoison) {
		t.Errorf("a negative sequence: %v, want %v", err, event.ErrPoison)
	}
	bus.PublishAndWait(metrics(2, sample(1, "x", 1)))
	if streams, err := db.Streams(t.Context(), "r"); err != nil || len(streams) != 1 || streams[0].Stored != 1 {
		t.Errorf("stored %v, %v", streams, err)
	}
}

func TestSettings(t *testing.T) {
	if err := (index.Settings{Batch: -1}).Validate(); err == nil {
		t.Error("a negative batch is accepted")
	}
	if err := (index.Settings{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestWherePodsRunIsKeptOncePerPodWhoeverSaysItFirst(t *testing.T) {
	db, bus := storetest.Open(t), eventtest.NewBus(t)
	index.New(index.Settings{}, index.Deps{Bus: bus, Store: db})
	first, final := logs(1), logs(2)
	first.Environment = &event.Environment{Machine: event.Machine{CPUModel: "EPYC"}}
	final.Environment = &event.Environment{Machine: event.Machine{CPUModel: "EPYC"}, Tools: map[string]string{"gcc": "12"}, Final: true}
	bus.PublishAndWait(first)
	bus.PublishAndWait(final)
	bus.Replay()
	where, _, err := store.Get[store.RunEnvironment](t.Context(), db, store.KindEnvironment, "r")
	if err != nil {
		t.Fatal(err)
	}
	if len(where.Pods) != 1 || where.Pods[0].Tools["gcc"] != "12" || where.Pods[0].Origin.Pod != "p" || where.Pods[0].Origin.Attempt != 2 {
		t.Errorf("kept %+v", where)
	}
	if streams, err := db.Streams(t.Context(), "r"); err != nil || len(streams) > 0 {
		t.Errorf("it made streams: %v, %v", streams, err)
	}
}

// A run is summarised once its streams have ended: then its environment is needed.
func TestTheEnvironmentIsStoredBeforeTheLinesThatComeWithIt(t *testing.T) {
	db, bus, away := storetest.Open(t), eventtest.NewBus(t), errors.New("away")
	index.New(index.Settings{}, index.Deps{Bus: bus, Store: failingStore{Docs: db, err: away}})
	ev := logs(1, storetest.NewLine(1, "x"))
	ev.Environment = &event.Environment{Machine: event.Machine{CPUModel: "EPYC"}}
	if err := bus.TryPublish(ev); !errors.Is(err, away) {
		t.Errorf("%v, want that lines cannot be stored", err)
	}
	if _, err := db.Doc(t.Context(), store.KindEnvironment, "r"); err != nil {
		t.Error(err)
	}
}

// failingStore is a store that cannot.
type failingStore struct {
	store.Docs

	err error
}

// AppendSamples implements index.Store.
func (f failingStore) AppendSamples(context.Context, []store.Samples) error { return f.err }

// AppendLines implements index.Store.
func (f failingStore) AppendLines(context.Context, []store.Lines) error { return f.err }

func header(n int) event.Header {
	h := event.NewHeader(fmt.Sprint("m", n), "r", "pets", "ann", time.Unix(1, 0).UTC())
	h.Attempt = 2
	return h
}

func metrics(n int, samples ...event.Sample) event.Metrics {
	return event.Metrics{Header: header(n), Stream: storetest.NewOrigin("r", "p").Stream, Samples: samples}
}

func logs(n int, lines ...event.Line) event.Logs {
	return event.Logs{Header: header(n), Stream: storetest.NewOrigin("r", "p").Stream, Lines: lines}
}

func sample(seq int64, name string, value float64) event.Sample {
	return storetest.NewSample(seq, name, value)
}
