package kafkatest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// EnvRealBroker names the variable that has Start and StartWide use a real broker, at
// that address, in place of one of their own. They empty it first, so it must be
// for one test at a time: run them with -parallel 1. Late is as ever.
const EnvRealBroker = "BAI_TEST_KAFKA_ALONE"

// Empty removes all topics and groups of the broker at addr. It waits for groups
// whose consumers were killed a moment ago.
func Empty(tb testing.TB, addr string) {
	tb.Helper()
	emptyAndCreate(tb, addr, 0, nil)
}

// emptyAndCreate empties the broker at addr, and gives it topics.
func emptyAndCreate(tb testing.TB, addr string, partitions int, topics []string) *Broker {
	tb.Helper()
	t := &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
	defer t.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(addr), Transport: t, Timeout: 10 * time.Second}
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	err := retry(ctx, func() error { return empty(ctx, client) })
	if err == nil && len(topics) > 0 {
		err = retry(ctx, func() error { return create(ctx, client, partitions, topics) })
	}
	if err != nil {
		tb.Fatalf("empty the broker at %s: %v", addr, err)
	}
	return &Broker{Addrs: []string{addr}}
}

// retry does do until it succeeds: a broker carries out some things later.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// empty removes all groups and topics, and says so until they are gone.
func empty(ctx context.Context, client *kafka.Client) error {
	groups, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return err
	}
	if len(groups.Groups) > 0 {
		return errors.Join(errors.New("there are groups"), remove(ctx, client, groups))
	}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return err
	}
	var names []string
	for _, t := range meta.Topics {
		if !strings.HasPrefix(t.Name, "__") {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	resp, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: names})
	if err != nil {
		return err
	}
	err = errors.New("there are topics")
	for _, e := range resp.Errors {
		err = errors.Join(err, e)
	}
	return err
}

func remove(ctx context.Context, client *kafka.Client, groups *kafka.ListGroupsResponse) error {
	var ids []string
	for _, g := range groups.Groups {
		ids = append(ids, g.GroupID)
	}
	resp, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: ids})
	if err != nil {
		return err
	}
	for _, e := range resp.Errors {
		err = errors.Join(err, e)
	}
	return err
}

func create(ctx context.Context, client *kafka.Client, partitions int, topics []string) error {
	req := &kafka.CreateTopicsRequest{}
	for _, name := range topics {
		req.Topics = append(req.Topics, kafka.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: 1})
	}
	resp, err := client.CreateTopics(ctx, req)
	if err != nil {
		return err
	}
	for _, e := range resp.Errors {
		if !errors.Is(e, kafka.TopicAlreadyExists) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return err
	}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return err
	}
	for _, t := range meta.Topics {
		for _, p := range t.Partitions {
			err = errors.Join(err, p.Error)
		}
		err = errors.Join(err, t.Error)
	}
	return err
}

// Repeat writes all messages that topics of the broker at addr have once more.
func Repeat(tb testing.TB, addr string, topics ...string) {
	tb.Helper()
	t := &kafka.Transport{MetadataTTL: time.Second}
	defer t.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(addr), Transport: t}
	w := &kafka.Writer{
		Addr: kafka.TCP(addr), BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll,
		Balancer: kafka.Murmur2Balancer{Consistent: true}, Transport: t,
	}
	for _, topic := range topics {
		all, err := readAll(tb.Context(), client, topic)
		if err == nil && len(all) > 0 {
			err = w.WriteMessages(tb.Context(), all...)
		}
		if err != nil {
			tb.Fatalf("repeat %s: %v", topic, err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

// readAll returns the messages that a topic has now, as they are written.
func readAll(ctx context.Context, client *kafka.Client, topic string) (all []kafka.Message, err error) {
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	for _, p := range meta.Topics[0].Partitions {
		ends, err := client.ListOffsets(ctx,
			&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(p.ID)}}})
		if err != nil {
			return nil, err
		}
		end := ends.Topics[topic][0].LastOffset
		r := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{client.Addr.String()}, Topic: topic, Partition: p.ID,
			MaxWait: 50 * time.Millisecond, MaxBytes: 10 << 20,
		})
		for at := int64(0); at < end && err == nil; {
			var m kafka.Message
			if m, err = r.ReadMessage(ctx); err == nil {
				at = m.Offset + 1
				all = append(all, kafka.Message{Topic: topic, Key: m.Key, Value: m.Value, Headers: m.Headers})
			}
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
	return all, nil
}
