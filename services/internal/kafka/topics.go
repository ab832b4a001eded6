package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Topic is a topic that is to be there.
type Topic struct {
	Name        string            `toml:"name"`
	Partitions  int               `toml:"partitions"`
	Replication int               `toml:"replication"`
	Configs     map[string]string `toml:"configs"` // as brokers name them: retention.ms
}

// Topics returns every topic of the platform. Dead letters have one partition.
// What carries samples and lines is kept for a week at most, since the store
// has it; the rest for a month. Writes to a topic of three replicas or more
// are acknowledged by two.
func Topics(partitions, replication int) []Topic {
	const day = 24 * time.Hour
	var topics []Topic
	for _, name := range event.Topics() {
		t := Topic{Name: name, Partitions: partitions, Replication: replication, Configs: map[string]string{
			"retention.ms": strconv.FormatInt((30 * day).Milliseconds(), 10),
		}}
		switch name {
		case event.TopicMetrics, event.TopicLogs:
			t.Configs["retention.ms"] = strconv.FormatInt((7 * day).Milliseconds(), 10)
		case event.TopicDead:
			t.Partitions = 1
		}
		if replication >= 3 {
			t.Configs["min.insync.replicas"] = "2"
		}
		topics = append(topics, t)
	}
	return topics
}

// CreateTopics makes sure that topics are there. One that is there already is
// left as it is. It fails where the brokers do not answer; ask again.
func CreateTopics(ctx context.Context, s Settings, topics []Topic) error {
	t := newTransport()
	defer t.CloseIdleConnections()
	req := &kafka.CreateTopicsRequest{}
	for _, topic := range topics {
		c := kafka.TopicConfig{Topic: topic.Name, NumPartitions: topic.Partitions, ReplicationFactor: topic.Replication}
		for _, name := range slices.Sorted(maps.Keys(topic.Configs)) {
			c.ConfigEntries = append(c.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: topic.Configs[name]})
		}
		req.Topics = append(req.Topics, c)
	}
	resp, err := newClient(s.Brokers, t).CreateTopics(ctx, req)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(resp.Errors)) {
		if err := resp.Errors[name]; err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			errs = append(errs, fmt.Errorf("create topic %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
