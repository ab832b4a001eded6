package sink_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/sinktest"
)

// fakeSink is a sink that returns the errors that a test sets.
type fakeSink struct {
	mu   sync.Mutex
	err  error
	runs []string
	ends []string
}

// Samples implements sink.Sink.
func (p *fakeSink) Samples(_ context.Context, batches []event.Metrics) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range batches {
		p.runs = append(p.runs, b.Run)
	}
	return p.err
}

// Finished implements the interface finishedSink of package sink.
func (p *fakeSink) Finished(_ context.Context, ends []event.Finished) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range ends {
		p.ends = append(p.ends, e.Run)
	}
	return p.err
}

// fakeMeter is a sink.Meter.
type fakeMeter struct {
	mu             sync.Mutex
	taken, refused int
}

// Copied implements sink.Meter.
func (m *fakeMeter) Copied(_ string, taken, refused int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken, m.refused = m.taken+taken, m.refused+refused
}

// TestWhatASinkSaysDecidesWhatBecomesOfSamples passes three samples twice, and then twice at once.
func TestWhatASinkSaysDecidesWhatBecomesOfSamples(t *testing.T) {
	away := errors.New("no route to host")
	for name, tt := range map[string]struct {
		says           error
		err            error
		taken, refused int
	}{
		"all are taken":                              {nil, nil, 12, 0},
		"what is refused is counted, and left":       {sink.Rejected(2, errors.New("too old")), nil, 6, 6},
		"a refusal of nothing is none":               {sink.Rejected(0, away), nil, 12, 0},
		"a place that is away is tried again":        {away, away, 0, 0},
		"a place that is away has no poison to tell": {fmt.Errorf("write: %w", away), away, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bus, count := eventtest.NewBus(t), &fakeMeter{}
			sink.New("x", &fakeSink{err: tt.says}, sink.Deps{Bus: bus, Meter: count, Now: time.Now, Log: zap.NewNop()})
			err := bus.TryPublish(sinktest.Metrics("r1", 0, "a", "b", "c"))
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || errors.Is(err, event.ErrPoison) {
				t.Errorf("%v, want %v", err, tt.err)
			}
			if count.taken != tt.taken || count.refused != tt.refused {
				t.Errorf("taken %d, refused %d, want %d, %d", count.taken, count.refused, tt.taken, tt.refused)
			}
		})
	}
}

func TestWhatIsRefusedIsSaidOnceAMinute(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	bus, now := eventtest.NewBus(t), time.Unix(1000, 0)
	sink.New("x", &fakeSink{err: sink.Rejected(1, errors.New("too old"))}, sink.Deps{Bus: bus, Meter: &fakeMeter{}, Now: func() time.Time { return now }, Log: zap.New(core)})
	for n := range 4 {
		if n == 3 {
			now = now.Add(time.Minute)
		}
		if err := bus.TryPublish(sinktest.Metrics("r1", n, "a")); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range logs.All() {
		got = append(got, fmt.Sprint(e.ContextMap()["sink"], " ", e.ContextMap()["count"], " ", e.ContextMap()["error"]))
	}
	if diff := cmp.Diff([]string{"x 1 too old", "x 9 too old"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestASinkThatIsAwayDelaysNobody runs a sink that never takes a sample beside the step that indexes: the store has all samples, the
// process is ready, and a poison message is one dead letter.
func TestASinkThatIsAwayDelaysNobody(t *testing.T) {
	broker := kafkatest.Start(t, event.Topics()...)
	bus, err := kafka.NewBus(kafka.Settings{Brokers: broker.Addrs, Retry: time.Millisecond, Session: time.Second}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	db, unavailable := storetest.Open(t), &fakeSink{err: errors.New("away")}
	parts := index.New(index.Settings{}, index.Deps{Bus: bus, Store: db})
	maps.Copy(parts, sink.New("gone", unavailable, sink.Deps{Bus: bus, Meter: &fakeMeter{}, Now: time.Now, Log: zap.NewNop()}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run.All(ctx, parts) }()
	for n := range 20 {
		if err := bus.Publish(t.Context(), sinktest.Metrics("r1", 2*n, "a", "b")); err != nil {
			t.Fatal(err)
		}
	}
	broker.Write(t, event.TopicMetrics, kafkatest.Message{Key: "r1", Value: "poison"})
	until(t, func() bool {
		streams, err := db.Streams(t.Context(), "r1")
		unavailable.mu.Lock()
		defer unavailable.mu.Unlock()
		return err == nil && len(streams) == 1 && streams[0].Stored == 40 && len(unavailable.runs) > 3
	})
	if err := bus.Ready(t.Context()); err != nil {
		t.Errorf("the process is not ready: %v", err)
	}
	unavailable.mu.Lock()
	unavailable.err = nil
	unavailable.ends = nil
	unavailable.mu.Unlock()
	broker.Read(t, event.TopicDead)
	end := event.Finished{Header: sinktest.Metrics("r1", 99).Header, Outcome: event.Succeeded}
	if err := bus.Publish(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		unavailable.mu.Lock()
		defer unavailable.mu.Unlock()
		return len(unavailable.ends) > 0
	})
	if n := broker.Count(t, event.TopicDead); n != 1 {
		t.Errorf("%d dead letters, want that of the step that indexes", n)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func until(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited 30 s in vain")
		}
	}
}

func TestBatchesAreCutWhereTheyAreTooLong(t *testing.T) {
	for name, tt := range map[string]struct {
		sizes []int
		most  int
		want  string
	}{
		"nothing":                   {nil, 3, "[]"},
		"batches without samples":   {[]int{0, 0}, 3, "[]"},
		"what fits":                 {[]int{1, 2}, 3, "[[1 2]]"},
		"one over two pieces":       {[]int{2, 2}, 3, "[[2 1] [1]]"},
		"one over several pieces":   {[]int{7}, 3, "[[3] [3] [1]]"},
		"empty ones between others": {[]int{1, 0, 2, 0}, 2, "[[1 1] [1]]"},
	} {
		t.Run(name, func(t *testing.T) {
			var batches []event.Metrics
			total := 0
			for _, n := range tt.sizes {
				batches = append(batches, sinktest.Metrics("r", total, strings.Fields(strings.Repeat("a ", n))...))
				total += n
			}
			got, next := sizes(t, sink.Batch(batches, tt.most))
			if fmt.Sprint(got) != tt.want || next != int64(total) {
				t.Errorf("got %v, %d samples, want %s, %d", got, next, tt.want, total)
			}
		})
	}
}

// sizes returns how many samples each batch of each piece has, and how many all
// have: they are in order.
func sizes(t *testing.T, pieces [][]event.Metrics) (all [][]int, next int64) {
	t.Helper()
	for _, piece := range pieces {
		var some []int
		for _, b := range piece {
			some = append(some, len(b.Samples))
			for _, v := range b.Samples {
				if v.Seq != next {
					t.Errorf("sample %d comes as %d", v.Seq, next)
				}
				next++
			}
		}
		all = append(all, some)
	}
	return all, next
}

func TestNamesHaveWhatTheyMayHave(t *testing.T) {
	for text, want := range map[string]string{"loss": "loss", "images/s": "images_s", "9p": "_9p", "": "_", "ü": "_", "a b-c": "a_b_c"} {
		if got := sink.SanitizeName(text, sink.Word); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
