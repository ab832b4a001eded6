package kafka_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	kafkago "github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// consumeGood consumes a topic until the test ends, and returns the events of run "good".
func consumeGood(t *testing.T, s kafka.Settings) <-chan string {
	t.Helper()
	received := make(chan string, 8)
	consume(t, s, service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
		received <- s.Run
		return nil, nil
	}))
	return received
}

// TestWhateverAPodWritesHoldsUpNobody writes messages that brokers accept and that do not fit into a dead letter, and then an event that
// must be handled.
func TestWhateverAPodWritesHoldsUpNobody(t *testing.T) {
	t.Parallel()
	longText := strings.Repeat("x", 1000<<10)
	for name, tt := range map[string]struct {
		bad kafkago.Message
		cut string
	}{
		"a key as long as a message":     {kafkago.Message{Key: []byte(longText), Value: []byte("v")}, "key of 1024000 bytes"},
		"a key that was longer unpacked": {kafkago.Message{Key: make([]byte, 2<<20), Value: []byte("v")}, "key of 2097152 bytes"},
		"a header as long as a message":  {kafkago.Message{Key: []byte("r1"), Headers: []kafkago.Header{{Key: "ce_id", Value: []byte(longText)}}}, "header ce_id of 1024000 bytes"},
		"a header that nobody knows":     {kafkago.Message{Key: []byte("r1"), Headers: []kafkago.Header{{Key: "x", Value: []byte(longText)}}}, ""},
		"many headers":                   {kafkago.Message{Key: []byte("r1"), Headers: many("ce_id", 40000)}, ""},
		"headers of a dead letter":       {kafkago.Message{Key: []byte("r1"), Headers: many(kafka.DeadTopic, 2)}, ""},
		"a value that was longer":        {kafkago.Message{Key: []byte("r1"), Value: make([]byte, 3<<20)}, "value of 3145728 bytes"},
		"everything at once":             {kafkago.Message{Key: make([]byte, 2<<20), Value: make([]byte, 3<<20), Headers: many("ce_type", 1)}, "key of 2097152 bytes, value of 3145728 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Start(t, event.Topics()...)
			pack(t, broker, event.TopicStatus, tt.bad)
			received := consumeGood(t, settings(broker))
			letter := broker.Read(t, event.TopicDead)
			want(t, letter.Headers[kafka.DeadCut], tt.cut)
			want(t, letter.Headers[kafka.DeadTopic], event.TopicStatus)
			if len(letter.Key) > 1<<10 || len(letter.Headers) > 12 {
				t.Errorf("a key of %d bytes and headers %q", len(letter.Key), slices.Sorted(maps.Keys(letter.Headers)))
			}
			if err := bus(t, settings(broker), zap.NewNop()).Publish(t.Context(), status("good", "x")); err != nil {
				t.Fatal(err)
			}
			want(t, <-received, "good")
		})
	}
}

func many(key string, n int) []kafkago.Header {
	out := make([]kafkago.Header, n)
	for i := range out {
		out[i] = kafkago.Header{Key: key, Value: []byte("bai.finished")}
	}
	return out
}

// pack writes a compressed message, so that brokers accept one that is larger than their limit.
func pack(t *testing.T, b *kafkatest.Broker, topic string, m kafkago.Message) {
	t.Helper()
	w := &kafkago.Writer{
		Addr: kafkago.TCP(b.Addrs...), Topic: topic, BatchSize: 1, BatchBytes: 64 << 20, RequiredAcks: kafkago.RequireAll, Compression: kafkago.Gzip,
		Transport: &kafkago.Transport{},
	}
	if err := w.WriteMessages(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	w.Transport.(*kafkago.Transport).CloseIdleConnections() //nolint:errcheck,forcetypeassert // set above
}

// TestALetterThatBrokersDoNotTakeIsTheLeast runs brokers with a lower limit for dead letters than the services have.
func TestALetterThatBrokersDoNotTakeIsTheLeast(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, event.TopicStatus)
	limit(t, broker, event.TopicDead, "1500")
	broker.Write(t, event.TopicStatus,
		kafkatest.Message{Key: "small", Value: "hello"},
		kafkatest.Message{Key: "large", Value: strings.Repeat("x", 5000), Headers: map[string]string{"ce_type": "bai.status.v9"}},
		kafkatest.Message{Key: "next", Value: "hello"})
	consumeGood(t, uncompressed(broker))
	letters := broker.ReadN(t, event.TopicDead, 3)
	want(t, letters[0].Value+letters[2].Value, "hellohello")
	want(t, letters[1], kafkatest.Message{Key: "large", Headers: map[string]string{
		"dead_topic": "bai.status", "dead_partition": "0", "dead_offset": "1",
		"dead_reason": `decode event.Status: poison: type "bai.status.v9", want "bai.status.v1"`,
		"dead_cut":    "value of 5000 bytes, and all else, which is more than the brokers take",
	}})
}

// uncompressed returns settings without compression.
func uncompressed(b *kafkatest.Broker) kafka.Settings {
	s := settings(b)
	s.Compression = "none"
	return s
}

// limit creates a topic with a limit for the bytes of a batch.
func limit(t *testing.T, b *kafkatest.Broker, topic, most string) {
	t.Helper()
	c, done, err := kafka.NewClient(settings(b))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, err := kafka.Create(t.Context(), c, []kafka.Topic{{Name: topic, Partitions: 1, Replication: 1, Configs: map[string]string{"max.message.bytes": most}}}); err != nil {
		t.Fatal(err)
	}
}

// TestWhatTheBrokersTakeNoMoreWaitsAndSaysWhatMendsIt: an operator has set a lower limit for a topic than the services have.
func TestWhatTheBrokersTakeNoMoreWaitsAndSaysWhatMendsIt(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t)
	limit(t, broker, event.TopicStatus, "1500")
	b := bus(t, uncompressed(broker), zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Publish(ctx, status("r1", strings.Repeat("x", 5000))) }()
	until(t, func() bool {
		err := b.Ready(t.Context())
		return err != nil && strings.Contains(err.Error(), "kafka.topics.max_message, which 'bai admin topics apply' mends")
	})
	cancel()
	if err := <-done; err == nil {
		t.Error("it was published")
	}
}

func TestAPoisonedRunEndsHoweverMuchItsEventSays(t *testing.T) {
	t.Parallel()
	longText := strings.Repeat("x", 900<<10)
	for name, fields := range map[string]string{
		"a long team":     `"namespace":"` + longText + `","owner":"ann"`,
		"a long owner":    `"namespace":"pets","owner":"` + longText + `"`,
		"a long set":      `"namespace":"pets","owner":"ann","set":"` + longText + `"`,
		"a long schedule": `"namespace":"pets","owner":"ann","schedule":"` + longText + `"`,
		"much to escape":  `"namespace":"` + strings.Repeat(`\u0001`, 100<<10) + `","owner":"ann"`,
		"a far future":    `"namespace":"pets","owner":"ann","time":"9999-12-31T23:59:59-23:00"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Start(t, event.Topics()...)
			broker.Write(t, event.TopicSubmitted, kafkatest.Message{Key: "r1", Value: `{"id":"m1","run":"r1",` + fields + `}`, Headers: map[string]string{"ce_type": "bai.submitted.v1"}}, submittedMessage())
			consume(t, settings(broker), service.On(answerFetched))
			broker.Read(t, event.TopicDead)
			if end := broker.Read(t, event.TopicFinished); !strings.Contains(end.Value, `"reason":"PoisonedEvent"`) || len(end.Value) > 10<<10 {
				t.Errorf("the run ends with %.1000s", end.Value)
			}
			want(t, broker.Read(t, event.TopicFetched).Key, "r1")
		})
	}
}

// TestATraceThatIsTooLongIsNotHandedOn, because the answers would be too large with it.
func TestATraceThatIsTooLongIsNotHandedOn(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, event.Topics()...)
	m := submittedMessage()
	m.Headers["traceparent"] = strings.Repeat("0", 500<<10)
	broker.Write(t, event.TopicSubmitted, m)
	consume(t, settings(broker), service.On(answerFetched))
	want(t, broker.Read(t, event.TopicFetched).Headers["traceparent"], kafka.RootTrace("r1"))
}

func TestAnEventIsRefusedWithAKeyThatLeavesItNoRoom(t *testing.T) {
	t.Parallel()
	b := bus(t, kafka.Settings{Brokers: []string{"127.0.0.1:1"}}, zap.NewNop())
	err := b.Publish(t.Context(), status(strings.Repeat("r", 600<<10), "x"))
	if err == nil || !strings.Contains(err.Error(), "with its key and headers, 1047564 at most") {
		t.Errorf("Publish: %v, want how large it may be", err)
	}
}

func TestAnEventMayBeAsLargeAsTopicsTake(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t)
	limit(t, broker, event.TopicStatus, "2000000")
	s := uncompressed(broker)
	s.Topics.MaxMessage = 2_000_000
	longText := strings.Repeat("x", 1_970_000)
	if err := bus(t, s, zap.NewNop()).Publish(t.Context(), status("r1", longText)); err != nil {
		t.Fatal(err)
	}
	if got := broker.Read(t, event.TopicStatus); !strings.Contains(got.Value, longText) {
		t.Errorf("read %d bytes", len(got.Value))
	}
}
