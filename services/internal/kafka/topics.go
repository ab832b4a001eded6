package kafka

import (
	"cmp"
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

// TopicSettings say how topics are made.
type TopicSettings struct {
	Partitions      int           `toml:"partitions"`   // of each topic but that of dead letters, which has one; zero means 6
	Replication     int           `toml:"replication"`  // copies of each partition; zero means 3
	Retention       time.Duration `toml:"keep"`         // how long events of runs are kept; zero means 30 days
	StreamRetention time.Duration `toml:"keep_streams"` // how long samples and lines are kept, which the store has too; zero means 7 days
	MaxMessage      int           `toml:"max_message"`  // bytes of what topics take at once, which services keep to; zero means 1048588, the least, which brokers take by default
}

// Bounds of TopicSettings.MaxMessage: what pods write, who are not told of it,
// fits into the least, and what a consumer fetches at once has room for the most.
const (
	minMessageBytes = 1<<20 + 12
	maxMessageBytes = maxPrefetchBytes / 2
)

// Validate names every setting at fault, below the table called name.
func (s TopicSettings) Validate(name string) error {
	var errs []error
	for _, n := range []struct {
		key   string
		value int64
	}{
		{"partitions", int64(s.Partitions)},
		{"replication", int64(s.Replication)},
		{"keep", int64(s.Retention)},
		{"keep_streams", int64(s.StreamRetention)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("%s.%s: must not be negative", name, n.key))
		}
	}
	if s.MaxMessage != 0 && (s.MaxMessage < minMessageBytes || s.MaxMessage > maxMessageBytes) {
		errs = append(errs, fmt.Errorf("%s.max_message: %d, want %d to %d bytes", name, s.MaxMessage, minMessageBytes, maxMessageBytes))
	}
	return errors.Join(errs...)
}

// Topic is a topic that is to be there.
type Topic struct {
	Name        string
	Partitions  int
	Replication int
	Configs     map[string]string // as brokers name them: retention.ms
}

// Topics returns every topic of the platform. Writes to a topic of three
// replicas or more are acknowledged by two. How large what is written may be is
// said also where it is what brokers take by default, for those that were told
// otherwise.
func (s TopicSettings) Topics() []Topic {
	const day = 24 * time.Hour
	var topics []Topic
	for _, name := range event.Topics() {
		t := Topic{Name: name, Partitions: cmp.Or(s.Partitions, 6), Replication: cmp.Or(s.Replication, 3)}
		keep := cmp.Or(s.Retention, 30*day)
		switch name {
		case event.TopicMetrics, event.TopicLogs:
			keep = cmp.Or(s.StreamRetention, 7*day)
		case event.TopicDead:
			t.Partitions = 1
		}
		t.Configs = map[string]string{
			"cleanup.policy": "delete", "max.message.bytes": strconv.Itoa(cmp.Or(s.MaxMessage, minMessageBytes)), "retention.ms": strconv.FormatInt(keep.Milliseconds(), 10),
		}
		if t.Replication >= 3 {
			t.Configs["min.insync.replicas"] = "2"
		}
		topics = append(topics, t)
	}
	return topics
}

// Forbidden says whether err is that the brokers do not let this user make or see
// a topic.
func Forbidden(err error) bool {
	return errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed)
}

// CreateTopics makes sure that the topics of settings are there. One that is
// there already is left as it is. What comes to one that it makes must have a seal,
// where s has the key of the seals. It fails where the brokers do not answer; ask
// again.
func CreateTopics(ctx context.Context, s Settings) error {
	c, done, err := NewClient(s)
	if err != nil {
		return err
	}
	defer done()
	created, err := Create(ctx, c, s.Topics.Topics())
	if s.SignaturePolicy != nil && (s.SigningKeyFile != "" || len(s.SigningKeys) > 0) && len(created) > 0 {
		_, policyErr := s.SignaturePolicy.Update(ctx, func(was SignaturePolicy) SignaturePolicy { return was.RequireAll(created...) })
		err = errors.Join(err, policyErr)
	}
	return err
}

// AwaitTopics is CreateTopics that waits for brokers which are away, however long,
// and says so, also by Ready. Its only other error is a refusal of the brokers,
// which no wait mends.
func (b *Bus) AwaitTopics(ctx context.Context) error {
	w := retrier{bus: b, name: "start", log: b.log}
	var refused error
	err := w.retry(ctx, "create topics", func() error {
		refused = nil
		err := b.pingBrokers(ctx) // which says why they do not answer
		if err == nil {
			err = CreateTopics(ctx, b.settings)
		}
		if topicErr, ok := errors.AsType[*topicError](err); ok && !topicErr.isTemporary() {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(refused, err)
}

// Create makes sure that topics are there, and returns the names of those that it
// made.
func Create(ctx context.Context, c *kafka.Client, topics []Topic) (created []string, err error) {
	req := &kafka.CreateTopicsRequest{}
	for _, topic := range topics {
		req.Topics = append(req.Topics, topic.config())
	}
	resp, err := c.CreateTopics(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("create topics: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(resp.Errors)) {
		switch err := resp.Errors[name]; {
		case err == nil:
			created = append(created, name)
		case !errors.Is(err, kafka.TopicAlreadyExists):
			errs = append(errs, &topicError{topic: name, err: err})
		}
	}
	return created, errors.Join(errs...)
}

// topicError is why brokers that answer do not make a topic.
type topicError struct {
	topic string
	err   error
}

// Error implements error.
func (e *topicError) Error() string { return fmt.Sprintf("create topic %q: %v", e.topic, e.err) }

// Unwrap returns what the brokers said.
func (e *topicError) Unwrap() error { return e.err }

// isTemporary reports whether the brokers may say otherwise later.
func (e *topicError) isTemporary() bool {
	kafkaErr, ok := errors.AsType[kafka.Error](e.err)
	return ok && kafkaErr.Temporary()
}

// config returns t as kafka-go asks for it.
func (t Topic) config() kafka.TopicConfig {
	c := kafka.TopicConfig{Topic: t.Name, NumPartitions: t.Partitions, ReplicationFactor: t.Replication}
	for _, name := range slices.Sorted(maps.Keys(t.Configs)) {
		c.ConfigEntries = append(c.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: t.Configs[name]})
	}
	return c
}
