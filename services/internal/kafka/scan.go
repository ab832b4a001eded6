package kafka

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/kafka/access"
)

// MaxDead is how many bytes of a message a dead letter of an earlier version has at most, without a header about the cut.
const MaxDead = MaxValue - maxReason

// Scan yields the messages of a partition from an offset on, without a consumer group. The last one is that of the time of the call. An
// error comes last.
func Scan(ctx context.Context, s Settings, topic string, partition int, from int64) iter.Seq2[kafka.Message, error] {
	return func(yield func(kafka.Message, error) bool) {
		done := false
		err := scan(ctx, s, topic, partition, from, func(m kafka.Message) bool {
			done = !yield(m, nil)
			return !done
		})
		if err != nil && !done {
			yield(kafka.Message{}, err)
		}
	}
}

func scan(ctx context.Context, s Settings, topic string, partition int, from int64, see func(kafka.Message) bool) (err error) {
	t, err := newTransport(s)
	if err != nil {
		return err
	}
	defer t.CloseIdleConnections()
	c := newClient(s.Brokers, t)
	first, end, err := bounds(ctx, c, topic, partition)
	if err != nil {
		return err
	}
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: s.Brokers, Topic: topic, Partition: partition, MinBytes: 1, MaxBytes: maxPrefetchBytes, MaxWait: time.Second,
		Dialer: access.Dialer(ctx, t),
	})
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.SetOffset(max(first, from)); err != nil {
		return fmt.Errorf("go to offset %d of %q: %w", from, topic, err)
	}
	for at := max(first, from); at < end; {
		m, ok, err := readWithin(ctx, r, scanWait)
		if err != nil {
			return fmt.Errorf("read partition %d of %q: %w", partition, topic, err)
		}
		if !ok { // the brokers may have removed the rest since, or the topic
			now, last, err := bounds(ctx, c, topic, partition)
			if err != nil {
				return err
			}
			at, end = max(at, now), min(end, last)
			continue
		}
		if at = m.Offset + 1; m.Offset >= end || !see(m) {
			return nil
		}
	}
	return nil
}

// scanWait is how long a scan waits for a message before it asks whether there still is one.
const scanWait = 2 * time.Second

// readWithin reads the next message, and reports whether one came within the time.
func readWithin(ctx context.Context, r *kafka.Reader, wait time.Duration) (m kafka.Message, ok bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m, err = r.ReadMessage(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return m, false, nil
	}
	return m, err == nil, err
}

// bounds returns the first offset of a partition, and the one after its last. It waits for a partition that was just created.
func bounds(ctx context.Context, c *kafka.Client, topic string, partition int) (first, end int64, err error) {
	err = RetryTransient(ctx, func(ctx context.Context) error {
		first, end, err = askBounds(ctx, c, topic, partition)
		return err
	})
	return first, end, err
}

func askBounds(ctx context.Context, c *kafka.Client, topic string, partition int) (first, end int64, err error) {
	resp, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		topic: {kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition)},
	}})
	if err != nil {
		return 0, 0, fmt.Errorf("ask how far partition %d of %q goes: %w", partition, topic, err)
	}
	for _, p := range resp.Topics[topic] {
		if p.Partition == partition {
			if p.Error != nil {
				return 0, 0, fmt.Errorf("ask how far partition %d of %q goes: %w", partition, topic, p.Error)
			}
			return p.FirstOffset, p.LastOffset, nil
		}
	}
	return 0, 0, fmt.Errorf("ask how far partition %d of %q goes: %w", partition, topic, kafka.UnknownTopicOrPartition)
}

// OffsetRanges returns the range of offsets of each partition of topics, none for a topic that does not exist.
func OffsetRanges(ctx context.Context, s Settings, topics ...string) (map[string][]OffsetRange, error) {
	c, done, err := NewClient(s)
	if err != nil {
		return nil, err
	}
	defer done()
	out := make(map[string][]OffsetRange, len(topics))
	for _, topic := range topics {
		n, err := producer{client: c}.count(ctx, topic)
		if errors.Is(err, kafka.UnknownTopicOrPartition) {
			out[topic] = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		for p := range n {
			first, end, err := bounds(ctx, c, topic, p)
			if err != nil {
				return nil, err
			}
			out[topic] = append(out[topic], OffsetRange{First: first, End: end})
		}
	}
	return out, nil
}

// RequireSignatures stores that all future messages of SignedTopics need a signature, and returns the policy.
func RequireSignatures(ctx context.Context, s Settings, in SignaturePolicyStore) (SignaturePolicy, error) {
	have, err := OffsetRanges(ctx, s, SignedTopics()...)
	if err != nil {
		return SignaturePolicy{}, err
	}
	return in.Update(ctx, func(was SignaturePolicy) SignaturePolicy { return was.Require(have) })
}
