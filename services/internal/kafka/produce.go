package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// maxBatchBytes is how many bytes one request has, below the default limit of brokers, 1 MiB.
const maxBatchBytes = 960 << 10

// newTransport returns a Transport that finds a new topic within a second.
func newTransport(s Settings) (*kafka.Transport, error) {
	encryption, err := s.TLS.Config()
	if err != nil {
		return nil, err
	}
	auth, err := s.SASL.Client()
	if err != nil {
		return nil, err
	}
	return &kafka.Transport{MetadataTTL: time.Second, DialTimeout: 3 * time.Second, ClientID: s.ClientID, TLS: encryption, SASL: auth}, nil
}

func newClient(brokers []string, t *kafka.Transport) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(brokers...), Transport: t, Timeout: 15 * time.Second}
}

// NewClient returns a client of the brokers, and a function that closes its
// connections.
func NewClient(s Settings) (*kafka.Client, func(), error) {
	t, err := newTransport(s)
	if err != nil {
		return nil, nil, err
	}
	return newClient(s.Brokers, t), t.CloseIdleConnections, nil
}

// smallWrite is the least number of bytes of a request that is compressed: compression saves little of a single event.
const smallWrite = 2 << 10

// codecs returns the compressions of published messages, by the names of the setting. Snappy shortens samples and lines in JSON to a fifth,
// in less time than sending and writing the saved bytes takes, and in blocks of 32 KiB. With lz4 each broker, sidecar and service allocates
// 4 MiB even for 2 KiB.
func codecs() map[string]kafka.Compression {
	return map[string]kafka.Compression{
		"": kafka.Snappy, "none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy,
		"lz4": kafka.Lz4, "zstd": kafka.Zstd,
	}
}

// producer writes messages. It does not collect those of several callers: each write is sent at once, and one caller's messages are in
// their order in a partition, even after a failure in between.
type producer struct {
	client      *kafka.Client
	partitions  kafka.Balancer
	compression kafka.Compression
	sign        func(kafka.Message) kafka.Message // signs a changed message again; nil signs no message
}

// topicPartition is a partition of a topic.
type topicPartition struct {
	topic     string
	partition int
}

// send writes msgs and returns those that were not acknowledged, in order. A retry sends these.
func (p producer) send(ctx context.Context, msgs []kafka.Message) ([]kafka.Message, error) {
	places, err := p.sort(ctx, msgs)
	if err != nil {
		return msgs, err
	}
	var (
		mu   sync.Mutex
		rest []kafka.Message
		errs []error
		wg   sync.WaitGroup
	)
	for at, msgs := range places {
		wg.Go(func() {
			if n, err := p.writePartition(ctx, at, msgs); err != nil {
				mu.Lock()
				defer mu.Unlock()
				rest, errs = append(rest, msgs[n:]...), append(errs, fmt.Errorf("publish to %q: %w", at.topic, err))
			}
		})
	}
	wg.Wait()
	return rest, errors.Join(errs...)
}

// sort divides msgs among partitions, by key.
func (p producer) sort(ctx context.Context, msgs []kafka.Message) (map[topicPartition][]kafka.Message, error) {
	places := make(map[topicPartition][]kafka.Message, 1)
	counts := make(map[string][]int, 1)
	for _, m := range msgs {
		if counts[m.Topic] == nil {
			n, err := p.count(ctx, m.Topic)
			if err != nil {
				return nil, err
			}
			for i := range n {
				counts[m.Topic] = append(counts[m.Topic], i)
			}
		}
		at := topicPartition{m.Topic, p.partitions.Balance(m, counts[m.Topic]...)}
		places[at] = append(places[at], m)
	}
	return places, nil
}

// count returns the number of partitions of topic.
func (p producer) count(ctx context.Context, topic string) (int, error) {
	meta, err := p.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, fmt.Errorf("look for topic %q: %w", topic, err)
	}
	i := slices.IndexFunc(meta.Topics, func(t kafka.Topic) bool { return t.Name == topic })
	if i < 0 {
		return 0, fmt.Errorf("look for topic %q: %w", topic, kafka.UnknownTopicOrPartition)
	}
	if err := meta.Topics[i].Error; err != nil {
		return 0, fmt.Errorf("look for topic %q: %w", topic, err)
	}
	if len(meta.Topics[i].Partitions) == 0 {
		return 0, fmt.Errorf("look for topic %q: %w", topic, kafka.LeaderNotAvailable)
	}
	return len(meta.Topics[i].Partitions), nil
}

// writePartition writes msgs to one partition, and returns how many were acknowledged. If a dead letter is too large for the brokers, whose
// limit may be lower than configured, it is replaced in msgs by its smallest form.
func (p producer) writePartition(ctx context.Context, at topicPartition, msgs []kafka.Message) (done int, err error) {
	for most := len(msgs); done < len(msgs); {
		n := min(batchLen(msgs[done:]), most)
		err := p.produce(ctx, at, msgs[done:done+n])
		switch {
		case err == nil:
			done += n
			continue
		case !errors.Is(err, kafka.MessageSizeTooLarge):
			return done, err
		case n > 1:
			most = 1 // to find the message that is too large
			continue
		}
		var less bool
		if msgs[done], less = minimalDeadLetter(msgs[done]); !less {
			return done, fmt.Errorf("%w: the topic takes less than kafka.topics.max_message, which 'bai admin topics apply' mends", err)
		}
		if p.sign != nil {
			msgs[done] = p.sign(msgs[done])
		}
	}
	return done, nil
}

// batchLen returns how many of msgs go together.
func batchLen(msgs []kafka.Message) int {
	size := weight(msgs[0])
	for i, m := range msgs[1:] {
		if size += weight(m); size > maxBatchBytes {
			return i + 1
		}
	}
	return len(msgs)
}

// weight returns about how many bytes m has on the wire.
func weight(m kafka.Message) int {
	n := 64 + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += 4 + len(h.Key) + len(h.Value)
	}
	return n
}

func (p producer) produce(ctx context.Context, at topicPartition, msgs []kafka.Message) error {
	records, now, size := make([]kafka.Record, len(msgs)), time.Now(), 0
	for i, m := range msgs {
		size += weight(m)
		records[i] = kafka.Record{Time: now, Key: kafka.NewBytes(m.Key), Value: kafka.NewBytes(m.Value), Headers: m.Headers}
	}
	compression := p.compression
	if size < smallWrite {
		compression = 0
	}
	resp, err := p.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: at.topic, Partition: at.partition, RequiredAcks: kafka.RequireAll, Compression: compression,
		Records: kafka.NewRecordReader(records...),
	})
	if err == nil {
		err = resp.Error
	}
	return err
}
