package kafka_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// TestNothingIsLeftOfABusThatWasClosed runs alone: it checks the goroutines of the whole process.
func TestNothingIsLeftOfABusThatWasClosed(t *testing.T) {
	broker := kafkatest.Start(t, event.Topics()...)
	b, err := kafka.NewBus(settings(broker), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	received, done := make(chan bool, 1), make(chan error, 1)
	go func() {
		done <- b.Consume("g", service.On(func(context.Context, event.Status) ([]event.Event, error) {
			received <- true
			return nil, nil
		}))(ctx)
	}()
	if err := b.Publish(t.Context(), status("r1", "a")); err != nil {
		t.Fatal(err)
	}
	<-received
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.Close()
	var dump string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stacks := make([]byte, 1<<20)
		dump = string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(dump, "segmentio/kafka-go.") {
			return
		}
	}
	t.Errorf("10 s after Close there still run:\n%s", dump)
}
