// Package kafkatest runs a Kafka broker inside a test.
package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/broker/expiry"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// Broker is a broker on a loopback port that keeps everything in memory.
type Broker struct {
	Addrs []string

	stop func() // nil for a real broker
}

// Message is what a test writes and reads.
type Message struct {
	Key     string
	Value   string
	Headers map[string]string
}

// Start starts a broker that has the given topics, of one partition each, and
// stops with the test.
func Start(tb testing.TB, topics ...string) *Broker {
	tb.Helper()
	return start(tb, 1, topics)
}

// StartWide is Start with topics of so many partitions.
func StartWide(tb testing.TB, partitions int, topics ...string) *Broker {
	tb.Helper()
	return start(tb, partitions, topics)
}

// StartLater returns an address where no broker is yet, and a function that starts
// one there. It may start one again after Stop, which then knows nothing.
func StartLater(tb testing.TB, topics ...string) (addr string, begin func() *Broker) {
	tb.Helper()
	n := port.ForTest(tb, 1)[0]
	return fmt.Sprintf("127.0.0.1:%d", n), func() *Broker {
		tb.Helper()
		return start(tb, 1, topics, kfake.Ports(n))
	}
}

// StartRemoving starts a broker with a topic of one partition, which says once that the
// partition has its first n messages, and has removed them when they are asked for.
func StartRemoving(tb testing.TB, topic string, n int64) *Broker {
	tb.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	const first, last = -2, -1 // as the protocol asks for offsets
	offsets := map[int64]int64{first: 0, last: n}
	c.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req, ok := r.(*kmsg.ListOffsetsRequest)
		if !ok || len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 {
			return nil, nil, false
		}
		asked := req.Topics[0].Partitions[0].Timestamp
		offset, ok := offsets[asked]
		if !ok {
			return nil, nil, false
		}
		delete(offsets, asked)
		resp := kmsg.NewPtrListOffsetsResponse()
		resp.Version = req.Version
		resp.Topics = []kmsg.ListOffsetsResponseTopic{{
			Topic: topic, Partitions: []kmsg.ListOffsetsResponseTopicPartition{{Offset: offset, LeaderEpoch: -1}},
		}}
		return resp, nil, true
	})
	return &Broker{Addrs: c.ListenAddrs(), stop: c.Close}
}

func start(tb testing.TB, partitions int, topics []string, opts ...kfake.Opt) *Broker {
	tb.Helper()
	if addr := os.Getenv(EnvRealBroker); addr != "" && len(opts) == 0 {
		return emptyAndCreate(tb, addr, partitions, topics)
	}
	opts = append(opts, kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	if len(topics) > 0 {
		opts = append(opts, kfake.SeedTopics(int32(partitions), topics...)) //nolint:gosec // a handful
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	addrs := c.ListenAddrs()
	unwatch := expiry.Watch(c, func() (*kgo.Client, error) { return kgo.NewClient(kgo.SeedBrokers(addrs...)) }, zap.NewNop())
	b := &Broker{Addrs: addrs, stop: sync.OnceFunc(func() {
		unwatch()
		c.Close()
	})}
	tb.Cleanup(b.stop)
	return b
}

// Stop ends a broker that Late began before the test ends. What it kept is gone.
func (b *Broker) Stop() { b.stop() }

// Write writes messages to topic, by key where they have one.
func (b *Broker) Write(tb testing.TB, topic string, ms ...Message) {
	tb.Helper()
	out := make([]kafka.Message, len(ms))
	for i, m := range ms {
		out[i] = kafka.Message{Key: []byte(m.Key), Value: []byte(m.Value)}
		for k, v := range m.Headers {
			out[i].Headers = append(out[i].Headers, kafka.Header{Key: k, Value: []byte(v)})
		}
	}
	w := &kafka.Writer{
		Addr: kafka.TCP(b.Addrs...), Topic: topic, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll,
		Balancer: kafka.Murmur2Balancer{Consistent: true}, Transport: &kafka.Transport{},
	}
	err := w.WriteMessages(tb.Context(), out...)
	if err := errors.Join(err, w.Close()); err != nil {
		tb.Fatal(err)
	}
	w.Transport.(*kafka.Transport).CloseIdleConnections() //nolint:errcheck,forcetypeassert // set above
}

// Read returns the first message of topic, and waits for it if need be.
func (b *Broker) Read(tb testing.TB, topic string) Message {
	tb.Helper()
	return b.ReadN(tb, topic, 1)[0]
}

// ReadN returns the first n messages of the first partition of topic, and waits
// for them if need be.
func (b *Broker) ReadN(tb testing.TB, topic string, n int) []Message {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: b.Addrs, Topic: topic, MaxWait: 50 * time.Millisecond, MaxBytes: 10 << 20})
	var ms []Message
	var err error
	for len(ms) < n && err == nil {
		var in kafka.Message
		if in, err = r.ReadMessage(ctx); err == nil {
			ms = append(ms, message(in))
		}
	}
	if err := errors.Join(err, r.Close()); err != nil {
		tb.Fatalf("read %s: got %d of %d messages: %v", topic, len(ms), n, err)
	}
	return ms
}

func message(in kafka.Message) Message {
	m := Message{Key: string(in.Key), Value: string(in.Value), Headers: make(map[string]string)}
	for _, h := range in.Headers {
		m.Headers[h.Key] = string(h.Value)
	}
	return m
}

// Count returns how many messages were written to topic.
func (b *Broker) Count(tb testing.TB, topic string) int {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	n := 0
	err := retry(ctx, func() (err error) { // a topic that was made a moment ago may have no leader yet
		n, err = b.count(ctx, topic)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func (b *Broker) count(ctx context.Context, topic string) (n int, err error) {
	t := &kafka.Transport{MetadataTTL: time.Second}
	defer t.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(b.Addrs...), Transport: t}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, err
	}
	ask := make([]kafka.OffsetRequest, len(meta.Topics[0].Partitions))
	for i, p := range meta.Topics[0].Partitions {
		ask[i] = kafka.LastOffsetOf(p.ID)
	}
	ends, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: ask}})
	if err != nil {
		return 0, err
	}
	for _, p := range ends.Topics[topic] {
		n, err = n+int(p.LastOffset), errors.Join(err, p.Error)
	}
	return n, errors.Join(err, meta.Topics[0].Error)
}
