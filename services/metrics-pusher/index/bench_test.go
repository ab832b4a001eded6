package index_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
)

// each is how many samples or lines a message has.
const each = 1000

// BenchmarkStored measures how many samples and lines a second go from topics
// that were filled before into the store, on the embedded broker.
func BenchmarkStored(b *testing.B) {
	for name, fact := range map[string]func(n int) event.Event{"samples": samplesFrom, "lines": linesFrom} {
		b.Run(name, func(b *testing.B) {
			w := newFixture(b)
			for n := range b.N {
				w.publish(b, fact(n))
			}
			b.ResetTimer()
			stop := w.index(b)
			w.wait(b, int64(b.N*each))
			b.StopTimer()
			stop()
			b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), name+"/s")
		})
	}
}

// BenchmarkVisible measures the time from taking a sample until the store returns it, at 10,000 samples a second in messages of 20 ms. Run
// it with -benchtime 200000x: one iteration is one sample.
func BenchmarkVisible(b *testing.B) {
	w := newFixture(b)
	defer w.index(b)()
	go w.emit(b, b.N)
	var waits []time.Duration
	for cursor := ""; len(waits) < b.N; {
		changed := w.store.Changed("r")
		page, next, err := w.store.Samples(b.Context(), store.SampleQuery{Run: "r"}, cursor, each)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range page {
			waits = append(waits, time.Since(time.Unix(0, s.Time)))
		}
		if cursor = next; len(page) == 0 {
			<-changed
		}
	}
	slices.Sort(waits)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(waits[len(waits)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}

// emit publishes n samples at 10,000 a second.
func (w *fixture) emit(b *testing.B, n int) {
	b.Helper()
	const rate, tick = 10_000, 20 * time.Millisecond
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for seq := 0; seq < n; <-ticks.C {
		m := metrics(seq)
		for range min(int(rate*tick/time.Second), n-seq) {
			s := storetest.NewSample(int64(seq), "x", 1)
			s.Time = time.Now().UnixNano()
			m.Samples = append(m.Samples, s)
			seq++
		}
		if err := w.bus.Publish(b.Context(), m); err != nil {
			b.Error(err)
			return
		}
	}
}

// fixture is a platform of an embedded broker, a store and the services between them.
type fixture struct {
	bus   *kafka.Bus
	store *sqlite.Store
}

func newFixture(b *testing.B) *fixture {
	b.Helper()
	k, err := broker.Start(broker.Settings{Dir: filepath.Join(b.TempDir(), "broker")})
	if err != nil {
		b.Fatal(err)
	}
	bus, err := kafka.NewBus(kafka.Settings{Brokers: []string{k.Addr()}, Key: []byte("0123456789abcdef")}, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		bus.Close()
		if err := k.Close(); err != nil {
			b.Error(err)
		}
	})
	return &fixture{bus: bus, store: storetest.Open(b)}
}

func (w *fixture) publish(b *testing.B, ev event.Event) {
	b.Helper()
	if err := w.bus.Publish(b.Context(), ev); err != nil {
		b.Fatal(err)
	}
}

// index starts the service, and returns a function that stops it.
func (w *fixture) index(b *testing.B) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- run.All(ctx, index.New(index.Settings{}, index.Deps{Bus: w.bus, Store: w.store})) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

// wait waits until n samples or lines are stored.
func (w *fixture) wait(b *testing.B, n int64) {
	b.Helper()
	for {
		changed := w.store.Changed("r")
		streams, err := w.store.Streams(b.Context(), "r")
		if err != nil {
			b.Fatal(err)
		}
		if len(streams) > 0 && streams[0].Stored == n {
			return
		}
		<-changed
	}
}

func samplesFrom(n int) event.Event {
	m := metrics(n)
	for i := range each {
		m.Samples = append(m.Samples, storetest.NewSample(int64(n*each+i)*60, []string{"loss", "accuracy", "speed"}[i%3], 1.25))
	}
	return m
}

func linesFrom(n int) event.Event {
	l := logs(n)
	for i := range each {
		l.Lines = append(l.Lines, storetest.NewLine(int64(n*each+i)*81, fmt.Sprintf("2026-01-02T10:00:01.%03d INFO trainer: epoch %d step %d loss=%.4f on node-%d", i%1000, n, n*each+i, 1/float64(n*each+i+1), i%16)))
	}
	return l
}
