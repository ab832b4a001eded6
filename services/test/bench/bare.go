package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
)

// moveMessages sends messages to a broker with acks = all, compressed as the platform's
// are, and reads them back at the same time, each by one client without any
// platform, and returns messages per second.
func moveMessages(ctx context.Context, addr string, messages [][]byte) (rate float64, err error) {
	const topic = "bare"
	client := &kafka.Client{Addr: kafka.TCP(addr)}
	if _, err := client.CreateTopics(ctx,
		&kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}}); err != nil {
		return 0, err
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{addr}, Topic: topic, MaxWait: 50 * time.Millisecond, MaxBytes: 10 << 20})
	w := &kafka.Writer{
		Addr: kafka.TCP(addr), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond, BatchSize: 1,
		BatchBytes: 10 << 20, Compression: kafka.Snappy,
	}
	defer func() { err = errors.Join(err, r.Close(), w.Close()) }()
	sent := make(chan error, 1)
	begin := time.Now()
	go func() {
		for _, m := range messages {
			if err := w.WriteMessages(ctx, kafka.Message{Value: m}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for range messages {
		if _, err := r.ReadMessage(ctx); err != nil {
			return 0, err
		}
	}
	return float64(len(messages)) / time.Since(begin).Seconds(), <-sent
}
