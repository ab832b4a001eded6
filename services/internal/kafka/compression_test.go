package kafka_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

func TestWhatIsWorthItIsCompressed(t *testing.T) {
	large := strings.Repeat("loss=0.25 ", 1000)
	for name, tt := range map[string]struct {
		setting, message string
		want             kafkago.Compression
	}{
		"snappy where nothing is said": {"", large, kafkago.Snappy},
		"as is asked for":              {"zstd", large, kafkago.Zstd},
		"nothing where none is":        {"none", large, 0},
		"not an event that is small":   {"", "pulling the image", 0},
	} {
		t.Run(name, func(t *testing.T) {
			broker := kafkatest.Start(t, event.TopicStatus)
			s := settings(broker)
			s.Compression = tt.setting
			b := bus(t, s, zap.NewNop())
			if err := b.Publish(t.Context(), status("r1", tt.message)); err != nil {
				t.Fatal(err)
			}
			want(t, compressionOf(t, s), tt.want)
		})
	}
}

// compressionOf returns the compression of the first message in the topic of statuses.
func compressionOf(t *testing.T, s kafka.Settings) kafkago.Compression {
	t.Helper()
	client, done, err := kafka.NewClient(s)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	got, err := client.Fetch(t.Context(), &kafkago.FetchRequest{Topic: event.TopicStatus, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	stream, ok := got.Records.(*protocol.RecordStream)
	if !ok || len(stream.Records) != 1 {
		t.Fatalf("fetched %T", got.Records)
	}
	batch, ok := stream.Records[0].(*protocol.RecordBatch)
	if !ok {
		t.Fatalf("fetched a %T", stream.Records[0])
	}
	return batch.Attributes.Compression()
}

func TestPodsPublishAsTheirPlatformSays(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	platform := kafka.Settings{Compression: "zstd", Pods: access.Access{TLS: access.TLS{CAFile: ca, ServerName: "kafka"}, SASL: access.SASL{Mechanism: access.Plain, User: "pods", Password: "secret"}}}
	handed, err := platform.ForPods()
	if err != nil {
		t.Fatal(err)
	}
	want(t, handed, pod.Access{TLS: true, CA: "PEM", ServerName: "kafka", Mechanism: access.Plain, User: "pods", Password: "secret", Compression: "zstd"})
	want(t, kafka.InPod([]string{"kafka:9093"}, handed, "token", "collect"), kafka.Settings{
		Brokers: []string{"kafka:9093"}, Token: "token", Source: "collect", Compression: "zstd",
		Access: access.Access{TLS: access.TLS{Enabled: true, CA: "PEM", ServerName: "kafka"}, SASL: access.SASL{Mechanism: access.Plain, User: "pods", Password: "secret"}},
	})
}
