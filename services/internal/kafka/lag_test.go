package kafka_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// lagMeter is a Meter that stores the newest lag.
type lagMeter struct {
	mu     sync.Mutex
	behind map[int]int64
}

func (*lagMeter) RecordHandled(string, string, int, time.Duration, error) {}
func (*lagMeter) RecordPublished(string, int)                             {}
func (*lagMeter) RecordRetry(string, string)                              {}

func (g *lagMeter) RecordLag(_, _ string, behind map[int]int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind = maps.Clone(behind)
}

// total returns the number of partitions with a known lag, and the sum of the lags.
func (g *lagMeter) total() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := int64(0)
	for _, events := range g.behind {
		n += events
	}
	return fmt.Sprintf("%d behind in %d partitions", n, len(g.behind))
}

func (g *lagMeter) waitFor(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); g.total() != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s, want %s", g.total(), want)
		}
	}
}

// TestLagIsToldOfAConsumerThatDoesNotGetOn, for the partitions that it has, and for none when it has ended.
func TestLagIsToldOfAConsumerThatDoesNotGetOn(t *testing.T) {
	t.Parallel()
	broker := kafkatest.StartWide(t, 4, event.Topics()...)
	hung, publisher := make(chan struct{}), bus(t, settings(broker), zap.NewNop())
	publish := func(from, to int) {
		for i := from; i < to; i++ {
			if err := publisher.Publish(t.Context(), status(fmt.Sprint("r", i), "x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	join := func(step service.Step) (*lagMeter, func()) {
		meter := &lagMeter{}
		s := settings(broker)
		s.Session, s.Meter = time.Second, meter
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- bus(t, s, zap.NewNop()).Consume("g", step)(ctx) }()
		return meter, func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	publish(0, 10)
	first, stop := join(service.On(func(ctx context.Context, _ event.Status) ([]event.Event, error) {
		select {
		case <-ctx.Done():
		case <-hung:
		}
		return nil, ctx.Err()
	}))
	first.waitFor(t, "10 behind in 4 partitions")
	publish(10, 25)
	first.waitFor(t, "25 behind in 4 partitions")
	second, stopSecond := join(service.On(func(context.Context, event.Status) ([]event.Event, error) { return nil, nil }))
	second.waitFor(t, "0 behind in 2 partitions")
	stopSecond()
	second.waitFor(t, "0 behind in 0 partitions")
	close(hung)
	first.waitFor(t, "0 behind in 4 partitions")
	stop()
	first.waitFor(t, "0 behind in 0 partitions")
}

var _ kafka.Meter = (*lagMeter)(nil)
