package kafka_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
)

// TestWhatIsPublishedInVainAgainAndAgainIsSaidOnce: of all publishers that retry, one log line until success.
func TestWhatIsPublishedInVainAgainAndAgainIsSaidOnce(t *testing.T) {
	t.Parallel()
	addr, begin := kafkatest.StartLater(t, "bai.status")
	core, logs := observer.New(zap.InfoLevel)
	bus, err := kafka.NewBus(kafka.Settings{Brokers: []string{addr}, Retry: time.Millisecond}, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bus.Close)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if err := bus.Publish(ctx, status("r1", "hello")); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("published where nobody listens: %v", err)
		}
		cancel()
	}
	wantLogged(t, logs, "publish", "waits")
	if err := bus.Ready(t.Context()); err == nil {
		t.Error("it is ready though no broker answers")
	}
	begin()
	if err := bus.Publish(t.Context(), status("r1", "hello")); err != nil {
		t.Error(err)
	}
	wantLogged(t, logs, "publish", "waits", "goes on")
}
