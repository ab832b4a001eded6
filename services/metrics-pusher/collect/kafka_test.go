package collect_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/service"
)

func TestThroughKafkaEverythingArrivesUnderTheRunsToken(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	for i := range 3000 {
		v.record(t, stdoutRecord(fmt.Sprintf("line %d %s\n", i, strings.Repeat("\x01", i%500))))
	}
	v.append(t, pod.Metrics, strings.Repeat(`{"a": 1}`+"\n", 5000))
	v.exit(t, pod.Exit{})

	key := []byte("0123456789abcdef")
	broker := kafkatest.StartWide(t, 2, event.Topics()...)
	done := start(t, settings(v), connect(t, kafka.Settings{Brokers: broker.Addrs, Token: access.TokenFor(key, "r1")}))

	store := newStore(t)
	bus := connect(t, kafka.Settings{Brokers: broker.Addrs, Key: key})
	consume(t, bus, func(l event.Logs) { store.notify(l) }, func(m event.Metrics) { store.notify(m) })
	store.waitUntil(t, func() bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		return len(store.ended) == 4
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	store.complete(t)
	want(t, store.end("output", event.TopicLogs).Count, 3000)
	want(t, store.end("metrics", event.TopicMetrics).Count, 5000)
	want(t, broker.Count(t, event.TopicDead), 0)
}

// notify stores ev for a concurrent reader.
func (s *fakeStore) notify(ev event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save(ev)
}

func connect(tb testing.TB, s kafka.Settings) *kafka.Bus {
	tb.Helper()
	bus, err := kafka.NewBus(s, zap.NewNop())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(bus.Close)
	return bus
}

// consume consumes lines and samples until the test ends.
func consume(tb testing.TB, bus *kafka.Bus, logs func(event.Logs), metrics func(event.Metrics)) {
	tb.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	var parts sync.WaitGroup
	for _, part := range []service.Runnable{
		bus.Consume("test", service.On(func(_ context.Context, l event.Logs) ([]event.Event, error) { logs(l); return nil, nil })),
		bus.Consume("test-metrics", service.On(func(_ context.Context, m event.Metrics) ([]event.Event, error) { metrics(m); return nil, nil })),
	} {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				tb.Error(err)
			}
		})
	}
	tb.Cleanup(func() {
		stop()
		parts.Wait()
	})
}

// BenchmarkDelay measures how long a sample takes from the metrics file to a consumer, at rate samples a second in writes of each samples.
func BenchmarkDelay(b *testing.B) {
	for _, bb := range []struct{ rate, each int }{{100, 1}, {10000, 10}} {
		b.Run(fmt.Sprintf("%d-per-second", bb.rate), func(b *testing.B) {
			v := newVolume(b)
			broker := kafkatest.Start(b, event.Topics()...)
			bus := connect(b, kafka.Settings{Brokers: broker.Addrs})
			var mu sync.Mutex
			var delays []time.Duration
			consume(b, bus, func(event.Logs) {}, func(m event.Metrics) {
				mu.Lock()
				defer mu.Unlock()
				for _, s := range m.Samples {
					delays = append(delays, time.Duration(time.Now().UnixNano()-int64(s.Float())))
				}
			})
			s := settings(v)
			s.Poll = 0
			done := start(b, s, bus)
			for b.Loop() {
				before := cpu(b)
				tick := time.NewTicker(time.Second * time.Duration(bb.each) / time.Duration(bb.rate))
				for n := 0; n < 5*bb.rate; n += bb.each {
					<-tick.C
					line := fmt.Sprintf(`{"now": %d}`+"\n", time.Now().UnixNano())
					v.append(b, pod.Metrics, strings.Repeat(line, bb.each))
				}
				tick.Stop()
				b.ReportMetric((cpu(b)-before).Seconds()/5*100, "%core")
			}
			v.exit(b, pod.Exit{})
			if err := <-done; err != nil {
				b.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(delays)
			b.ReportMetric(delays[len(delays)/2].Seconds()*1000, "p50-ms")
			b.ReportMetric(delays[len(delays)*99/100].Seconds()*1000, "p99-ms")
		})
	}
}

// BenchmarkCost measures how much of a core a collector takes at 1,000 lines and 100 samples a second.
func BenchmarkCost(b *testing.B) {
	const seconds = 10
	v := newVolume(b)
	broker := kafkatest.Start(b, event.Topics()...)
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "COLLECT_DIR="+v.dir, "COLLECT_OWN="+v.state, "COLLECT_BROKER="+broker.Addrs[0])
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		tick := time.NewTicker(time.Second / 100)
		for i := range 100 * seconds {
			<-tick.C
			v.record(b, stdoutRecord(strings.Repeat(fmt.Sprintf("step %d of the training of a model, as one writes it\n", i), 10)))
			v.append(b, pod.Metrics, fmt.Sprintf(`{"loss": %d}`+"\n", i))
		}
		tick.Stop()
	}
	v.exit(b, pod.Exit{})
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	b.ReportMetric(used.Seconds()/seconds*100, "%core")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
