package kafka_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// BenchmarkHop passes events through two steps: a single event, which is the delay that a user sees, and many at once.
func BenchmarkHop(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { hop(b, n) })
	}
}

func hop(b *testing.B, n int) {
	b.Helper()
	broker := kafkatest.Start(b, event.Topics()...)
	bus, err := kafka.NewBus(kafka.Settings{Brokers: broker.Addrs}, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bus.Close)
	received := make(chan bool, n)
	runUntilEnd(b, bus.Consume("a", service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
		return []event.Event{event.Command{Header: s.Cause("command", ""), Kind: event.CommandCancel}}, nil
	})))
	runUntilEnd(b, bus.Consume("b", service.On(func(context.Context, event.Command) ([]event.Event, error) {
		received <- true
		return nil, nil
	})))
	evs := make([]event.Event, n)
	for i := range evs {
		evs[i] = status("r1", fmt.Sprint(i))
	}
	say := func() {
		if err := bus.Publish(b.Context(), evs...); err != nil {
			b.Fatal(err)
		}
		for range n {
			<-received
		}
	}
	say() // both have joined
	began, rounds := time.Now(), 0
	for b.Loop() {
		say()
		rounds++
	}
	b.ReportMetric(float64(n*rounds)/time.Since(began).Seconds(), "events/s")
}
