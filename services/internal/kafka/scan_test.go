package kafka_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
)

func TestAScanEndsWhereTheBrokersRemoveTheRestMeanwhile(t *testing.T) {
	t.Parallel()
	broker := kafkatest.StartRemoving(t, event.TopicDead, 3)
	for m, err := range kafka.Scan(t.Context(), kafka.Settings{Brokers: broker.Addrs}, event.TopicDead, 0, 0) {
		t.Errorf("message %+v, %v", m, err)
	}
}
